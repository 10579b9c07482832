"""The families of laws that are fitted: the most likely law of each, and how likely it makes the values."""

from __future__ import annotations

import numpy as np

from sim.laws import Gamma, Law, LogNormal, Normal, Pareto, ShiftedExponential, Weibull

PARAMETERS = 2  # of each family


def log_likelihood(law: Law, values: np.ndarray) -> float:
    """The logarithm of the density of values, shape (count,), summed; of a normal law without its cut at 0."""
    from scipy.stats import norm

    if isinstance(law, Normal):
        return float(norm.logpdf(values, values.mean(), values.std()).sum())
    return float(law.stats.logpdf(values).sum())


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


def _fit_gamma(values: np.ndarray) -> Gamma:
    from scipy.stats import gamma

    shape, _, scale = gamma.fit(values, floc=0)
    return Gamma(mean=shape * scale, cv=shape**-0.5)


def _fit_weibull(values: np.ndarray) -> Weibull:
    """The shape solves sum x^k ln x / sum x^k - 1 / k = mean of ln x; the scale follows (Cohen, Technometrics 1965)."""
    from scipy.optimize import brentq
    from scipy.special import gamma

    logs = np.log(values)
    logs = logs - logs.max()  # of values over their largest, whose powers are finite

    def slope(shape: float) -> float:
        powers = np.exp(shape * logs)
        return (powers * logs).sum() / powers.sum() - 1 / shape - logs.mean()

    shape = brentq(slope, 1e-3, 1e4)
    scale = values.max() * np.exp(shape * logs).mean() ** (1 / shape)
    return Weibull(mean=scale * gamma(1 + 1 / shape), shape=shape)


def _fit_pareto(values: np.ndarray) -> Pareto:
    shape = float(1 / np.log(values / values.min()).mean())
    least = values.min() * (1 - 1e-12)  # a law whose least value is rounded up has no such values
    return Pareto(mean=least * shape / max(shape - 1, 1e-9), shape=shape)


FITS = {  # of values above 0, shape (count,)
    "normal": _fit_normal,
    "lognormal": _fit_lognormal,
    "shifted-exponential": _fit_shifted_exponential,
    "gamma": _fit_gamma,
    "weibull": _fit_weibull,
    "pareto": _fit_pareto,
}
