"""Sparse variables as tables, and the update that touches some of its rows."""

from __future__ import annotations

from math import log1p

import numpy as np

from real.training.optimiser import EPSILON, MOMENTUM, RHO, Rates
from real.training.row_slices import Slices
from sim.base.errors import WrongSetting

BY_ROWS = ("sgd", "mom", "rms")


class RowOptimiser(Rates):
    """Applies summed gradients to the rows that have one, and leaves the others, with their moments, as they are.

    TensorFlow's kernels for IndexedSlices (ResourceSparseApplyMomentum, ResourceSparseApplyRMSProp) do the same. The formulas are
    Keras's: an update in which every row has a gradient equals real.training.optimiser's. With sgd every update does, because missed
    weight decay of a row is applied when the row is next read (Carpenter, "Lazy sparse stochastic gradient descent for regularized
    multinomial logistic regression", 2008). Momentum and RMSprop decay rows with a gradient only. Adam is refused, because
    TensorFlow's moves every row in every update.

    Raises:
        WrongSetting: the optimiser has no such update, or a rate is impossible.
    """

    def __init__(self, name: str, *rates, **named):
        check_by_rows(name)
        super().__init__(name, *rates, **named)
        self._updates = 0
        self.decayed = 0.0  # logarithm of the factor by which all updates so far decay a row that none of them touched

    @property
    def learning_rate(self) -> float:
        """The learning rate of the next update."""
        return self.rate_after(self._updates)

    @property
    def decay(self) -> float:
        """Logarithm of what the next update leaves of a row that it does not touch."""
        return log1p(-self.learning_rate * self.weight_decay) if self.name == "sgd" else 0.0

    def apply(self, values: np.ndarray, moments: np.ndarray, mean: np.ndarray) -> None:
        """One update of rows and their moments, in place, by their mean gradient; all float32 (rows, width)."""
        gradient, rate = mean + np.float32(self.weight_decay) * values, np.float32(self.learning_rate)
        if self.name == "sgd":
            values -= rate * gradient
        elif self.name == "mom":
            moments *= np.float32(MOMENTUM)
            moments -= rate * gradient
            values += moments
        else:
            moments *= np.float32(RHO)
            moments += np.float32(1 - RHO) * np.square(gradient)
            values -= rate * gradient / np.sqrt(moments + np.float32(EPSILON))

    def end_update(self) -> None:
        """All rows have been updated."""
        self.decayed += self.decay
        self._updates += 1


def check_by_rows(name: str) -> None:
    """Refuse an optimiser that moves rows without a gradient.

    Raises:
        WrongSetting: naming it.
    """
    if name not in BY_ROWS:
        allowed = f"{', '.join(BY_ROWS)} where rows are updated: TensorFlow's Adam moves all of them in every update"
        raise WrongSetting("--optimiser", name, allowed)


class Table:
    """A sparse variable, or a part of one, where it is updated.

    Args:
        values: float32 (rows, width), at the start; updates change them in place.
        optimiser: its own.
    """

    def __init__(self, values: np.ndarray, optimiser: RowOptimiser):
        self._values, self._optimiser = values, optimiser
        self._moments = np.zeros_like(values)
        self._decayed = np.zeros(len(values))  # what the optimiser's was when each row was last made up for
        self._sum: Slices | None = None

    def read(self, rows: np.ndarray) -> np.ndarray:
        """Values of some rows, each named once, float32 (rows, width); a copy.

        Reading changes nothing: ranks that read different rows and make the same updates keep the same table.
        """
        missed = self._optimiser.decayed - self._decayed[rows]
        values = self._values[rows]
        return values * np.exp(missed, dtype=np.float32)[:, None] if missed.any() else values

    def all(self) -> np.ndarray:
        """Values of all rows, float32 (rows, width); a copy."""
        return self.read(np.arange(len(self._values)))

    def add(self, gradient: Slices) -> None:
        """Add a gradient to the sum of the next update."""
        self._sum = self._sum + gradient if self._sum else gradient

    def update(self, samples: float) -> int:
        """Apply the sum over so many samples; how many rows it touched."""
        touched, self._sum = self._sum, None
        values, moments = self.read(touched.rows), self._moments[touched.rows]
        self._optimiser.apply(values, moments, touched.values / np.float32(samples))
        self._values[touched.rows], self._moments[touched.rows] = values, moments
        self._decayed[touched.rows] = self._optimiser.decayed + self._optimiser.decay
        self._optimiser.end_update()
        return len(touched.rows)
