"""An exponential law that begins at a least value: the straggler of many papers."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from pydantic import model_validator

from sim.base.ranges import Draw, Location
from sim.laws.base import Continuous


class ShiftedExponential(Continuous):
    """shift + an exponential draw: P(X > x) = exp(-(x - shift) / (mean - shift)) from x = shift.

    Source: Lee et al., IEEE Transactions on Information Theory 2018, "Speeding up distributed machine learning using codes".

    Args:
        shift: the smallest draw.
        mean: of the draws, the shift included.
    """

    kind: Literal["shifted-exponential"] = "shifted-exponential"
    shift: Draw = 0.0
    mean: Location
    in_unit: ClassVar = ("shift", "mean")

    @model_validator(mode="after")
    def _mean_beyond_shift(self):
        if self.mean < self.shift:
            raise ValueError(f"a mean of at least the shift ({self.shift:g}): it is of the draws, the shift included")
        return self

    @property
    def sole(self) -> float | None:
        return self.mean if self.mean == self.shift else None

    def draw(self, rng, size):
        return self.shift + (self.mean - self.shift) * rng.standard_exponential(size)

    def cdf(self, values):
        return self.stats.cdf(values) if self.sole is None else (np.asarray(values) >= self.mean).astype(float)

    def quantile(self, share):
        return super().quantile(share) if self.sole is None else self.mean

    def upper(self, share):
        return super().upper(share) if self.sole is None else np.full(np.shape(share), self.mean)

    @property
    def stats(self):
        from scipy.stats import expon

        return expon(self.shift, self.mean - self.shift)
