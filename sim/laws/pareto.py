"""The Pareto law: tails that fall like a power."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from sim.base.ranges import Location, TailExponent
from sim.laws.base import Continuous


class Pareto(Continuous):
    """P(X > x) = (least / x)^shape from x = least; the mean is least shape / (shape - 1).

    Args:
        least: the smallest draw.
        shape: exponent of the tail. It is above 1, because there is no mean otherwise.
    """

    kind: Literal["pareto"] = "pareto"
    least: Location
    shape: TailExponent
    in_unit: ClassVar = ("least",)

    @property
    def mean(self) -> float:
        return self.least * self.shape / (self.shape - 1)

    def draw(self, rng, size):
        return self.least * (1 + rng.pareto(self.shape, size))

    def expected_maximum(self, draws):
        """Equal to least n B(n, 1 - 1 / shape), with B the beta function (Arnold, Pareto Distributions, 1983)."""
        from scipy.special import betaln

        return float(self.least * draws * np.exp(betaln(draws, 1 - 1 / self.shape)))

    @property
    def stats(self):
        from scipy.stats import pareto

        return pareto(self.shape, scale=self.least)
