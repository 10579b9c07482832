"""Gradients that somebody else's library sums over all ranks: the text is allreduce's, its verbs are run by the library."""

from __future__ import annotations

import time
from typing import NamedTuple, Protocol

import numpy as np

from real.training.gradients import Gradients
from real.training.trainee import Training
from real.worlds.mpi import Rank
from real.worlds.verbs import verb
from sim.job.scenario import Scenario
from sim.model.sizes import ITEM_BYTES
from sim.recording.traces import Activity


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

    def warm_up(self, batch: int, partitions: int | None = None) -> None:
        """Warm up as any gradients do; collective."""
        parameters = np.zeros(self._workload.parameters, np.float32)
        x, y = np.zeros((batch, *self._workload.sample_shape), np.float32), np.zeros(batch, np.int32)
        for _ in range(2):
            if self._overlaps:
                self.beside(parameters, x, y)
            else:
                self.summed(self.apart(parameters, x, y)[0])
            self.evaluate(parameters, x, y)

    def _apart_graph(self, flat, x, y):
        gradients, _ = self._gradients(self._variables(flat), x, y)
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


class SummedRank(Rank):
    """`me` of a rank whose gradients a library sums. It cannot see the waiting for others; `waits_apart` finds that afterwards."""

    @verb
    def compute(self):
        """The gradient of the whole minibatch."""
        self.oldest = self.version
        x, y = self._input()
        start_s = self.now_s
        self._apart, computed_s = self.trainee.gradients.apart(self.parameters, x, y)
        self.samples = len(x)
        self.record("compute", start_s, start_s + computed_s, samples=len(x))

    @verb
    def allreduce(self, algorithm="auto", fused=True):
        """The sum by the library, which learned `fused` when the run began."""
        start_s = self.now_s
        sums = self.trainee.gradients.summed(self._apart)
        self._take_sums(sums, start_s, self.now_s)

    def beside(self, computing, communicating):
        """Both at once: what communicates is the library's own thread, not our text of it."""
        communicating.close()
        yield from computing

    @verb
    def compute_by_layer(self, order):
        """The gradient, variable by variable in the order that TensorFlow has."""
        self.oldest = self.version
        x, y = self._input()
        start_s = self.now_s
        step = self.trainee.gradients.beside(self.parameters, x, y)
        self.samples = len(x)
        self.record("compute", start_s, start_s + step.computed_s, samples=len(x))
        self._take_sums(step.sums, start_s + step.computed_s, start_s + step.summed_s)

    def _take_sums(self, sums: list[np.ndarray], start_s: float, end_s: float) -> None:
        """Record the moving of bytes, and join the sums into one vector."""
        size_bytes = ITEM_BYTES * self._sum.size
        self.record("receive", start_s, end_s, bytes=size_bytes)
        np.concatenate([total.ravel() for total in sums], out=self._sum)
        self.record("pack", end_s, bytes=size_bytes)
        self.samples *= len(self.workers)


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
