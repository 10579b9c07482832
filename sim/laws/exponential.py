"""The exponential law."""

from __future__ import annotations

from typing import ClassVar, Literal

from sim.base.ranges import Location
from sim.laws.base import Continuous


class Exponential(Continuous):
    """P(X > x) = exp(-x / mean).

    Args:
        mean: of the draws.
    """

    kind: Literal["exponential"] = "exponential"
    mean: Location
    in_unit: ClassVar = ("mean",)

    def draw(self, rng, size):
        return self.mean * rng.standard_exponential(size)

    @property
    def stats(self):
        from scipy.stats import expon

        return expon(scale=self.mean)
