"""Intervals of parameters from pivots: quantities whose law no parameter changes."""

from __future__ import annotations

from functools import cache

import numpy as np

DRAWS = 100_000  # of a pivot whose law has no closed form


def normal(law, values: np.ndarray, level: float) -> dict[str, tuple[float, float]]:
    """Student's t for the mean, chi^2 for the standard deviation; draws that are cut at 0 are taken to be rare."""
    from scipy.stats import t

    freedom = len(values) - 1
    half = t.ppf((1 + level) / 2, freedom) * values.std(ddof=1) / len(values) ** 0.5
    return {"mean": (law.mean - half, law.mean + half), "std": _deviation(values, level)}


def spread_of_logs(values: np.ndarray, level: float) -> tuple[float, float]:
    """The coefficient of variation of a log-normal law."""
    low, high = _deviation(np.log(values), level)
    return float(np.sqrt(np.expm1(low**2))), float(np.sqrt(np.expm1(high**2)))


def shifted_exponential(law, values: np.ndarray, level: float) -> dict[str, tuple[float, float]]:
    """Least value and spread are independent; see Epstein and Sobel, Annals of Mathematical Statistics 1954."""
    spread = float(values.mean() - values.min()) * len(values) / (len(values) - 1)
    low, high = np.quantile(_pivot(len(values)), ((1 - level) / 2, (1 + level) / 2))
    mean = float(values.mean() - high * spread), float(values.mean() - low * spread)
    return {"shift": (values.min() - spread * _least(len(values), level), float(values.min())), "mean": mean}


def pareto(law, values: np.ndarray, level: float) -> dict[str, tuple[float, float]]:
    """Logarithms have a shifted exponential law whose scale is 1 / shape."""
    from scipy.stats import chi2

    logs, count = np.log(values), len(values)
    total = float((logs - logs.min()).sum())
    low, high = chi2.ppf(((1 - level) / 2, (1 + level) / 2), 2 * count - 2) / (2 * total)
    least = float(np.exp(logs.min() - total / (count - 1) * _least(count, level)))
    return {"least": (least, float(values.min())), "shape": (float(low), float(high))}


def _least(count: int, level: float) -> float:
    """The distance of the smallest value from the least possible one, over the spread: Fisher's F of 2 and 2 count - 2, over count."""
    from scipy.stats import f

    return float(f.ppf(level, 2, 2 * count - 2)) / count


@cache
def _pivot(count: int) -> np.ndarray:
    """Draws of (mean of the values - mean of the law) / spread."""
    rng = np.random.default_rng(count)
    least, rest = rng.standard_exponential(DRAWS), rng.standard_gamma(count - 1, DRAWS)
    return (least + rest - count) / count * (count - 1) / rest


def _deviation(values: np.ndarray, level: float) -> tuple[float, float]:
    from scipy.stats import chi2

    freedom = len(values) - 1
    high, low = chi2.ppf(((1 - level) / 2, (1 + level) / 2), freedom)
    total = ((values - values.mean()) ** 2).sum()
    return float(np.sqrt(total / low)), float(np.sqrt(total / high))
