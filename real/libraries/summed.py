"""Gradients that somebody else's library sums over all ranks, in a loop as allreduce's text has it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from real.launching.clock import Clock
from real.recording.parameters import Piece
from real.recording.recorder import Recorder
from real.training.gradients import Gradients
from real.training.trainee import Trainee, Training
from sim.job.scenario import Scenario
from sim.laws.base import Sleeps
from sim.model.sizes import ITEM_BYTES
from sim.recording.traces import NOBODY, Activity


class Library(Protocol):
    """A library that sums tensors over ranks; one object for each rank of a launch.

    Args:
        name: of the world that its traces are of.
        versions: of its packages.
    """

    name: str
    versions: dict[str, str]

    def begin(self, comm, scenario: Scenario, training: Training) -> None:
        """Make ready for one run of the ranks of `comm`, or of this one alone if None. Collective."""

    def sums(self, tensors: list, fused: bool) -> list:
        """While TensorFlow traces: each tensor summed over all ranks of the run, by one call or by one for each."""

    def end(self) -> None:
        """The run is over. Collective."""


class Step(NamedTuple):
    """The result of a step that computes and sums at once.

    Args:
        sums: of all ranks' gradients, one array a variable.
        computed_s, summed_s: seconds from the call until this rank's gradients, and until the sums, were there.
    """

    sums: list[np.ndarray]
    computed_s: float
    summed_s: float


class SummedGradients(Gradients):
    """Gradients of one run, variable by variable as libraries take them, and their sums; on the CPU."""

    def __init__(self, library: Library, scenario: Scenario, training: Training):
        super().__init__(scenario.workload, training.threads, training.device)
        tf, variables = self._tf, scenario.workload.variables
        batch = self._fixed.input_signature
        tensors = [tf.TensorSpec(variable.shape, tf.float32) for variable in variables]
        self._library, self._overlaps = library, scenario.protocol.overlaps
        self._fused = getattr(scenario.protocol, "fused", False)
        self._apart = tf.function(self._apart_graph, input_signature=batch, autograph=False)
        self._sum = tf.function(self._sum_graph, input_signature=tensors, autograph=False)
        self._beside = tf.function(self._beside_graph, input_signature=batch, autograph=False)

    def apart(self, parameters: np.ndarray, x: np.ndarray, y: np.ndarray) -> tuple[list, float]:
        """This rank's gradients, one tensor a variable, and the seconds from the call until they were there."""
        called_s = time.time()
        gradients, computed_s = self._apart(parameters, x, y)
        return gradients, float(computed_s) - called_s

    def summed(self, gradients: list) -> list[np.ndarray]:
        """All ranks' gradients, summed. Collective."""
        return [np.asarray(total) for total in self._sum(*gradients)]

    def beside(self, parameters: np.ndarray, x: np.ndarray, y: np.ndarray) -> Step:
        """Gradients, each handed to the library as soon as it is there. Collective."""
        called_s = time.time()
        sums, computed_s, summed_s = self._beside(parameters, x, y)
        return Step([np.asarray(total) for total in sums], float(computed_s) - called_s, float(summed_s) - called_s)

    def warm_up(self, batch: int) -> None:
        """Warm up as any gradients do; collective."""
        parameters = np.zeros(self._workload.parameters, np.float32)
        x, y = np.zeros((batch, *self._workload.sample_shape), np.float32), np.zeros(batch, np.int32)
        for _ in range(2):
            if self._overlaps:
                self.beside(parameters, x, y)
            else:
                self.summed(self.apart(parameters, x, y)[0])

    def _apart_graph(self, flat, x, y):
        gradients = self._gradients(self._variables(flat), x, y)
        return gradients, self._clock_after(gradients)

    def _sum_graph(self, *gradients):
        """One call; or a call for each variable, one after another."""
        if self._fused:
            return self._library.sums(list(gradients), fused=True)
        sums: list = []
        for gradient in gradients:
            with self._tf.control_dependencies(sums[-1:]):
                sums += self._library.sums([self._tf.identity(gradient)], fused=False)
        return sums

    def _beside_graph(self, flat, x, y):
        gradients, computed_s = self._apart_graph(flat, x, y)
        sums = self._library.sums(gradients, fused=False)
        return sums, computed_s, self._clock_after(sums)


