"""Recorded values."""

from __future__ import annotations

from functools import cached_property
from typing import Literal

import numpy as np
from pydantic import Field

from sim.base.ranges import Draw
from sim.laws.base import Law

MOST_VALUES = 10**5


class Empirical(Law):
    """Draws from recorded values with replacement, linear between neighbours (the inverted empirical distribution).

    Args:
        values: in the unit of the draws, in any order.
    """

    kind: Literal["empirical"] = "empirical"
    values: tuple[Draw, ...] = Field(min_length=2, max_length=MOST_VALUES)

    @property
    def mean(self) -> float:
        ordered = self._ordered
        return float(((ordered[1:] + ordered[:-1]) / 2).mean())

    def draw(self, rng, size):
        return self._at(rng.random(size))

    def quantile(self, share):
        return float(self._at(share))

    def upper(self, share):
        return self._at(1 - np.asarray(share))

    def cdf(self, values):
        ordered = self._ordered
        at_most = np.searchsorted(ordered, values, side="right") - 1
        low = np.clip(at_most, 0, len(ordered) - 2)
        width = ordered[low + 1] - ordered[low]
        part = np.where(width > 0, (values - ordered[low]) / np.where(width > 0, width, 1), 1.0)
        inside = (low + np.clip(part, 0, 1)) / (len(ordered) - 1)
        return np.where(at_most < 0, 0.0, inside)

    def scaled(self, factor):
        return Empirical(values=tuple(value * factor for value in self.values))

    @cached_property
    def _ordered(self) -> np.ndarray:
        return np.sort(self.values)

    def _at(self, share):
        ordered = self._ordered
        return np.interp(share * (len(ordered) - 1), np.arange(len(ordered)), ordered)
