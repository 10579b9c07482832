"""The MPI world: the verbs for real. They block; the payload is a gradient, the clock is perf_counter."""

from __future__ import annotations

import sys
import time
from functools import wraps

import numpy as np

from real.clock import Clock
from real.gradients import Gradient
from real.recorder import Recorder
from real.trainee import Trainee
from real.waiting import arrived, poll
from sim.scenario import Scenario
from sim.traces import NOBODY, Activity
from sim.workload import HEADER_BYTES

TAG = 1
STEP, VERSION, SAMPLES = range(3)  # places in a message's header


def verb(function):
    """A method that blocks, as the generator that a protocol's text expects; it never yields."""

    @wraps(function)
    def text(*arguments):
        function(*arguments)
        return
        yield

    return text


class Parcel:
    """A message's buffer: a header of 64-bit integers, then float32 numbers, sent as one."""

    def __init__(self, parameters: int):
        self.buffer = np.zeros(HEADER_BYTES + 4 * parameters, np.uint8)
        self.header = self.buffer[:HEADER_BYTES].view(np.int64)
        self.payload = self.buffer[HEADER_BYTES:].view(np.float32)


class Rank:
    """`me` of the MPI world: the verbs of sim.protocols.base, over the ranks of `comm`.

    Args:
        comm: the master and the workers of this run; None for one process alone.
        trainee: what computes gradients, updates and evaluates.
        log: called with each line that the AMB repository logs; None to be quiet.
    """

    def __init__(
        self, comm, scenario: Scenario, replication: int, trainee: Trainee, clock: Clock, recorder: Recorder, log=None
    ):
        self.comm, self.scenario, self.trainee, self.clock, self.recorder = comm, scenario, trainee, clock, recorder
        self.rank = comm.rank if comm else 0
        self.master, self.workers = 0, range(1, scenario.ranks)
        self.step, self.version, self.samples, self.ran_out = 0, 0, 0, 0
        self.evaluations: list[tuple[int, float, float]] = []
        self._sleeps = scenario.sleeps(replication, self.rank)
        self._out, self._in = Parcel(scenario.workload.parameters), Parcel(scenario.workload.parameters)
        self._log, self._timed = log, {"sleep": 0.0, "compute": 0.0, "send": -1.0, "idle": -1.0}
        self._round_s = self._idle_since_s = 0.0
        if self.rank == 0:
            self._out.payload[:] = trainee.initial()
        self._sum = np.zeros_like(self._out.payload)

    @property
    def now_s(self) -> float:
        """Seconds since the run's common start."""
        return self.clock()

    @property
    def parameters(self) -> np.ndarray:
        """The parameters at hand: the master's own, or those last received."""
        return self._out.payload if self.rank == 0 else self._in.payload

    def steps(self):
        """Every round; sets `step`."""
        for step in range(self.scenario.rounds):
            self.step = step
            yield step

    @verb
    def sleep(self):
        """The induced straggler."""
        self._round_s = start_s = self.now_s
        seconds = self._sleeps[self.step]
        if seconds > 0:
            time.sleep(seconds)
            self._record("sleep", start_s)
        self._timed["sleep"] = self.now_s - start_s

    @verb
    def compute(self):
        """The gradient of the whole minibatch."""
        x, y = self._input()
        start_s = self.now_s
        self._computed(start_s, self.trainee.gradients.fixed(self.parameters, x, y))

    @verb
    def compute_until(self, deadline_s, partitions):
        """Partitions while there is time, at least one; the last overruns."""
        x, y = self._input()
        start_s = self.now_s
        gradient = self.trainee.gradients.anytime(self.parameters, x, y, partitions, deadline_s - start_s)
        if gradient.samples == len(x) // partitions * partitions and start_s + gradient.computed_s < deadline_s:
            self._warn_of_running_out()
        self._computed(start_s, gradient)

    @verb
    def send(self, peers):
        """Hand a message to each of `peers`; go on when the last has left."""
        peers = [peers] if isinstance(peers, int) else list(peers)
        self._out.header[: SAMPLES + 1] = self.step, self.version, self.samples
        start_s = first_s = self.now_s
        pending = {peer: self.comm.Isend(self._out.buffer, peer, TAG) for peer in peers}
        while pending:
            poll(lambda: any(request.Test() for request in pending.values()), f"rank {next(iter(pending))} to receive")
            for peer in [peer for peer, request in pending.items() if request.Test()]:
                del pending[peer]
                self._record("send", start_s, bytes=self._out.buffer.nbytes, peer=peer)
                start_s = self.now_s
        self._sent(first_s)

    @verb
    def receive(self, peer):
        """Wait for the parameters, and take them up."""
        self._receive({peer})
        start_s = self.now_s
        self.version = int(self._in.header[VERSION])
        self._record("update", start_s, bytes=self._in.buffer.nbytes)
        self._timed["idle"] = self.now_s - self._idle_since_s if self.step else -1.0

    @verb
    def gather(self, peers):
        """Receive from each of `peers`, in order of arrival, and add up."""
        missing = set(peers)
        self.samples, self._sum[:] = 0, 0
        while missing:
            peer = self._receive(missing)
            start_s, samples = self.now_s, int(self._in.header[SAMPLES])
            self._sum += self._in.payload
            self.samples += samples
            self._record("reduce", start_s, samples=samples, bytes=self._in.buffer.nbytes, peer=peer)
            missing.remove(peer)

    @verb
    def update(self):
        """Make new parameters of the sum."""
        start_s = self.now_s
        self.trainee.optimiser.apply(self._out.payload, self._sum, self.samples)
        self.version += 1
        self._record("update", start_s, samples=self.samples, bytes=self._out.buffer.nbytes)

    @verb
    def evaluate(self):
        """Loss and accuracy, where they are due."""
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
        """Put the gradient where it is sent from, or added up if nobody else adds to it."""
        target = self._sum if self.comm is None else self._out.payload
        target[:] = gradient.sum
        self.samples, computed_s = gradient.samples, start_s + gradient.computed_s
        self._record("compute", start_s, computed_s, samples=gradient.samples)
        self._record("pack", computed_s, bytes=self._out.buffer.nbytes)
        self._timed["compute"] = self.now_s - self._round_s

    def _sent(self, start_s: float) -> None:
        """What a worker's log line says: of this round its computing, of the last round its sending and idling."""
        if self.rank and self._log:
            self._log(worker_line(self.samples, self._timed, self.scenario.stragglers.mean > 0))
        self._timed["send"], self._idle_since_s = self.now_s - start_s, self.now_s

    def _receive(self, peers) -> int:
        """Wait until a message begins to come from one of `peers`, then take it; the peer."""
        from mpi4py import MPI

        status, start_s = MPI.Status(), self.now_s
        poll(lambda: self._probe(peers, status), f"rank {' or '.join(map(str, sorted(peers)))}")
        moving_s, peer = self.now_s, status.source
        self.comm.Recv(self._in.buffer, peer, TAG)
        self._record("wait", start_s, moving_s, peer=peer)
        self._record("receive", moving_s, bytes=self._in.buffer.nbytes, peer=peer)
        return peer

    def _probe(self, peers, status) -> bool:
        from mpi4py import MPI

        source = next(iter(peers)) if len(peers) == 1 else MPI.ANY_SOURCE
        return arrived(self.comm, source, TAG, status) and status.source in peers

    def _warn_of_running_out(self) -> None:
        self.ran_out += 1
        if self.ran_out == 1:
            print(f"rank {self.rank}: ran out of data before the time limit in step {self.step}", file=sys.stderr)

    def _record(
        self, activity: str, start_s: float, end_s: float | None = None, samples=0, bytes=0, peer=NOBODY
    ) -> None:
        end_s = self.now_s if end_s is None else end_s
        self.recorder.add(Activity(start_s, end_s, self.rank, self.step, activity, samples, bytes, peer, self.version))


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
