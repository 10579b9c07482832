"""Laws of random quantities: each knows its mean, its formula, and refuses bad parameters.

One law object serves the simulator's draws and the real run's induced sleeps.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Annotated, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from sim.ranges import Draw, Location, Seconds, Share, Spread

MOST_VALUES, MOST_COMPONENTS = 10**5, 1000
FAR = 2**64  # numbers that no draw needs
SPREAD_OF_LIMIT = 5  # a folded mixture is cut at max(mean + 5 std), as in the AMB repository


class Law(BaseModel):
    """A distribution of non-negative numbers."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @property
    def mean(self) -> float:
        """The expected value, in the unit of the draws."""
        raise NotImplementedError

    @property
    def sole(self) -> float | None:
        """The value of every draw, if they are all alike."""
        return None

    def draw(self, rng: np.random.Generator, shape: int | tuple[int, ...]) -> np.ndarray:
        """Independent draws. Fewer rows, from an equal generator, are the first ones of more rows.

        Args:
            rng: of numpy.random.default_rng.
        """
        raise NotImplementedError

    def quantile(self, share: float) -> float:
        """The value that a `share` (0 to 1) of draws do not exceed."""
        raise NotImplementedError


class Constant(Law):
    """Always `value`."""

    kind: Literal["constant"] = "constant"
    value: Draw

    @property
    def mean(self) -> float:
        return self.value

    @property
    def sole(self) -> float:
        return self.value

    def draw(self, rng, shape):
        return np.full(shape, self.value)

    def quantile(self, share):
        return self.value


class LogNormal(Law):
    """exp(N(m, s)) with the given mean and coefficient of variation: s^2 = ln(1 + cv^2), m = ln(mean) - s^2 / 2.

    Args:
        location: the mean of the law, in the unit of the draws.
        cv: standard deviation over mean.
    """

    kind: Literal["lognormal"] = "lognormal"
    location: Location = 1.0
    cv: Spread

    @property
    def mean(self) -> float:
        return self.location

    @property
    def sole(self) -> float | None:
        return None if self.cv else self.location

    def draw(self, rng, shape):
        return self._at(rng.standard_normal(shape))

    def quantile(self, share):
        from scipy.special import ndtri

        return float(self._at(ndtri(share)))

    def _at(self, normal):
        sigma = math.sqrt(math.log1p(self.cv**2))
        return self.location * np.exp(sigma * normal - sigma**2 / 2)


class Empirical(Law):
    """Draws from recorded values with replacement, linear between neighbours (the inverted empirical distribution)."""

    kind: Literal["empirical"] = "empirical"
    values: tuple[Draw, ...] = Field(min_length=2, max_length=MOST_VALUES)

    @property
    def mean(self) -> float:
        ordered = self._ordered
        return float(((ordered[1:] + ordered[:-1]) / 2).mean())

    def draw(self, rng, shape):
        return self._at(rng.random(shape))

    def quantile(self, share):
        return float(self._at(share))

    @cached_property
    def _ordered(self) -> np.ndarray:
        return np.sort(self.values)

    def _at(self, share):
        ordered = self._ordered
        return np.interp(share * (len(ordered) - 1), np.arange(len(ordered)), ordered)


class Component(BaseModel):
    """One Gaussian of a mixture: mean and standard deviation in seconds, weight in (0, 1]."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    mean_s: Seconds
    std_s: Seconds
    weight: Share


class FoldedMixture(Law):
    """Induced sleeps: min(limit, |N(mean, std)|) of a component drawn by weight; limit = max(mean + 5 std).

    Source: the AMB repository (T. Adikari), `induce`; Ferdinand et al., ICLR 2019, section 6.
    """

    kind: Literal["folded-mixture"] = "folded-mixture"
    components: tuple[Component, ...] = Field(min_length=1, max_length=MOST_COMPONENTS)

    @model_validator(mode="after")
    def _weights_sum_to_one(self):
        total = sum(c.weight for c in self.components)
        if abs(total - 1) > 1e-6:
            raise ValueError(f"weights that sum to 1 (they sum to {total:g})")
        return self

    @property
    def limit_s(self) -> float:
        return max(c.mean_s + SPREAD_OF_LIMIT * c.std_s for c in self.components)

    @property
    def mean(self) -> float:
        """Integral of the survival function up to the limit."""
        grid = np.linspace(0, self.limit_s, 20_001)
        return float(np.trapezoid(1 - self.cdf(grid), grid))

    def cdf(self, seconds: np.ndarray) -> np.ndarray:
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

    def expected_maximum(self, draws: int) -> float:
        """The mean of the largest of `draws` independent sleeps, seconds."""
        grid = np.linspace(0, self.limit_s, 20_001)
        return float(np.trapezoid(1 - self.cdf(grid) ** draws, grid))

    def scaled(self, factor: float) -> FoldedMixture:
        """Every mean and standard deviation times `factor`: the same shape on a faster clock."""
        return FoldedMixture(
            components=tuple(
                Component(mean_s=c.mean_s * factor, std_s=c.std_s * factor, weight=c.weight) for c in self.components
            )
        )

    def quantile(self, share):
        grid = np.linspace(0, self.limit_s, 20_001)
        return float(min(self.limit_s, grid[np.searchsorted(self.cdf(grid), share).clip(max=len(grid) - 1)]))

    def draw(self, rng, shape):
        share = rng.random(shape)
        rng.bit_generator.advance(
            FAR - share.size
        )  # so that normal numbers begin at the same place after any number of shares
        edges, means_s, stds_s, limit_s = self._columns
        which = np.searchsorted(edges, share, side="right")
        drawn = rng.standard_normal(shape)
        drawn *= stds_s[which]
        drawn += means_s[which]
        return np.minimum(np.abs(drawn, out=drawn), limit_s, out=drawn)

    @cached_property
    def _columns(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        """Between the components' shares, shape (components - 1,); their means and deviations; the limit."""
        means_s, stds_s, weights = np.array([(c.mean_s, c.std_s, c.weight) for c in self.components]).T
        return np.cumsum(weights)[:-1], means_s, stds_s, self.limit_s


AnyLaw = Annotated[Constant | LogNormal | Empirical | FoldedMixture, Field(discriminator="kind")]
