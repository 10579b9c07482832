"""What computes: gradients of many ranks in as few calls as there are versions, updates, and evaluations."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from real import engines
from real.data import data_for
from real.learning.parameters import Gradient, Held, Whole
from real.models import BY_BATCH, initial
from real.training.row_optimiser import RowOptimiser

if TYPE_CHECKING:
    from real.training.trainee import Training
    from sim.job.scenario import Scenario

AT_ONCE_BYTES = 64e6  # of samples in a call
KEPT_BYTES = 1e9  # of sums that several servers are going to cut pieces of


class Trainer:
    """The engine, the data and the optimisers of all ranks of a job.

    Args:
        scenario: the job.
        training: the engine, its data and rates; `threads` are those of the whole process.
    """

    def __init__(self, scenario: Scenario, training: Training):
        self.scenario, self.training = scenario, training
        self.workload, self.engine = scenario.workload, engines.engine_of(training.engine)
        self._engine = self.engine.gradients("whole", self.workload, training.threads, training.device, 0)
        self.data = data_for(self.workload, training.data, scenario.seed)
        self._by_batch = self.workload.name in BY_BATCH
        self._at_once = max(1, int(AT_ONCE_BYTES / (4 * max(1, np.prod(self.workload.sample_shape)))))
        self._sums: OrderedDict[frozenset[Gradient], np.ndarray] = OrderedDict()
        several = scenario.servers > 1 or bool(scenario.summed)
        self._most = max(1, int(KEPT_BYTES / (4 * self.workload.parameters))) if several else 0
        self.computed = 0  # samples

    def initial(self) -> np.ndarray:
        """First parameters, float32 (parameters,)."""
        return initial(self.workload, self.scenario.seed)

    # ---- gradients

    def sum(self, gradients: Iterable[Gradient]) -> np.ndarray:
        """The sum of gradients, float32 (parameters,); those of one version are one call, whoever's they are."""
        wanted = frozenset(gradients)
        if wanted in self._sums:
            self._sums.move_to_end(wanted)
            return self._sums[wanted]
        found = self._summed(wanted)
        if self._most:
            self._sums[wanted] = found
            if len(self._sums) > self._most:
                self._sums.popitem(last=False)
        return found

    def _summed(self, gradients: frozenset[Gradient]) -> np.ndarray:
        of_version: dict[Whole, list[np.ndarray]] = {}
        for gradient in gradients:
            of_version.setdefault(gradient.whole, []).append(gradient.samples)
        total = None
        for whole, samples in of_version.items():
            for part in samples if self._by_batch else self._cut(np.concatenate(samples)):
                x, y = self.data.train_x[part], self.data.train_y[part]
                found = self._engine.fixed(whole.vector, x, y).sum
                total = found if total is None else total + found
                self.computed += len(part)
        assert total is not None, "an update of no samples is refused before"
        return total

    def _cut(self, samples: np.ndarray) -> list[np.ndarray]:
        """Parts of at most so many samples, of like sizes."""
        return np.array_split(samples, -(-len(samples) // self._at_once))

    # ---- evaluations

    def evaluate(self, whole: Whole, size: int) -> tuple[float, float]:
        """Mean loss, and the share of the first `size` test samples that are labelled right."""
        return self._engine.evaluate(whole.vector, self.data.test_x[:size], self.data.test_y[:size])

    # ---- updates

    @property
    def rates(self) -> tuple:
        """The optimiser's name and its rates, as real.training.optimiser.Rates takes them."""
        training = self.training
        return training.optimiser, training.learning_rate, training.decay_steps, training.decay_rate

    def updater(self, size: int, branches: bool = False) -> Updater:
        """A new optimiser of so many numbers; see Updater."""
        made = self.engine.optimiser(self.training.threads, *self.rates)
        made.warm_up(size)
        return Updater(made, branches)

    def updater_of_rows(self) -> RowUpdater:
        """A new optimiser of sparse variables."""
        return RowUpdater(RowOptimiser(*self.rates))

    def touched(self, gradients: Iterable[Gradient]) -> np.ndarray:
        """Whether any of these minibatches has read the row of each number of the model, shape (parameters,); of a dense one true."""
        read = np.unique(self.data.train_x[np.concatenate([gradient.samples for gradient in gradients])]).astype(int)
        found = []
        for variable in self.workload.variables:
            rows = np.full(variable.shape, not variable.rows)
            if variable.rows:
                rows[read] = True
            found.append(rows.ravel())
        return np.concatenate(found)


class Updater:
    """An optimiser, whose state is that behind the newest parameters that it has made.

    Args:
        optimiser: warm, at its first step.
        branches: ranks may update the same parameters in different ways, so that the state behind each is kept.
    """

    def __init__(self, optimiser, branches: bool):
        self._optimiser, self._branches = optimiser, branches
        self._start = [part.copy() for part in optimiser.state] if branches else None
        self._newest: Held | None = None

    def updated(self, held: Held, gradient: np.ndarray, samples: int) -> Held:
        """New parameters, of those that are held and the sum of gradients over so many samples."""
        if self._branches and held is not self._newest:
            self._optimiser.restore([part.copy() for part in held.state or self._start])
        values = held.values.copy()
        self._optimiser.apply(values, gradient, samples)
        state = [part.copy() for part in self._optimiser.state] if self._branches else None
        self._newest = Held(values, state)
        return self._newest


class RowUpdater:
    """An optimiser of the rows that have a gradient, which leaves the others as they are; see real.training.row_optimiser.

    Args:
        optimiser: of rows.
    """

    def __init__(self, optimiser: RowOptimiser):
        self._optimiser = optimiser

    def updated(self, held: Held, gradient: np.ndarray, samples: int, touched: np.ndarray) -> Held:
        """New parameters; `touched` says which numbers are of rows that have a gradient, shape (numbers,)."""
        if self._optimiser.name == "sgd":  # whose weight decay comes to all rows in the end
            touched = np.full_like(touched, True)
        values, moments = held.values.copy(), held.state[0].copy() if held.state else np.zeros_like(held.values)
        some, of_some = values[touched], moments[touched]
        self._optimiser.apply(some, of_some, gradient[touched] / np.float32(samples))
        values[touched], moments[touched] = some, of_some
        self._optimiser.end_update()
        return Held(values, [moments])
