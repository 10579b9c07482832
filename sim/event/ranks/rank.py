"""`me` of the event world: the primitives of sim.verbs.me in simulated time."""

from __future__ import annotations

import math
from collections.abc import Collection
from functools import partial
from typing import Any

from sim.event.machines.mechanics import Mechanics
from sim.event.ranks.calls import Calls
from sim.event.ranks.computing import Computing
from sim.event.ranks.letters import Letters
from sim.event.ranks.summing import Summing
from sim.event.ranks.thread import Strand
from sim.laws import LogNormal
from sim.laws.randomness import Stream
from sim.recording.traces import NOBODY
from sim.verbs.at_hand import AtHand
from sim.verbs.book import Book


class Rank:
    """One rank. Its clock is the world's whenever its text runs.

    Its verbs are those of its parts: computing, summing, letters and calls.

    Args:
        world: sim.event.world.EventWorld.
        number: its own.
        group: the workers that send together with it, itself among them.
        machine: its host.
    """

    __slots__ = (
        "_calls", "_waits", "add", "aggregators", "all_ranks", "amounts", "applied_s", "at_hand", "book", "clock_s", "compute",
        "compute_until", "computed_s", "computing", "costs", "counts_updates", "delays", "env", "evaluate", "fetch",
        "held", "hosts", "idle_from_s", "layerwise", "letters", "machine", "master", "mechanics", "minibatches",
        "neighbours", "oldest", "random_key", "rank", "ready_s", "receive", "recorder", "rows", "samples", "scenario", "send",
        "senders", "servers", "serves", "sleep", "speed", "step", "summed", "summing", "take_up", "thread", "update",
        "updates",
        "variables", "version", "work", "workers", "works", "world",
    )  # fmt: skip

    def __init__(self, world, number: int, group: list[int], machine):
        scenario, amounts = world.scenario, world.amounts
        self.world, self.env, self.scenario, self.costs, self.machine = world, world.env, scenario, world.costs, machine
        self.amounts, self.recorder, self.rows = amounts, world.recorder, world.recorder.rows is not None
        self.rank, self.master, self.hosts, self.speed = number, 0, scenario.hosts, machine.speed
        self.servers, self.workers, self.senders = world.servers, world.workers, world.senders
        leads = number == group[0]
        self.neighbours: Collection[int] = group[1:] if leads else []
        self.aggregators: Collection[int] = world.servers if leads else [group[0]]
        self.serves = number in self.servers
        self.step = self.version = self.samples = self.minibatches = 0
        self.updates = scenario.updates if number == 0 else math.inf
        self.summed = bool(scenario.summed) and not self.serves
        self.variables, self.held = amounts.variables, amounts.held_by(number)
        self.counts_updates, self.layerwise = world.counts_updates, world.layerwise
        self.book, self.at_hand, self._waits = Book(), AtHand(), world.recorder.waits
        self.all_ranks = world.all_ranks
        self.clock_s = self.idle_from_s = 0.0
        self.thread: Any = None
        self.computed_s = self.applied_s = 0.0  # seconds of a core so far, for gradients, and for sums and updates
        self.oldest = 0  # version of the parameters that the gradient was begun on
        self.ready_s: list[float] = []  # of each gradient of a variable, since the start
        self._calls: Calls | None = None
        self._begin()

    def _begin(self) -> None:
        """Make the rank's parts."""
        random, number = self.world.random, self.scenario.worker_number(self.rank)
        self.random_key, self.delays = random.key(number), random.delays(number)
        self.letters = letters = Letters(self)
        run_factor = self.scenario.draws.run_factor(random.replication, self.machine.index)
        self.computing = computing = Computing(self, random, number, run_factor)
        self.summing = summing = Summing(self, random, number, letters.loads_with)
        self.compute_until, self.evaluate = computing.compute_until, summing.evaluate
        self.mechanics = mechanics = Mechanics(self)
        self.work, self.works, self.receive = mechanics.work, mechanics.works, mechanics.receive
        self.sleep, self.fetch, self.compute = computing.sleep, computing.fetch, computing.compute
        self.send = letters.send
        self.add, self.take_up, self.update = summing.add, summing.take_up, summing.update

    def fall_apart(self) -> None:
        """Drop all references to others, so that memory is free at once."""
        self.mechanics.fall_apart()
        for part in (self.computing, self.summing, self.letters):
            part.rank = None
        self.thread = self._calls = None

    # ---- its clock and its progress

    @property
    def now_s(self) -> float:
        """Simulated seconds since the start."""
        return self.clock_s

    @property
    def ready(self) -> int:
        """Gradients of variables that are ready here, since the start."""
        return len(self.ready_s)

    @property
    def calls(self) -> Calls:
        """Its collective calls."""
        if self._calls is None:
            self._calls = Calls(self)
        return self._calls

    @property
    def weights(self) -> Stream:
        """The weights of its messages, where messages share a port."""
        seed, replication, number = self.random_key
        return Stream(LogNormal(cv=self.world.link.unfairness), seed, replication, number, "share")

    def steps(self):
        """Yield the number of each step, and set `step`."""
        for step in range(self.scenario.rounds):
            self.step = step
            yield step
            if self.all_ranks is not None:
                self.all_ranks.ended(self)

    # ---- verbs that its parts do

    def cycle(self, cycle_s: float):
        """Sleep until a cycle that finds a gradient ready everywhere."""
        return self.calls.cycle(cycle_s)

    def copy(self, piece: slice):
        """Copy items into the fusion buffer, or out of it."""
        return self.calls.copy(piece)

    def exchange(self, exchange, ready: int = 0):
        """Send a piece while receiving another one; then add it up."""
        return self.calls.exchange(exchange, ready)

    def departed(self):
        """Wait until all messages that were sent ahead have left."""
        return self.mechanics.departed()

    def allreduce(self, algorithm: str = "auto", fused: bool = True):
        """The sum of all workers' gradients, after a library's agreement to begin."""
        return self.calls.allreduce(algorithm, fused)

    def reduce(self, algorithm: str, piece: slice):
        """One call of an allreduce."""
        return self.calls.reduce(algorithm, piece)

    def negotiate(self, by_name: bool = False):
        """As the verb, and what it costs."""
        return self.calls.negotiate(by_name)

    # ---- two texts

    def beside(self, computing, communicating):
        """Run both texts at once, until both have ended."""
        self.idle_from_s, thread, left = math.inf, self.thread, 2

        def ended(strand_computes: bool):
            nonlocal left
            left -= 1
            if strand_computes:
                self.idle_from_s = self.clock_s
            if not left:
                self.env.after(0.0, thread.go)

        for text in (computing, communicating):
            self.env.after(0.0, Strand(self, text, partial(ended, text is computing)).go)
        yield

    # ---- records

    def run_out(self) -> None:
        """Count a step in which data ran out before the time did."""
        self.recorder.ran_out += 1

    def warm(self) -> None:
        """Take note of a gradient that was just computed."""
        self.computing.warm()

    def record(self, activity: str, start_s: float, samples=0, size_bytes=0, peer=NOBODY, version=None) -> None:
        """An activity that has just ended."""
        if self.rows:
            version = self.version if version is None else version
            self.recorder.row(start_s, self.clock_s, self.rank, self.step, activity, samples, size_bytes, peer, version)

    def waited(self, from_s: float, to_s: float, peer=NOBODY) -> None:
        """A wait that has ended."""
        if to_s > from_s:
            self._waits += (self.rank, from_s, to_s)
        if self.rows:
            self.recorder.row(from_s, to_s, self.rank, self.step, "wait", 0, 0, peer, self.version)
