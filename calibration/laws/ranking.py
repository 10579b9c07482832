"""All families fitted to the same values, the likeliest first, with how well each fits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from calibration.laws.families import FAMILIES, PARAMETERS, Family
from sim.base import progress
from sim.laws import Law

LEVEL = 0.9
FEWEST = 8  # values
BOOTSTRAPS, VALUES_IN_ALL = 199, 400_000  # refits of a bootstrap, fewer of many values
FEWEST_BOOTSTRAPS = 39


class Fitted(NamedTuple):
    """One family fitted.

    Args:
        law: the most likely one.
        log_likelihood: of all values.
        aic, bic: information criteria of Akaike and Schwarz; smaller is better.
        intervals: 90 % interval of each parameter, by name.
        distance: of Kolmogorov and Smirnov, between the law and the values.
        p_value: probability of at least this distance if the law were true; by parametric bootstrap.
    """

    law: Law
    log_likelihood: float
    aic: float
    bic: float
    intervals: dict[str, tuple[float, float]]
    distance: float
    p_value: float


def ranked(values: np.ndarray, seed: int = 0) -> tuple[list[Fitted], list[str]]:
    """Every family that can have such values, by AIC; and why others cannot, a line each.

    Args:
        values: shape (count,), above 0.
        seed: of the bootstrap.
    """
    found, notes, times = [], [], refits(len(values))
    with progress.Progress("fitting laws", times * len(FAMILIES)) as work:
        for family in FAMILIES.values():
            try:
                found.append(fitted(family, values, seed))
            except ValueError as error:  # a parameter out of its range
                work.advance(times)
                notes.append(_left_out(family, error))
    return sorted(found, key=lambda one: one.aic), notes


def _left_out(family: Family, error: ValueError) -> str:
    said = (" ".join(str(error).split("\n")[1:3]) or str(error)).replace("Input should be", "has to be")
    return f"{family.kind} is left out: {' '.join(said.split(' [')[0].split())}"


def fitted(family: Family, values: np.ndarray, seed: int = 0) -> Fitted:
    """One family.

    Raises:
        ValueError: its most likely law is none that a file may have.
    """
    law = family.fit(values)
    likelihood = family.likelihood(law, values)
    aic, bic = 2 * PARAMETERS - 2 * likelihood, PARAMETERS * np.log(len(values)) - 2 * likelihood
    far = distance(law, values)
    p_value = bootstrap(family, law, len(values), far, np.random.default_rng(seed))
    return Fitted(law, likelihood, aic, bic, family.intervals(law, values, LEVEL), far, p_value)


def distance(law: Law, values: np.ndarray) -> float:
    """The largest difference between the law's distribution and that of the values (Kolmogorov and Smirnov)."""
    below = law.cdf(np.sort(values))
    steps = np.arange(len(values) + 1) / len(values)
    return float(max((steps[1:] - below).max(), (below - steps[:-1]).max()))


def refits(count: int) -> int:
    """Of a family to draws of its law, for so many values."""
    return int(np.clip(VALUES_IN_ALL // count, FEWEST_BOOTSTRAPS, BOOTSTRAPS))


def bootstrap(family: Family, law: Law, count: int, far: float, rng: np.random.Generator) -> float:
    """The probability of such a distance for values that the law draws, after the family was fitted to them.

    The table of Kolmogorov and Smirnov does not hold here, because the law was fitted to the same values (Stute et al.,
    Metrika 1993).
    """
    times, as_far = refits(count), 0
    for _ in range(times):
        progress.advance(label=family.kind)
        drawn = np.maximum(law.draw(rng, count), np.finfo(float).tiny)
        try:
            as_far += distance(family.fit(drawn), drawn) >= far
        except ValueError:  # out of range by chance: it says nothing against the law
            as_far += 1
    return (1 + as_far) / (1 + times)
