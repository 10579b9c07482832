"""The MPI world: the primitives for real. They block; the payload is a gradient, the clock is perf_counter."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Sequence

import numpy as np
from sim.verbs.at_hand import AtHand
from sim.verbs.book import Book
from sim.verbs.collectives import allreduce, reduce_by_exchanges

from real.recording.parameters import Piece
from real.recording.recorder import Recorder
from real.training.layered import computes_by_layer
from real.training.trainee import Trainee
from real.worlds.clock import Clock
from real.worlds.exchanges import Exchanges
from real.worlds.layers import Layers
from real.worlds.messages import Messages
from real.worlds.verbs import verb
from real.worlds.work import Work
from sim import collectives
from sim.collectives import Exchange
from sim.collectives.base import DENSE
from sim.job.scenario import Scenario
from sim.recording.traces import NOBODY, Activity


class Rank(Work, Messages):
    """`me` of the MPI world: the primitives of sim.verbs.me, over the ranks of `comm`.

    Args:
        comm: the servers, or the master, and the workers of this run; None for one process alone.
        trainee: what computes gradients, updates and evaluates.
        hosts: the name of each rank's host.
    """

    def __init__(
        self,
        comm,
        scenario: Scenario,
        replication: int,
        trainee: Trainee,
        clock: Clock,
        recorder: Recorder,
        hosts: Sequence[str] = ("",),
    ):
        self.comm, self.scenario, self.trainee, self.clock, self.recorder = comm, scenario, trainee, clock, recorder
        self.rank, self.hosts = comm.rank if comm else 0, [hosts.index(host) for host in hosts]
        self.master, self.servers = 0, range(scenario.servers)
        self.workers = range(scenario.servers, scenario.ranks)
        self.serves = self.rank in self.servers
        self.step, self.version, self.samples, self.minibatches, self.ran_out = 0, 0, 0, 0, 0
        self.evaluations: list[tuple[int, float, float]] = []
        self.updates = scenario.updates if self.rank == 0 else math.inf
        self.book, self.at_hand, self.ready, self.oldest = Book(), AtHand(), 0, 0
        self.counts_updates, self.variables, self.held = scenario.protocol.counts_updates, range(0), []
        self.idle_from_s = 0.0  # until then a rank computes, and its waits do not count
        self._begin_groups(scenario.groups(self.hosts))
        number = scenario.worker_number(self.rank)
        self._sleeps, self.delays = (
            scenario.draws.every_sleep(replication, number),
            scenario.draws.delays(replication, number),
        )
        self._fetched, self._minibatch = None, None
        self._begin_messages(hosts)
        self._held = self._initially_held(trainee)
        self.summed = bool(scenario.summed) and not self.serves
        items = 0 if self.serves else scenario.summed_items
        self.exchanges = Exchanges(self, comm, items, self.workers if self.summed else range(scenario.ranks))
        self._sum = np.zeros_like(self._held) if self.serves else self.exchanges.vector[:-1] if self.summed else None
        layered = computes_by_layer(scenario.protocol) and not self.serves
        self._layers = self._begin_layers() if layered else Layers(self, [], {})

    def _begin_groups(self, groups) -> None:
        """The rank that sends for each worker."""
        mine = groups.of.get(self.rank, [self.rank])
        leads = self.rank == mine[0]
        self.senders: Collection[int] = groups.senders
        self.neighbours: Collection[int] = mine[1:] if leads else []
        self.aggregators: Collection[int] = self.servers if leads else [mine[0]]

    def _initially_held(self, trainee: Trainee) -> np.ndarray:
        """A server's shard; a master's parameters where they are sent from; a worker's own, or where they come."""
        if not self.scenario.served:
            return trainee.initial().copy()
        if self.serves and self.scenario.protocol.has_servers:
            return self._shards.cut(trainee.initial(), self.rank)
        if self.serves:
            self._out[0].payload[:] = trainee.initial()
            return self._out[0].payload
        came_is_held = len(self.servers) == 1 and not self.scenario.protocol.delay_std_s
        return self._in[0].payload if came_is_held else np.zeros_like(trainee.initial())

    def _begin_layers(self) -> Layers:
        """The sum of gradients that workers sum among themselves."""
        pieces = collectives.pieces(self.scenario.summed, fused=False)
        into = {number: self._sum[piece] for number, piece in enumerate(pieces)}
        return Layers(self, [[(number, slice(None))] for number in into], into)

    def finish(self) -> None:
        """The run is over: wait until all that was sent has been received, by ranks that may have ended too."""
        self.end_messages()
        self.exchanges.end()
        self._layers.end()

    # ---- its clock and its progress

    @property
    def now_s(self) -> float:
        """Seconds since the run's common start."""
        return self.clock()

    @property
    def parameters(self) -> np.ndarray:
        """The parameters at hand: a server's own, or those last received."""
        return self._held

    def variable(self, number: int) -> np.ndarray:
        """The parameters of one variable of the model, in its shape; a view."""
        variables = self.scenario.workload.variables
        start = sum(variable.size for variable in variables[:number])
        return self._held[start : start + variables[number].size].reshape(variables[number].shape)

    def pieces(self) -> list[Piece]:
        """Those of all parameters that are this rank's to give: a server's own, or of the first rank all."""
        if self.rank not in self.servers or not self.scenario.protocol.has_servers:
            return [(slice(None), self.parameters)] if self.rank == 0 else []
        places = self.scenario.traffic.server_slices[self.rank]
        ends = np.cumsum([place.stop - place.start for place in places])[:-1]
        return list(zip(places, np.split(self.parameters, ends), strict=True))

    # ---- time

    def steps(self):
        """Yield the number of each step, and set `step`."""
        for step in range(self.scenario.rounds):
            self.step = step
            yield step

    @verb
    def sleep(self):
        """Sleep as the induced straggler."""
        start_s = self.now_s
        seconds = self._sleeps.next(self.step)
        if seconds > 0:
            time.sleep(seconds)
            self.record("sleep", start_s)

    @verb
    def cycle(self, cycle_s: float):
        """Sleep until the next cycle that finds a gradient ready."""
        self._layers.cycle(cycle_s)

    # ---- sums over workers, and two texts

    def allreduce(self, algorithm: str = "auto", fused: bool = True):
        """Sum gradients, as the verb does; summing a sum again is refused."""
        if self.summed:
            self.at_hand.begin_sum()
        yield from allreduce.__wrapped__(self, algorithm, fused)

    def reduce(self, algorithm: str, piece: slice):
        """One call, on some items of the vector; auto leaves it to MPI."""
        vector = self.exchanges.vector
        vector[-1] = self.samples
        if algorithm == "auto" and self.scenario.workers > 1:
            self.exchanges.leave_it_to_mpi(piece)
        else:
            yield from reduce_by_exchanges(self, algorithm, piece)
        self.samples = int(vector[-1])

    def exchange(self, exchange: Exchange, ready: int = 0):
        """Send a piece to one rank while receiving one from another; then add it up. The last number of the vector counts samples."""
        vector, dense = self.exchanges.vector, exchange.kind == DENSE
        if dense and vector.size in (exchange.sent.stop, exchange.taken.stop):
            vector[-1] = self.samples
        taken = self.exchanges.exchange(exchange, ready)
        if dense and taken is not None and exchange.taken.start < exchange.taken.stop == vector.size:
            self.samples = int(vector[-1])
        return taken
        yield

    @verb
    def departed(self):
        """Wait until all sent pieces have left."""
        self.exchanges.departed()

    @verb
    def copy(self, piece: slice):
        """Copy items into the fusion buffer, or out of it."""
        self.exchanges.copy(piece)

    def beside(self, computing, communicating):
        """Run both texts at once, until both have ended."""
        return self._layers.beside(computing, communicating)

    # ---- the record

    def record(
        self, activity: str, start_s: float, end_s: float | None = None, samples=0, bytes=0, peer=NOBODY, version=None
    ) -> None:
        """Record an activity that has ended, now if no `end_s` is given."""
        end_s = self.now_s if end_s is None else end_s
        version = self.version if version is None else version
        self.recorder.add(Activity(start_s, end_s, self.rank, self.step, activity, samples, bytes, peer, version))

    def waited(self, start_s: float, end_s: float | None = None, peer=NOBODY) -> None:
        """Record a wait that has ended, except for the time in which the rank computed."""
        end_s = self.now_s if end_s is None else end_s
        self.record("wait", min(end_s, max(start_s, self.idle_from_s)), end_s, peer=peer)
