"""Profile likelihood of one parameter of two."""

from __future__ import annotations

import numpy as np

from sim.laws import Law

FIRST, WIDEST = (
    0.02,
    6.0,
)  # of the search for an end: its first step, and the farthest, on the logarithm of the parameter
AROUND = 2.0  # the farthest that the other parameter is searched for, likewise


def interval(law: Law, values: np.ndarray, name: str, level: float) -> tuple[float, float]:
    """Low and high of a parameter: all for which twice the logarithm of the likelihood ratio is below chi^2 of one degree.

    Source: Venzon and Moolgavkar, Applied Statistics 1988.

    Args:
        law: the most likely one.
        values: shape (count,).
        name: of the parameter.
        level: probability that the interval covers it.
    """
    from scipy.optimize import brentq
    from scipy.stats import chi2

    most, best = chi2.ppf(level, 1), _parameters(law)[name]
    largest = _likelihood(type(law), values, _parameters(law))

    def beyond(log_ratio: float) -> float:
        return 2 * (largest - _profile(law, values, name, best * np.exp(log_ratio))) - most

    ends = []
    for side in (-1, 1):
        step = FIRST
        while step < WIDEST and beyond(side * step) < 0:
            step *= 1.6
        ends.append(brentq(beyond, 0.0, side * step, xtol=1e-4) if beyond(side * step) > 0 else side * WIDEST)
    return tuple(float(best * np.exp(end)) for end in ends)


def _profile(law: Law, values: np.ndarray, name: str, value: float) -> float:
    """The largest likelihood with this value of the parameter, over all of the other one."""
    from scipy.optimize import minimize_scalar

    known = _parameters(law)
    other = next(one for one in known if one != name)

    def loss(log_ratio: float) -> float:
        return -_likelihood(type(law), values, {name: value, other: known[other] * np.exp(log_ratio)})

    return -minimize_scalar(loss, bounds=(-AROUND, AROUND), method="bounded", options={"xatol": 1e-4}).fun


def _parameters(law: Law) -> dict[str, float]:
    return law.model_dump(exclude={"kind"})


def _likelihood(kind: type[Law], values: np.ndarray, given: dict[str, float]) -> float:
    """The likelihood of parameters that need not be in the range of a law."""
    return float(kind.model_construct(**given).stats.logpdf(values).sum())
