"""Gaussians that are folded at 0 and cut at a limit: the AMB repository's induced sleeps."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Literal

import numpy as np
from pydantic import Field, model_validator

from sim.base.models import Checked
from sim.base.ranges import Seconds, Share
from sim.laws.base import Law

MOST_COMPONENTS = 1000
SPREAD_OF_LIMIT = 5  # draws are cut at max(mean + 5 std) unless another limit is given, as in the AMB repository
FAR = 2**64  # numbers that no draw needs
GRID = 20_001


class Component(Checked):
    """One Gaussian of a mixture: mean and standard deviation in seconds, weight in (0, 1]."""

    mean_s: Seconds
    std_s: Seconds
    weight: Share


def _integral(z: float) -> float:
    """The standard normal distribution's cumulative probability up to z."""
    return z * (1 + math.erf(z / math.sqrt(2))) / 2 + math.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)


class FoldedMixture(Law):
    """Induced sleeps: min(limit, |N(mean, std)|) of a component drawn by weight.

    Source: the AMB repository (T. Adikari), `induce`; Ferdinand et al., ICLR 2019, section 6.

    Args:
        components: the Gaussians.
        limit_s: the longest sleep; max(mean + 5 std) of the components unless given. Older runs of that repository cut sleeps at 0.9
            of it.
    """

    kind: Literal["folded-mixture"] = "folded-mixture"
    components: tuple[Component, ...] = Field(min_length=1, max_length=MOST_COMPONENTS)
    limit_s: Seconds | None = None

    @model_validator(mode="after")
    def _weights_sum_to_one(self):
        total = sum(c.weight for c in self.components)
        if abs(total - 1) > 1e-6:
            raise ValueError(f"weights that sum to 1 (they sum to {total:g})")
        return self

    @property
    def longest_s(self) -> float:
        """The upper limit of sleeps."""
        if self.limit_s is not None:
            return self.limit_s
        return max(c.mean_s + SPREAD_OF_LIMIT * c.std_s for c in self.components)

    @property
    def mean(self) -> float:
        """The integral of P(sleep > t) from 0 to the limit, in closed form: that of the normal distribution is z P(z) + p(z)."""
        limit_s, total = self.longest_s, 0.0
        for c in self.components:
            if c.std_s == 0:
                total += c.weight * min(c.mean_s, limit_s)
                continue
            below, least, above = (_integral((seconds - c.mean_s) / c.std_s) for seconds in (-limit_s, 0.0, limit_s))
            total += c.weight * (limit_s - c.std_s * (above - 2 * least + below))
        return total

    def cdf(self, values):
        values = np.asarray(values, float)
        return np.where(values >= self.longest_s, 1.0, np.where(values < 0, 0.0, self._uncut(values)))

    def _uncut(self, seconds) -> np.ndarray:
        """P(sleep <= seconds), before the limit cuts it."""
        from scipy.special import ndtr

        seconds = np.asarray(seconds, float)
        total = np.zeros_like(seconds)
        for c in self.components:
            if c.std_s == 0:
                total += c.weight * (seconds >= c.mean_s)
            else:
                total += c.weight * (ndtr((seconds - c.mean_s) / c.std_s) - ndtr((-seconds - c.mean_s) / c.std_s))
        return total

    def expected_maximum(self, draws):
        grid = np.linspace(0, self.longest_s, GRID)
        return float(np.trapezoid(1 - self._uncut(grid) ** draws, grid))

    def scaled(self, factor):
        """Every mean and standard deviation times `factor`, and the limit: the same shape on a faster clock."""
        components = [
            Component(mean_s=c.mean_s * factor, std_s=c.std_s * factor, weight=c.weight) for c in self.components
        ]
        limit_s = None if self.limit_s is None else self.limit_s * factor
        return FoldedMixture(components=tuple(components), limit_s=limit_s)

    def quantile(self, share):
        grid = np.linspace(0, self.longest_s, GRID)
        found = np.searchsorted(self._uncut(grid), share).clip(max=len(grid) - 1)
        return float(min(self.longest_s, grid[found]))

    def draw(self, rng, size):
        share = rng.random(size)
        rng.bit_generator.advance(FAR - share.size)  # normal numbers begin at one place after any number of shares
        edges, means_s, stds_s, longest_s = self._columns
        which = np.searchsorted(edges, share, side="right")
        drawn = rng.standard_normal(size)
        drawn *= stds_s[which]
        drawn += means_s[which]
        return np.minimum(np.abs(drawn, out=drawn), longest_s, out=drawn)

    @cached_property
    def _columns(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        """Between the components' shares, shape (components - 1,); their means and deviations; the longest sleep."""
        means_s, stds_s, weights = np.array([(c.mean_s, c.std_s, c.weight) for c in self.components]).T
        return np.cumsum(weights)[:-1], means_s, stds_s, self.longest_s
