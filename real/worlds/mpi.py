"""The MPI world: the verbs for real. They block; the payload is a gradient, the clock is perf_counter."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterable, Sequence

import numpy as np

from real.clock import Clock
from real.gradients import Gradient
from real.parameters import Piece
from real.parcels import LAST, LETTER, NOTE, TAG, Answers, Departure, Letter, Parcel, Sent, Shards
from real.recorder import Recorder
from real.trainee import Trainee
from real.waiting import arrived, poll, receive
from real.worlds.collective import CollectiveForReal
from real.worlds.verbs import verb
from sim.errors import WrongText
from sim.scenario import Scenario
from sim.traces import NOBODY, Activity
from sim.verbs.at_hand import AtHand
from sim.verbs.book import Book
from sim.verbs.me import GRADIENT, PARAMETERS, Note, Partition

ENDLESS = math.inf
NOTHING_TO_UPDATE = "me.update is for ranks that hold parameters: the master, servers, or workers that sum them"


class Rank(CollectiveForReal):
    """`me` of the MPI world: the primitives of sim.verbs.me, over the ranks of `comm`.

    Args:
        comm: the servers, or the master, and the workers of this run; None for one process alone.
        trainee: what computes gradients, updates and evaluates.
        log: called with each line that the AMB repository logs; None to be quiet.
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
        log=None,
        hosts: Sequence[str] = ("",),
    ):
        self.comm, self.scenario, self.trainee, self.clock, self.recorder = comm, scenario, trainee, clock, recorder
        self.rank, self._at = comm.rank if comm else 0, hosts
        self.master, self.servers = 0, range(scenario.servers)
        self.workers = range(scenario.servers, scenario.ranks)
        self.step, self.version, self.samples, self.minibatches, self.ran_out = 0, 0, 0, 0, 0
        self.evaluations: list[tuple[int, float, float]] = []
        self.updates = scenario.updates if self.rank == 0 else ENDLESS
        self.book, self.at_hand, self.ready, self.oldest = Book(), AtHand(), 0, 0
        self.counts_updates = scenario.protocol.counts_updates
        self._begin_groups(scenario.groups([hosts.index(host) for host in hosts]))
        self._sleeps = scenario.sleeps(replication, scenario.worker_number(self.rank))
        self.delays = scenario.delays(replication, scenario.worker_number(self.rank))
        self._log, self._timed = log, {"sleep": 0.0, "compute": 0.0, "send": -1.0, "idle": -1.0}
        self._round_s = self._idle_since_s = 0.0
        self._serves = self.rank in self.servers
        self._posted: tuple[object, Sent] | None = None  # the gradient that is on its way while the next is computed
        self._spare: Parcel | None = None
        self._minibatch = None
        self._held = self._begin_messages(trainee)
        self._sum = np.zeros_like(self._held) if self._serves else None
        self.summed = bool(scenario.summed) and not self._serves
        if self.summed:
            self._sum = self.begin_reducing(scenario.summed_items, hosts)

    def _begin_groups(self, groups) -> None:
        """Who sends for whom."""
        mine = groups.of.get(self.rank, [self.rank])
        leads = self.rank == mine[0]
        self.senders, self.neighbours = groups.senders, mine[1:] if leads else []
        self.aggregators = self.servers if leads else [mine[0]]

    def _begin_messages(self, trainee: Trainee) -> np.ndarray:
        """Set up what is sent and received; the parameters at hand."""
        self._shards, self._answers = Shards(self.scenario.server_slices), Answers(self.comm)
        self._in, self._out = ({s: Parcel(self._shards.size(s)) for s in self._kept()} for _ in range(2))
        return self._initially_held(trainee)

    def _initially_held(self, trainee: Trainee) -> np.ndarray:
        """A server's shard; a master's parameters where they are sent from; a worker's own, or where they come."""
        if not self.scenario.served:
            return trainee.initial().copy()
        if self._serves and self.scenario.protocol.has_servers:
            return self._shards.cut(trainee.initial(), self.rank)
        if self._serves:
            self._out[0].payload[:] = trainee.initial()
            return self._out[0].payload
        came_is_held = len(self.servers) == 1 and not self.scenario.protocol.delay_std_s
        return self._in[0].payload if came_is_held else np.zeros_like(trainee.initial())

    def _kept(self) -> Iterable[int]:
        """The servers whose messages this rank sends and receives: its own, or all."""
        return [self.rank] if self._serves else self.servers

    @property
    def now_s(self) -> float:
        """Seconds since the run's common start."""
        return self.clock()

    @property
    def parameters(self) -> np.ndarray:
        """The parameters at hand: a server's own, or those last received."""
        return self._held

    def pieces(self) -> list[Piece]:
        """Those of all parameters that are this rank's to give: a server's own, or of the first rank all."""
        if self.rank not in self.servers or not self.scenario.protocol.has_servers:
            return [(slice(None), self.parameters)] if self.rank == 0 else []
        places = self.scenario.server_slices[self.rank]
        ends = np.cumsum([place.stop - place.start for place in places])[:-1]
        return list(zip(places, np.split(self.parameters, ends), strict=True))

    def steps(self):
        """Every round; sets `step`."""
        for step in range(self.scenario.rounds):
            self.step = step
            yield step

    @verb
    def sleep(self):
        """The induced straggler."""
        self._round_s = start_s = self.now_s
        self._timed["idle"] = start_s - self._idle_since_s if self.step else -1.0
        seconds = self._sleeps[self.step]
        if seconds > 0:
            time.sleep(seconds)
            self._record("sleep", start_s)
        self._timed["sleep"] = self.now_s - start_s

    @verb
    def fetch(self):
        """A minibatch, before the parameters for it."""
        self._minibatch = self._input()

    @verb
    def compute(self, part=None):
        """The gradient of the whole minibatch, or of a partition of it."""
        if part is not None:
            self._compute_partition(part)
            return
        self.at_hand.begin_gradient()
        self.oldest, self.minibatches = self.version, 1
        x, y = self._minibatch or self._input()
        start_s, self._minibatch = self.now_s, None
        self._computed(start_s, self._gradient(x, y))

    def _gradient(self, x: np.ndarray, y: np.ndarray):
        return self.trainee.gradients.fixed(self.parameters, x, y)

    @verb
    def compute_until(self, deadline_s, partitions):
        """Partitions while there is time, at least one; the last overruns."""
        self.at_hand.begin_gradient()
        x, y = self._input()
        start_s, self.minibatches = self.now_s, 1
        gradient = self.trainee.gradients.anytime(self.parameters, x, y, partitions, deadline_s - start_s)
        if gradient.samples == len(x) // partitions * partitions and start_s + gradient.computed_s < deadline_s:
            self.run_out()
        self._computed(start_s, gradient)

    def _compute_partition(self, part: Partition) -> None:
        """The gradient of one partition, by itself, added to those before."""
        if part.index == 0:
            self.at_hand.begin_gradient()
            self.samples, self.oldest, self.minibatches = 0, self.version, 1
            self._minibatch = self._input()
        x, y = self._minibatch
        size = len(x) // part.of
        items, start_s, total = (
            slice(part.index * size, (part.index + 1) * size),
            self.now_s,
            self._out[self.master].payload,
        )
        gradient = self.trainee.gradients.fixed(self.parameters, x[items], y[items])
        np.add(total, gradient.sum, out=total) if part.index else np.copyto(total, gradient.sum)
        self.samples += gradient.samples
        self._record_computed(start_s, gradient)
        if part.index == part.of - 1:
            self._minibatch = None

    @verb
    def send(self, what, to, wait: bool = True):
        """A message to each of `to`."""
        peers = [to] if isinstance(to, int) else list(to)
        if isinstance(what, Note):
            for peer in peers:
                self._send_note(peer, what)
        elif wait:
            self._send_all(peers)
        elif what is PARAMETERS:
            self._hand_out(peers)
        elif what is GRADIENT:
            for peer in peers:
                self._post(peer)

    def _send_all(self, peers: list[int]) -> None:
        """Go on when the last has left."""
        start_s = first_s = self.now_s
        header = (self.step, self.version, self.samples, LETTER)
        pending = {peer: Departure.of(self.comm, peer, self._parcels(peer), header) for peer in peers}
        while pending:
            poll(lambda: any(d.left() for d in pending.values()), f"rank {next(iter(pending))} to receive")
            for peer in [peer for peer, departure in pending.items() if departure.left()]:
                self._record("send", start_s, bytes=pending.pop(peer).size_bytes, peer=peer)
                start_s = self.now_s
        if not self._serves:
            self.at_hand.handed_on()
        self._sent(first_s)

    def _parcels(self, peer: int) -> list[Parcel]:
        """The messages that carry a gradient, or parameters, to a peer."""
        return [self._out[self.rank if self._serves else peer]]

    def _post(self, peer: int) -> None:
        """Hand the gradient to `peer` and go on, once the one before has left."""
        start_s = self.now_s
        self.at_hand.handed_on()
        self._settle()
        if self._posted:
            poll(lambda: self._settle() or not self._posted, f"rank {peer} to receive")
            self._record("wait", start_s, peer=peer)
        parcel, self._out[peer] = self._out[peer], self._spare or Parcel(self._shards.size(peer))
        parcel.header[:] = self.step, self.oldest, self.samples, LETTER
        sent = Sent(peer, self.now_s, self.step, self.oldest, parcel.buffer.nbytes)
        self._posted, self._spare = (self.comm.Isend(parcel.buffer, peer, TAG), sent), parcel
        self._sent(start_s)

    def _hand_out(self, workers: list[int]) -> None:
        """Hand parameters to `workers` and go on at once."""
        for worker in workers:
            header = (self.step, self.version, self.samples, LETTER)
            self._answers.post(worker, self._held, self.version, header, self.now_s)

    @verb
    def take_up(self, letter: Letter):
        """New parameters replace those at hand."""
        start_s = self.now_s
        self._paste(letter)
        if letter.sender == 0:
            self.version = letter.version
        self._record("update", start_s, bytes=letter.size_bytes)

    def _paste(self, letter: Letter) -> None:
        """Put parameters that have come where they belong; of a single server they are there by coming."""
        if len(self.servers) > 1:
            self._shards.paste(letter.payload, self._held, letter.sender)
        elif letter.payload is not self._held:
            np.copyto(self._held, letter.payload)

    @verb
    def add(self, letter: Letter):
        """Add the gradient of a letter to what is at hand."""
        self.at_hand.begin_add(letter)
        start_s, self.taken = self.now_s, letter
        self._add_up(letter.payload)
        self.samples += letter.samples
        about = {
            "samples": letter.samples,
            "bytes": letter.size_bytes,
            "peer": letter.sender,
            "version": letter.version,
        }
        self._record("reduce", start_s, **about)

    def _add_up(self, gradient: np.ndarray) -> None:
        np.add(self._sum, gradient, out=self._sum) if self.samples else np.copyto(self._sum, gradient)

    @verb
    def update(self, variables=None):
        """Make new parameters of the sum."""
        if not self.scenario.updated_bytes(self.rank):
            raise WrongText(NOTHING_TO_UPDATE)
        due = None if self.counts_updates or self.rank else self.version
        self.at_hand.begin_update(self.samples, self.step, due)
        if self.counts_updates:
            self.step = self.version
        start_s = self.now_s
        size_bytes = self._apply()
        self.version += 1
        self._record("update", start_s, samples=self.samples, bytes=size_bytes)
        self.samples = 0

    def _apply(self) -> int:
        """Apply the optimiser; to how many bytes."""
        self.trainee.optimiser.apply(self._held, self._sum, self.samples)
        return sum(self.scenario.updated_bytes(self.rank))

    def _send_note(self, peer: int, note: Note) -> None:
        """Send a header alone; the last says that training is over."""
        label = self.version if note.version is None else note.version
        header = np.array([self.step, label, 0, LAST if note.last else NOTE], np.int64)
        poll(self.comm.Isend(header.view(np.uint8), peer, TAG).Test, f"rank {peer} to receive")

    def receive(self, frm, until_s: float = ENDLESS, variable: int | None = None):
        """Wait until a message begins to come from one of `frm`, then take it; None if none begins by `until_s`."""
        from mpi4py import MPI

        peers = {frm} if isinstance(frm, int) else frm
        status, start_s, came = MPI.Status(), self.now_s, False

        def ended() -> bool:
            nonlocal came
            self._settle()
            came = self._probe(peers, status)
            return came or self.now_s >= until_s

        poll(ended, f"rank {' or '.join(map(str, sorted(peers)))}")
        if not came:
            if until_s > start_s:
                self._record("wait", start_s)
            return None
        moving_s, sender = self.now_s, status.source
        letter = self._receive(sender, status.Get_count(MPI.BYTE))
        self._record("wait", start_s, moving_s, peer=sender)
        self._record("receive", moving_s, bytes=letter.size_bytes, peer=sender)
        return letter
        yield

    def _receive(self, sender: int, size_bytes: int) -> Letter:
        """The message of so many bytes that has come."""
        parcel = self._in[self.rank if self._serves else sender]
        receive(self.comm, parcel.buffer, sender, TAG, self._is_here(sender))
        return Letter(sender, *map(int, parcel.header[1:]), size_bytes, parcel.payload)

    def finish(self) -> None:
        """Wait until all that was sent has been received."""
        poll(lambda: self._settle() or not (self._answers.pending or self._posted), "the last messages to be received")
        self.end_reducing()

    def _settle(self) -> None:
        """Record what has left since the last look of what was answered and posted."""
        left = self._answers.settle()
        if self._posted and self._posted[0].Test():
            left.append(self._posted[1])
            self._posted = None
        for sent in left:
            about = (self.rank, sent.step, "send", 0, sent.size_bytes, sent.peer, sent.version)
            self.recorder.add(Activity(sent.start_s, self.now_s, *about))

    @verb
    def evaluate(self):
        """Loss and accuracy, where they are due, at rank 0."""
        if self.rank:
            return
        if self.scenario.evaluates(self.step):
            start_s = self.now_s
            loss, accuracy = self.trainee.evaluate(self.parameters, self.scenario.test_size)
            self.evaluations.append((self.step, loss, accuracy))
            self._record("evaluate", start_s, samples=self.scenario.test_size)
        if self._log:
            evaluated = self.evaluations[-1] if self.scenario.evaluates(self.step) else None
            self._log(
                master_line(self.step, self.trainee.optimiser.learning_rate, evaluated, self.now_s - self._round_s)
            )
            self._round_s = self.now_s

    def _input(self):
        start_s = self.now_s
        x, y = self.trainee.next_batch()
        self._record("input", start_s, samples=len(x))
        return x, y

    def _computed(self, start_s: float, gradient: Gradient) -> None:
        self.samples = gradient.samples
        self._put(gradient)
        self._record_computed(start_s, gradient)

    def _put(self, gradient: Gradient) -> None:
        """Put the gradient where it is sent from, or added up if nobody else adds to it."""
        if self._sum is not None:
            self._sum[:] = gradient.sum
        else:
            for server in self.servers:
                self._shards.copy(gradient.sum, server, self._out[server].payload)

    def _record_computed(self, start_s: float, gradient: Gradient) -> None:
        computed_s = start_s + gradient.computed_s
        self._record("compute", start_s, computed_s, samples=gradient.samples)
        self._record("pack", computed_s, bytes=self._packed_bytes())
        self._timed["compute"] = self.now_s - self._round_s

    def _packed_bytes(self) -> int:
        return self.scenario.packed_bytes

    def _sent(self, start_s: float) -> None:
        """What a worker's log line says: of this round its computing, of the last round its sending and idling."""
        if self.rank and self._log:
            self._log(worker_line(self.samples, self._timed, self.scenario.stragglers.mean > 0))
        self._timed["send"], self._idle_since_s = self.now_s - start_s, self.now_s

    def _is_here(self, peer: int) -> bool:
        """Whether a rank is on this one's host."""
        return self._at[peer] == self._at[self.rank]

    def _probe(self, peers, status) -> bool:
        from mpi4py import MPI

        if len(peers) > 1:
            if not arrived(self.comm, MPI.ANY_SOURCE, TAG, status):
                return False
            if status.source in peers:
                return True  # else ask for each: what others have sent would hide it for ever
        return any(arrived(self.comm, peer, TAG, status) for peer in peers)

    def run_out(self) -> None:
        """There was time left, and no data."""
        self.ran_out += 1
        if self.ran_out == 1:
            print(f"rank {self.rank}: ran out of data before the time limit in step {self.step}", file=sys.stderr)

    def _record(
        self, activity: str, start_s: float, end_s: float | None = None, samples=0, bytes=0, peer=NOBODY, version=None
    ) -> None:
        end_s = self.now_s if end_s is None else end_s
        version = self.version if version is None else version
        self.recorder.add(Activity(start_s, end_s, self.rank, self.step, activity, samples, bytes, peer, version))


def worker_line(samples: int, timed: dict[str, float], induced: bool) -> str:
    """The AMB repository's log line; seconds, -1 where the round before has none."""
    sleep = f"sleep_time [{timed['sleep']:.6g}], " if induced else ""
    return (
        f"Sending [{samples}] examples, {sleep}compute_time [{timed['compute']:.6g}], "
        f"last_idle [{timed['idle']:.6g}], last_send [{timed['send']:.6g}]"
    )


def master_line(step: int, learning_rate: float, evaluated: tuple[int, float, float] | None, round_s: float) -> str:
    """The AMB repository's line of the master; without loss and accuracy in a step that evaluates nothing."""
    loss, accuracy = (f"loss = {evaluated[1]:.7g}, ", f", accuracy = {evaluated[2]:.4g}") if evaluated else ("", "")
    return f"learning_rate = {learning_rate:.6g}, {loss}step = {step + 1}{accuracy} ({round_s:.3f} sec)"
