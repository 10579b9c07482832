"""The gamma law: sums of exponential delays, and what lies between."""

from __future__ import annotations

from typing import ClassVar, Literal

from sim.base.ranges import Location, PositiveSpread
from sim.laws.base import Continuous


class Gamma(Continuous):
    """Gamma of shape 1 / cv^2 and scale mean cv^2.

    Args:
        mean: of the draws.
        cv: standard deviation over mean. 1 is the exponential law.
    """

    kind: Literal["gamma"] = "gamma"
    mean: Location
    cv: PositiveSpread
    in_unit: ClassVar = ("mean",)

    def draw(self, rng, size):
        return self.mean * self.cv**2 * rng.standard_gamma(self.cv**-2, size)

    @property
    def stats(self):
        from scipy.stats import gamma

        return gamma(self.cv**-2, scale=self.mean * self.cv**2)
