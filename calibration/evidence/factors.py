"""Laws of factors with mean 1: log-normal if that describes them, else the factors themselves."""

from __future__ import annotations

import numpy as np

from sim.base import interval
from sim.laws import Empirical, Law, LogNormal

MANY = 100  # from so many factors on, one wild value is a stall and not a slow rank in ten
FEWEST = 10  # from so many factors on, they can show that they are not log-normal
CLEARLY = 0.05  # from this Kolmogorov-Smirnov distance on, the log-normal is clearly wrong for many factors
HEAVIER = 1.3  # from this ratio of standard deviation to the log-normal's on, its tail is clearly too light
SIGNIFICANT = 0.001  # below this probability of such values, the log-normal is clearly wrong for few factors
KEPT = 201  # values of an empirical law
ROUND_OFF = 1e-9  # factors that differ by less are equal
NORMAL_MAD = 1.4826  # standard deviation of a normal law over its median absolute deviation


def law(factors: np.ndarray) -> Law:
    """The law of `factors`, scaled to mean 1: log-normal, or empirical where that is clearly better.

    Many factors: the spread of the log-normal comes from the median absolute deviation, so that a few outliers do not blow it up. If
    there are enough of them to widen the spread by 1.3, the factors are kept as they are. Few factors (runs, ranks): the spread comes
    from the standard deviation, unless Shapiro and Wilk's test (Biometrika 1965) refuses a log-normal. One slow rank in ten is
    neither an accident nor a wide bell.
    """
    logs = np.log(factors)
    if len(logs) < 2 or np.ptp(logs) < ROUND_OFF:
        return LogNormal(cv=0)
    sigma = NORMAL_MAD * float(np.median(np.abs(logs - np.median(logs)))) if len(logs) >= MANY else logs.std(ddof=1)
    if _refused(logs, sigma):
        return _empirical(factors)
    return LogNormal(cv=float(f"{np.sqrt(np.expm1(sigma**2)):.4g}"))


def like_student(freedom: float, level: float = interval.LEVEL) -> float:
    """Factor on a standard deviation with which a normal law's interval is as wide as that of Student's t with so much freedom."""
    from scipy.special import ndtri, stdtrit

    return float(stdtrit(freedom, (1 + level) / 2) / ndtri((1 + level) / 2))


def _refused(logs: np.ndarray, sigma: float) -> bool:
    from scipy.stats import kstest, shapiro

    if len(logs) >= MANY:
        far = max(CLEARLY, 1.3 / np.sqrt(len(logs)))  # what some hundred log-normal ones may reach by chance
        off = sigma == 0 or kstest(logs, "norm", args=(np.median(logs), sigma)).statistic > far
        return off or logs.std() > HEAVIER * sigma
    return len(logs) >= FEWEST and shapiro(logs).pvalue < SIGNIFICANT


def _empirical(factors: np.ndarray) -> Empirical:
    """A law of middles of equal shares, so that neither the mean nor the tail depends on the largest factor alone."""
    count = min(KEPT, len(factors))
    values = np.quantile(factors, (np.arange(count) + 0.5) / count, method="hazen")
    raw = Empirical(values=tuple(values))
    return Empirical(values=tuple(float(f"{v:.5g}") for v in values / raw.mean))
