"""Induced sleeps that a log hides in the computation, separated by their known law."""

from __future__ import annotations

from functools import cache

import numpy as np

from sim.base.errors import WrongSetting
from sim.laws import Constant, FoldedMixture, Law, Stragglers

CELLS = 250  # of equal probability, in each of which a law is taken to be uniform
GRID = 1500  # seconds at which a density is worked out


def net(busy_s: np.ndarray, sleep: Stragglers) -> tuple[float, float]:
    """Mean and standard deviation, seconds, of the computation alone, by maximum likelihood.

    busy = computation + sleep, computation normal (its noise is small beside the sleeps), sleep of the law that was
    induced. For niagara 40 % of the sleeps are exactly 0, and the computation is the lowest mode.

    Raises:
        WrongSetting: sleeps that are not independent, or factors on computing.
    """
    from scipy.optimize import minimize

    if isinstance(sleep, Constant):
        return float(np.mean(busy_s) - sleep.value), float(np.std(busy_s))
    if not isinstance(sleep, Law):
        allowed = "a law of independent sleeps, because the log does not separate sleeps from computation"
        raise WrongSetting("--stragglers", sleep.kind, allowed)
    low_s, spread_s = np.quantile(busy_s, 0.05), np.std(busy_s)

    def loss(parameters: np.ndarray) -> float:
        mean_s, std_s = parameters[0], np.exp(parameters[1])
        return -np.log(density(busy_s - mean_s, std_s, sleep) + 1e-12 / spread_s).sum()  # a floor for stalls

    starts = [(low_s, np.log(spread_s * share)) for share in (0.003, 0.01, 0.03)]
    best = min((minimize(loss, start, method="Nelder-Mead") for start in starts), key=lambda found: found.fun)
    return float(best.x[0]), float(np.exp(best.x[1]))


def density(seconds: np.ndarray, std_s: float, sleep: Law) -> np.ndarray:
    """The probability density of a sleep plus N(0, std_s); shape as that of `seconds`."""
    return (_of_mixture if isinstance(sleep, FoldedMixture) else _of_law)(seconds, std_s, sleep)


def _of_law(seconds: np.ndarray, std_s: float, sleep: Law) -> np.ndarray:
    """The density of any law, which is uniform between quantiles that are near to one another; interpolated between points of a grid."""
    from scipy.special import ndtr

    edges = _edges(sleep)
    low, high = edges[:-1], np.maximum(edges[1:], edges[:-1] + std_s / 100)
    grid = np.linspace(seconds.min(), seconds.max(), GRID)
    total = np.zeros(GRID)
    for start in range(0, CELLS, 100):
        cells = slice(start, start + 100)
        inside = ndtr((grid[:, None] - low[cells]) / std_s) - ndtr((grid[:, None] - high[cells]) / std_s)
        total += (inside / (high - low)[cells]).sum(axis=1) / CELLS
    return np.interp(seconds, grid, total)


@cache
def _edges(sleep: Law) -> np.ndarray:
    """Quantiles of a law between which it is taken to be uniform, shape (CELLS + 1,)."""
    return np.array([sleep.quantile(share) for share in np.linspace(0, 1 - 1 / (10 * CELLS), CELLS + 1)])


def _of_mixture(seconds: np.ndarray, std_s: float, sleep: FoldedMixture) -> np.ndarray:
    """The density of |N(mean, s)| of a component drawn by weight, plus N(0, std_s); the cut at the limit (5 s) is left out."""
    total = np.zeros_like(seconds)
    for c in sleep.components:
        sides = (1,) if c.std_s == 0 else (1, -1)
        total += c.weight * sum(_side(seconds, side * c.mean_s, c.std_s, std_s) for side in sides)
    return total


def _side(seconds: np.ndarray, mean_s: float, component_s: float, std_s: float) -> np.ndarray:
    """N(mean_s, component_s) cut to positive values, convolved with N(0, std_s).

    The product of two normal densities is a normal one in their sum, times the chance that the first was positive.
    """
    from scipy.special import ndtr

    both_s = np.hypot(component_s, std_s)
    density = np.exp(-(((seconds - mean_s) / both_s) ** 2) / 2) / (both_s * np.sqrt(2 * np.pi))
    if component_s == 0:
        return density
    given_s = (mean_s * std_s**2 + seconds * component_s**2) / both_s**2
    return density * ndtr(given_s / (component_s * std_s / both_s))
