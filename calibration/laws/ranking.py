"""All families fitted to the same values, the likeliest first, with how well each fits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from calibration.laws.families import FITS, PARAMETERS, log_likelihood
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
        aic: Akaike's information criterion; smaller is better.
        intervals: 90 % interval of each parameter, by name.
        distance: of Kolmogorov and Smirnov, between the law and the values.
        p_value: probability of at least this distance if the law were true.
    """

    law: Law
    aic: float
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
    with progress.Progress("fitting laws", times * len(FITS)) as work:
        for kind in FITS:
            try:
                found.append(fitted(kind, values, seed))
            except ValueError as error:  # a parameter out of its range
                work.advance(times)
                notes.append(_left_out(kind, error))
    return sorted(found, key=lambda one: one.aic), notes


def _left_out(kind: str, error: ValueError) -> str:
    said = (" ".join(str(error).split("\n")[1:3]) or str(error)).replace("Input should be", "has to be")
    return f"{kind} is left out: {' '.join(said.split(' [')[0].split())}"


def fitted(kind: str, values: np.ndarray, seed: int = 0) -> Fitted:
    """One family; intervals and the p value are those of a parametric bootstrap.

    The table of Kolmogorov and Smirnov does not hold for a law that was fitted to the same values (Stute et al., Metrika 1993).

    Raises:
        ValueError: its most likely law is none that a file may have.
    """
    law = FITS[kind](values)
    far = distance(law, values)
    laws, distances = bootstrap(law, len(values), np.random.default_rng(seed))
    p_value = (1 + np.count_nonzero(distances >= far)) / (1 + len(distances))
    aic = 2 * PARAMETERS - 2 * log_likelihood(law, values)
    return Fitted(law, aic, _intervals(law, laws), far, float(p_value))


def _intervals(law: Law, again: list[Law]) -> dict[str, tuple[float, float]]:
    """Refits are as far from the law, on the logarithm, as the law is from the true one (the basic bootstrap)."""
    found = {}
    for name, value in _parameters(law).items():
        refitted = [_parameters(one)[name] for one in again] or [value]
        high, low = np.quantile(refitted, ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
        found[name] = (float(value**2 / low), float(value**2 / high))
    return found


def _parameters(law: Law) -> dict[str, float]:
    return law.model_dump(exclude={"kind"})


def distance(law: Law, values: np.ndarray) -> float:
    """The largest difference between the law's distribution and that of the values (Kolmogorov and Smirnov)."""
    below = law.cdf(np.sort(values))
    steps = np.arange(len(values) + 1) / len(values)
    return float(max((steps[1:] - below).max(), (below - steps[:-1]).max()))


def refits(count: int) -> int:
    """Of a family to draws of its law, for so many values."""
    return int(np.clip(VALUES_IN_ALL // count, FEWEST_BOOTSTRAPS, BOOTSTRAPS))


def bootstrap(law: Law, count: int, rng: np.random.Generator) -> tuple[list[Law], np.ndarray]:
    """The family fitted to draws of its law again and again: these laws, and the distance of each from its draws."""
    laws, distances = [], []
    for _ in range(refits(count)):
        progress.advance(label=law.kind)
        drawn = np.maximum(law.draw(rng, count), np.finfo(float).tiny)
        try:
            laws.append(FITS[law.kind](drawn))
            distances.append(distance(laws[-1], drawn))
        except ValueError:  # out of range by chance: it says nothing against the law
            distances.append(np.inf)
    return laws, np.array(distances)
