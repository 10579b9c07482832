"""What computes: gradients of many ranks in as few calls as there are versions, updates, and evaluations."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

import numpy as np

from real import engines
from real.data import data_for
from real.models import BY_BATCH, initial

if TYPE_CHECKING:
    from real.training.trainee import Training
    from sim.model.workload import Workload

AT_ONCE_BYTES = 64e6  # of samples in a call
ALIKE = 0.8  # of the samples of a minibatch: with fewer that differ each of them is computed once
TIMED = 2048  # samples


class Weights(Protocol):
    """All parameters of the model."""

    @property
    def vector(self) -> np.ndarray:
        """The flat vector, float32 (parameters,)."""


class OfSamples(Protocol):
    """A gradient by what it is of.

    Args:
        samples: their places in the training set, shape (samples,).
    """

    samples: np.ndarray

    @property
    def whole(self) -> Weights:
        """The parameters."""


class Trainer:
    """The engine and the data of jobs of one model.

    Args:
        workload: the model.
        seed: of first parameters, and of data that are drawn.
        training: the engine, the data and rates; `threads` are those of the whole process.
    """

    def __init__(self, workload: Workload, seed: int, training: Training):
        self.workload, self.seed, self.training = workload, seed, training
        self._library = engines.engine_of(training.engine)
        self._engine = self._library.gradients("whole", workload, training.threads, training.device, 0)
        self.data = data_for(workload, training.data, seed)
        self._by_batch = workload.name in BY_BATCH
        self._at_once = max(1, int(AT_ONCE_BYTES / (4 * math.prod(workload.sample_shape))))
        self.computed = 0  # samples

    def initial(self, replication: int = 0) -> np.ndarray:
        """First parameters of a replication, float32 (parameters,): those of the real run of that number."""
        return initial(self.workload, self.seed, replication)

    # ---- gradients

    def sum(self, gradients: Iterable[OfSamples]) -> np.ndarray:
        """The sum of gradients, float32 (parameters,); those of one version are one call, whoever's they are."""
        of_version: dict[Weights, list[np.ndarray]] = {}
        for gradient in gradients:
            of_version.setdefault(gradient.whole, []).append(gradient.samples)
        total = np.zeros(self.workload.parameters, np.float32)
        for whole, samples in of_version.items():
            for minibatch in samples if self._by_batch else [np.concatenate(samples)]:
                self._add(total, whole, minibatch)
                self.computed += len(minibatch)
        return total

    def _add(self, total: np.ndarray, whole: Weights, minibatch: np.ndarray) -> None:
        """Add the gradient of a minibatch, of which samples may be the same; these are computed once."""
        x, y = self.data.train_x, self.data.train_y
        places, times = np.unique(minibatch, return_counts=True)
        if self._by_batch or len(places) > ALIKE * len(minibatch):
            for part in [minibatch] if self._by_batch else self._cut(minibatch):
                total += self._engine.fixed(whole.vector, x[part], y[part]).sum
        else:
            for part in self._cut(np.arange(len(places))):
                of = places[part]
                total += self._engine.weighted(whole.vector, x[of], y[of], times[part].astype(np.float32))

    def _cut(self, samples: np.ndarray) -> list[np.ndarray]:
        """Parts of like sizes, each of at most so many samples as a call takes."""
        return np.array_split(samples, -(-len(samples) // self._at_once))

    def share(self, batch: int, workers: int) -> float:
        """The share of the samples in minibatches of so many workers that is computed, where they are one call."""
        size = len(self.data.train_y)
        found = size * (1 - max(0.0, 1 - batch / size) ** workers) / (batch * workers)
        return found if found <= ALIKE and not self._by_batch else 1.0

    @property
    def data_bytes(self) -> int:
        """Bytes of the data."""
        return self.data.train_x.nbytes + self.data.test_x.nbytes

    def sample_s(self) -> float:
        """Seconds of a sample's gradient, of many at once."""
        places = np.arange(min(self._at_once, TIMED)) % len(self.data.train_y)
        x, y, vector = self.data.train_x[places], self.data.train_y[places], self.initial()
        self._engine.fixed(vector, x, y)
        began_s = time.perf_counter()
        self._engine.fixed(vector, x, y)
        return (time.perf_counter() - began_s) / len(places)

    # ---- evaluations

    def evaluate(self, whole: Weights, size: int) -> tuple[float, float]:
        """Mean loss, and the share of the first `size` test samples that are labelled right."""
        return self._engine.evaluate(whole.vector, self.data.test_x[:size], self.data.test_y[:size])

    def touched(self, gradients: Iterable[OfSamples]) -> np.ndarray:
        """Whether any of these minibatches has read the row of each number of the model, shape (parameters,); of a dense one true."""
        read = np.unique(self.data.train_x[np.concatenate([gradient.samples for gradient in gradients])]).astype(int)
        found = []
        for variable in self.workload.variables:
            rows = np.full(variable.shape, not variable.rows)
            if variable.rows:
                rows[read] = True
            found.append(rows.ravel())
        return np.concatenate(found)
