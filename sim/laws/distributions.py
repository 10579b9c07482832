"""The laws by kind, each a class of pydantic; a new one is added here, and to the union at the end."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from sim.base.models import Checked
from sim.base.ranges import Draw, Location, PositiveSpread, Seconds, Share, Spread, TailExponent, WeibullShape
from sim.laws.base import Law

MEDIAN = 0.5
MOST_VALUES, MOST_COMPONENTS = 10**5, 1000
SPREAD_OF_LIMIT = 5  # draws are cut at max(mean + 5 std) unless another limit is given, as in the AMB repository
FAR = 2**64  # numbers that no draw needs
GRID = 20_001


class Continuous(Law):
    """A law whose distribution function, density and quantiles are those of a distribution of scipy.stats, or of its sole value."""

    def distribution(self, stats):
        """The distribution, of the module scipy.stats."""
        raise NotImplementedError

    @property
    def stats(self):
        """The distribution, as scipy.stats has it."""
        import scipy.stats

        return self.distribution(scipy.stats)

    def cdf(self, values):
        """The share of draws that do not exceed each of the `values`; shape as theirs."""
        return self.stats.cdf(values) if self.sole is None else (np.asarray(values) >= self.sole).astype(float)

    def quantile(self, share):
        return float(self.stats.ppf(share)) if self.sole is None else self.sole


class OfNormal(Continuous):
    """A law whose draws follow from standard normal ones."""

    def at(self, normal):
        """The draw that follows from a standard normal one, a number or an array."""
        raise NotImplementedError

    def draw(self, rng, size):
        return self.at(rng.standard_normal(size))

    def quantile(self, share):
        if share == MEDIAN:  # which needs no SciPy, and most answers ask for nothing else
            return float(self.at(0.0))
        from scipy.special import ndtri

        return float(self.at(ndtri(share)))

    def upper(self, share):
        from scipy.special import ndtri

        return self.at(-ndtri(share))


class Constant(Continuous):
    """Always `value`.

    Args:
        value: of every draw.
    """

    kind: Literal["constant"] = "constant"
    value: Draw
    in_unit: ClassVar = ("value",)

    @property
    def mean(self) -> float:
        return self.value

    @property
    def sole(self) -> float:
        return self.value

    def draw(self, rng, size):
        return np.full(size, self.value)


class Normal(OfNormal):
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

    def cdf(self, values):
        from scipy.special import ndtr

        if not self.std:
            return super().cdf(values)
        values = np.asarray(values, float)
        return np.where(values < 0, 0.0, ndtr((values - self._uncut) / self.std))

    def at(self, normal):
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


class LogNormal(OfNormal):
    """exp(N(m, s)) with the given mean and coefficient of variation: s^2 = ln(1 + cv^2), m = ln(mean) - s^2 / 2.

    Args:
        mean: of the draws.
        cv: standard deviation over mean.
    """

    kind: Literal["lognormal"] = "lognormal"
    mean: Location = 1.0
    cv: Spread
    in_unit: ClassVar = ("mean",)

    @property
    def sole(self) -> float | None:
        return None if self.cv else self.mean

    def distribution(self, stats):
        return stats.lognorm(self._sigma, scale=self.mean * math.exp(-(self._sigma**2) / 2))

    @property
    def _sigma(self) -> float:
        return math.sqrt(math.log1p(self.cv**2))

    def at(self, normal):
        sigma = self._sigma
        return self.mean * np.exp(sigma * normal - sigma**2 / 2)


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

    def distribution(self, stats):
        return stats.expon(scale=self.mean)


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

    def distribution(self, stats):
        return stats.expon(self.shift, self.mean - self.shift)


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

    def distribution(self, stats):
        return stats.gamma(self.cv**-2, scale=self.mean * self.cv**2)


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

    def distribution(self, stats):
        return stats.weibull_min(self.shape, scale=self._scale)

    @property
    def _scale(self) -> float:
        return self.mean / math.gamma(1 + 1 / self.shape)


class Pareto(Continuous):
    """P(X > x) = (least / x)^shape from x = least, with least = mean (shape - 1) / shape.

    Args:
        mean: of the draws.
        shape: exponent of the tail. It is above 1, because there is no mean otherwise.
    """

    kind: Literal["pareto"] = "pareto"
    mean: Location
    shape: TailExponent
    in_unit: ClassVar = ("mean",)

    @property
    def least(self) -> float:
        """The smallest draw."""
        return self.mean * (self.shape - 1) / self.shape

    def draw(self, rng, size):
        return self.least * (1 + rng.pareto(self.shape, size))

    def distribution(self, stats):
        return stats.pareto(self.shape, scale=self.least)


class Component(Checked):
    """One Gaussian of a mixture: mean and standard deviation in seconds, weight in (0, 1]."""

    mean_s: Seconds
    std_s: Seconds
    weight: Share


class FoldedMixture(Law):
    """Induced sleeps: min(limit, |N(mean, std)|) of a component drawn by weight; the limit is max(mean + 5 std) of the components.

    Source: the AMB repository (T. Adikari), `induce`; Ferdinand et al., ICLR 2019, section 6.

    Args:
        components: the Gaussians.
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
    def longest_s(self) -> float:
        """The limit."""
        return max(c.mean_s + SPREAD_OF_LIMIT * c.std_s for c in self.components)

    @property
    def mean(self) -> float:
        """The integral of P(sleep > t) from 0 to the limit, in closed form: that of the normal distribution is z P(z) + p(z)."""
        limit_s, total = self.longest_s, 0.0
        for c in self.components:
            if c.std_s == 0:
                total += c.weight * c.mean_s
                continue
            below, least, above = (_integral((seconds - c.mean_s) / c.std_s) for seconds in (-limit_s, 0.0, limit_s))
            total += c.weight * (limit_s - c.std_s * (above - 2 * least + below))
        return total

    @cached_property
    def _grid(self) -> tuple[np.ndarray, np.ndarray]:
        """Seconds from 0 to the limit, and the probability that a sleep is no longer before the limit cuts it; shape (GRID,)."""
        from scipy.special import ndtr

        seconds = np.linspace(0, self.longest_s, GRID)
        below = np.zeros(GRID)
        for c in self.components:
            if c.std_s == 0:
                below += c.weight * (seconds >= c.mean_s)
            else:
                below += c.weight * (ndtr((seconds - c.mean_s) / c.std_s) - ndtr((-seconds - c.mean_s) / c.std_s))
        return seconds, below

    def scaled(self, factor):
        """Every mean and standard deviation times `factor`: the same shape on a faster clock."""
        components = [
            Component(mean_s=c.mean_s * factor, std_s=c.std_s * factor, weight=c.weight) for c in self.components
        ]
        return FoldedMixture(components=tuple(components))

    def quantile(self, share):
        seconds, below = self._grid
        return float(seconds[np.searchsorted(below, share).clip(max=GRID - 1)])

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


def _integral(z: float) -> float:
    """The standard normal distribution's cumulative probability up to z, integrated."""
    return z * (1 + math.erf(z / math.sqrt(2))) / 2 + math.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)


class Empirical(Law):
    """Draws from recorded values with replacement, linear between neighbours (the inverted empirical distribution).

    Args:
        values: in the unit of the draws, in any order.
    """

    kind: Literal["empirical"] = "empirical"
    values: tuple[Draw, ...] = Field(min_length=2, max_length=MOST_VALUES)
    in_unit: ClassVar = ("values",)

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

    @cached_property
    def _ordered(self) -> np.ndarray:
        return np.sort(self.values)

    def _at(self, share):
        ordered = self._ordered
        return np.interp(share * (len(ordered) - 1), np.arange(len(ordered)), ordered)


_Any = Constant | Normal | LogNormal | Exponential | ShiftedExponential | Gamma | Weibull | Pareto
AnyLaw = Annotated[_Any | FoldedMixture | Empirical, Field(discriminator="kind")]
LAWS: dict[str, type[Law]] = {
    law.model_fields["kind"].default: law for law in (*_Any.__args__, FoldedMixture, Empirical)
}
