"""The Weibull law: times to failure, with tails lighter or heavier than exponential."""

from __future__ import annotations

import math
from typing import ClassVar, Literal

from sim.base.ranges import Location, WeibullShape
from sim.laws.base import Continuous


class Weibull(Continuous):
    """P(X > x) = exp(-(x / c)^shape), with c = mean / Gamma(1 + 1 / shape).

    Args:
        mean: of the draws.
        shape: below 1 the tail is heavier than that of the exponential law, above 1 it is lighter.
    """

    kind: Literal["weibull"] = "weibull"
    mean: Location
    shape: WeibullShape
    in_unit: ClassVar = ("mean",)

    def draw(self, rng, size):
        return self._scale * rng.weibull(self.shape, size)

    @property
    def stats(self):
        from scipy.stats import weibull_min

        return weibull_min(self.shape, scale=self._scale)

    @property
    def _scale(self) -> float:
        return self.mean / math.gamma(1 + 1 / self.shape)
