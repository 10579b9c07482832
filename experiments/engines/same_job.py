"""Do all engines simulate the same job? Their mean steps must agree, as far as chance allows.

An engine whose messages left the master at once would have shorter steps with any number of workers. One whose master received all
gradients at once would have steps that are 6 % shorter with 10 workers, where the difference of means is known to better than 1 %; with
hundreds of workers the steps would be as long, because gradients then come no faster than parameters leave.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from experiments.engines import ENGINES, REFERENCE
from sim.base.errors import RunFailed

ERRORS = 5  # standard errors of the difference of two means that are allowed,
SHARE = 1e-3  # and this share of the mean besides


class Difference(NamedTuple):
    """An engine's mean step beside the reference's, as shares of it.

    Args:
        found: the difference.
        allowed: the largest that chance explains.
    """

    engine: str
    found: float
    allowed: float


def differences(steps_s: dict[str, np.ndarray]) -> list[Difference]:
    """The difference of each engine that simulated steps from the reference. Steps are independent of one another, in all engines alike."""
    spread_s = np.concatenate([values - values.mean() for values in steps_s.values()]).std()
    against = steps_s[REFERENCE]
    found = []
    for engine, values in steps_s.items():
        error_s = spread_s * sqrt(1 / len(values) + 1 / len(against))
        off = values.mean() / against.mean() - 1
        found.append(Difference(engine, off, ERRORS * error_s / against.mean() + SHARE))
    return [one for one in found if one.engine != REFERENCE]


def check(steps_s: dict[str, np.ndarray], workers: int) -> str:
    """A line that says how well the engines agree with so many workers.

    Raises:
        RunFailed: an engine simulates another job.
    """
    if len(steps_s) < 2 or REFERENCE not in steps_s:
        return f"{workers:,} workers: no two mean steps to compare"
    furthest = max(differences(steps_s), key=lambda one: abs(one.found) / one.allowed)
    title, mean_s = ENGINES[furthest.engine].title, steps_s[furthest.engine].mean()
    against = f"{steps_s[REFERENCE].mean():.4g} s in {ENGINES[REFERENCE].title}"
    said = f"{furthest.found:+.2%}; chance explains {furthest.allowed:.2%}"
    if abs(furthest.found) > furthest.allowed:
        job = f"with {workers:,} workers its mean step is {mean_s:.4g} s, and {against}"
        raise RunFailed(f"{title} simulates another job: {job} ({said})")
    return f"{workers:,} workers: mean step {against}; the furthest from it is {title} ({said})"
