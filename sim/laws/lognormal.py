"""The exponential of a normal law."""

from __future__ import annotations

import math
from typing import ClassVar, Literal

import numpy as np
from pydantic import AliasChoices, Field

from sim.base.ranges import Location, Spread
from sim.laws.base import Continuous

MEDIAN = 0.5


class LogNormal(Continuous):
    """exp(N(m, s)) with the given mean and coefficient of variation: s^2 = ln(1 + cv^2), m = ln(mean) - s^2 / 2.

    Args:
        mean: of the draws. Older profiles call it location.
        cv: standard deviation over mean.
    """

    kind: Literal["lognormal"] = "lognormal"
    mean: Location = Field(default=1.0, validation_alias=AliasChoices("mean", "location"))
    cv: Spread
    in_unit: ClassVar = ("mean",)

    @property
    def sole(self) -> float | None:
        return None if self.cv else self.mean

    def draw(self, rng, size):
        return self._at(rng.standard_normal(size))

    def quantile(self, share):
        if share == MEDIAN:  # which needs no SciPy, and most answers ask for nothing else
            return float(self._at(0.0))
        from scipy.special import ndtri

        return float(self._at(ndtri(share)))

    def upper(self, share):
        from scipy.special import ndtri

        return self._at(-ndtri(share))

    def cdf(self, values):
        return self.stats.cdf(values) if self.cv else (np.asarray(values) >= self.mean).astype(float)

    @property
    def stats(self):
        from scipy.stats import lognorm

        return lognorm(self._sigma, scale=self.mean * math.exp(-(self._sigma**2) / 2))

    @property
    def _sigma(self) -> float:
        return math.sqrt(math.log1p(self.cv**2))

    def _at(self, normal):
        sigma = self._sigma
        return self.mean * np.exp(sigma * normal - sigma**2 / 2)