class SummedRank:
    """A rank whose gradients a library sums, as real.language.rank.TextRank; what it follows is a loop of its own.

    It cannot see the waiting for others; `waits_apart` finds that afterwards.
    """

    ran_out = 0

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
        self.rank, self.scenario, self.recorder, self._clock = comm.rank if comm else 0, scenario, recorder, clock
        self._trainee, self._gradients, self._step = trainee, trainee.gradients, 0
        self._sleeps = Sleeps(partial(scenario.draws.sleeps, replication, scenario.worker_number(self.rank)))
        self.parameters, self._sum = trainee.initial().copy(), np.empty_like(trainee.initial())
        self.evaluations: list[tuple[int, float, float]] = []

    @property
    def now_s(self) -> float:
        """Seconds since the run's common start."""
        return self._clock()

    def pieces(self) -> list[Piece]:
        """Those of the parameters that are this rank's to give: of the first rank all."""
        return [] if self.rank else [(slice(None), self.parameters)]

    def follow(self, said: Callable[[Any, int], None] | None = None) -> None:
        """Train to the end of the run."""
        scenario, whole = self.scenario, (0, self._sum.size)
        for self._step in range(scenario.rounds):
            if said:
                said(self, self._step)
            self._sleep()
            samples = self._summed() * scenario.workers
            start_s = self.now_s
            self._trainee.optimiser.apply(whole, self.parameters, self._sum, samples)
            self._record("update", start_s, samples=samples, bytes=ITEM_BYTES * self._sum.size, version=self._step + 1)
            due = scenario.test_size > 0 and (self._step + 1) % scenario.evaluate_every == 0
            if self.rank == 0 and due:
                self._evaluate()

    def _sleep(self) -> None:
        start_s, seconds = self.now_s, self._sleeps.next(self._step)
        if seconds > 0:
            time.sleep(seconds)
            self._record("sleep", start_s)

    def _summed(self) -> int:
        """Compute and sum a minibatch's gradient; its samples."""
        start_s = self.now_s
        x, y = self._trainee.next_batch()
        self._record("input", start_s, samples=len(x))
        start_s = self.now_s
        if self.scenario.protocol.overlaps:
            step = self._gradients.beside(self.parameters, x, y)
            sums, computed_s, summed_s = step.sums, start_s + step.computed_s, start_s + step.summed_s
        else:
            gradients, of_call_s = self._gradients.apart(self.parameters, x, y)
            sums, computed_s = self._gradients.summed(gradients), start_s + of_call_s
            summed_s = self.now_s
        self._record("compute", start_s, computed_s, samples=len(x))
        self._record("receive", computed_s, summed_s, bytes=ITEM_BYTES * self._sum.size)
        np.concatenate([total.ravel() for total in sums], out=self._sum)
        self._record("pack", summed_s, bytes=ITEM_BYTES * self._sum.size)
        return len(x)

    def _evaluate(self) -> None:
        start_s, size = self.now_s, self.scenario.test_size
        self.evaluations.append((self._step, *self._trainee.evaluate(self.parameters, size)))
        self._record("evaluate", start_s, samples=len(self._trainee.data.test_y[:size]))

    def _record(self, activity, start_s: float, end_s: float | None = None, samples=0, bytes=0, version=None) -> None:
        """Record an activity that has ended, now if no `end_s` is given."""
        end_s, version = self.now_s if end_s is None else end_s, self._step if version is None else version
        self.recorder.add(Activity(start_s, end_s, self.rank, self._step, activity, samples, bytes, NOBODY, version))


def waits_apart(activities: list[Activity]) -> list[Activity]:
    """The rows of all ranks, of each sum the time before the last rank had its gradients as `wait`.

    No rank can have the sum before; a barrier would tell it as the run goes on, and change the run.
    """
    last_s: dict[int, float] = {}
    for row in activities:
        if row.activity == "compute":
            last_s[row.step] = max(row.end_s, last_s.get(row.step, row.end_s))
    return [part for row in activities for part in _parts(row, last_s.get(row.step, row.start_s))]


def _parts(row: Activity, last_s: float) -> list[Activity]:
    if row.activity != "receive":
        return [row]
    moving_s = min(max(row.start_s, last_s), row.end_s)
    return [row._replace(end_s=moving_s, activity="wait", bytes=0), row._replace(start_s=moving_s)]
