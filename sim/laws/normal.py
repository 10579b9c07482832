"""A normal law whose negative draws are 0."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from sim.base.ranges import Draw, Location
from sim.laws.base import Law


class Normal(Law):
    """max(0, N(m, std)), with m such that the mean of the draws is `mean`: m F(m / std) + std f(m / std) = mean.

    F and f are the standard normal distribution and density.

    Args:
        mean: of the draws, those that are cut included.
        std: standard deviation before draws are cut at 0. Draws are seldom cut while it is a third of the mean or less.
    """

    kind: Literal["normal"] = "normal"
    mean: Location
    std: Draw
    in_unit: ClassVar = ("mean", "std")

    @property
    def sole(self) -> float | None:
        return None if self.std else self.mean

    def draw(self, rng, size):
        return self._at(rng.standard_normal(size))

    def quantile(self, share):
        from scipy.special import ndtri

        return float(self._at(ndtri(share)))

    def upper(self, share):
        from scipy.special import ndtri

        return self._at(-ndtri(share))

    def cdf(self, values):
        from scipy.special import ndtr

        values = np.asarray(values, float)
        if not self.std:
            return (values >= self.mean).astype(float)
        return np.where(values < 0, 0.0, ndtr((values - self._uncut) / self.std))

    def _at(self, normal):
        return np.maximum(0.0, self._uncut + self.std * normal)

    @cached_property
    def _uncut(self) -> float:
        """The mean before draws are cut."""
        from scipy.optimize import brentq
        from scipy.special import ndtr

        if self.mean > 10 * self.std:
            return self.mean
        ratio = self.mean / self.std

        def beyond(m: float) -> float:
            return m * ndtr(m) + np.exp(-(m**2) / 2) / np.sqrt(2 * np.pi) - ratio

        return self.std * brentq(beyond, -38.0, ratio + 1.0, xtol=1e-14)
