"""The families of laws that are fitted: the most likely law of each, its likelihood, and intervals of its parameters.

Intervals are exact, but for that of the log-normal's mean, which is a profile likelihood: means of which the likelihood, maximised over
the spread, is within chi^2 / 2 of the largest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from calibration.laws import exact
from calibration.laws.likelihood import interval
from sim.laws import Law, LogNormal, Normal, Pareto, ShiftedExponential

PARAMETERS = 2  # of each family


class Family(NamedTuple):
    """Laws of one kind.

    Args:
        kind: of the law.
        fit: fit(values) is the most likely law; values have shape (count,), and are above 0.
        likelihood: likelihood(law, values) is the logarithm of their density, summed.
        intervals: intervals(law, values, level) are low and high of each parameter, by name.
    """

    kind: str
    fit: Callable[[np.ndarray], Law]
    likelihood: Callable[[Law, np.ndarray], float]
    intervals: Callable[[Law, np.ndarray, float], dict[str, tuple[float, float]]]


def _by_density(law: Law, values: np.ndarray) -> float:
    return float(law.stats.logpdf(values).sum())


def _normal_density(law: Normal, values: np.ndarray) -> float:
    from scipy.stats import norm

    return float(norm.logpdf(values, values.mean(), values.std()).sum())


def _fit_normal(values: np.ndarray) -> Normal:
    from scipy.stats import norm

    mean, std = values.mean(), values.std()
    cut = mean * norm.cdf(mean / std) + std * norm.pdf(mean / std) if std else mean
    return Normal(mean=cut, std=std)


def _fit_lognormal(values: np.ndarray) -> LogNormal:
    logs = np.log(values)
    return LogNormal(mean=np.exp(logs.mean() + logs.var() / 2), cv=np.sqrt(np.expm1(logs.var())))


def _fit_shifted_exponential(values: np.ndarray) -> ShiftedExponential:
    return ShiftedExponential(shift=values.min(), mean=values.mean())


def _fit_pareto(values: np.ndarray) -> Pareto:
    shape = float(1 / np.log(values / values.min()).mean())
    least = values.min() * (1 - 1e-12)  # a law whose least value is rounded up has no such values
    return Pareto(mean=least * shape / max(shape - 1, 1e-9), shape=shape)


def _lognormal_intervals(law, values, level):
    return {"mean": interval(law, values, "mean", level), "cv": exact.spread_of_logs(values, level)}


FAMILIES = {
    family.kind: family
    for family in (
        Family("normal", _fit_normal, _normal_density, exact.normal),
        Family("lognormal", _fit_lognormal, _by_density, _lognormal_intervals),
        Family("shifted-exponential", _fit_shifted_exponential, _by_density, exact.shifted_exponential),
        Family("pareto", _fit_pareto, _by_density, exact.pareto),
    )
}
