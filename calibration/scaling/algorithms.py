"""The algorithm behind a table of steps: each candidate is fitted, and weighed by its error on the arrangements of hosts and GPUs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from calibration import algorithms
from calibration.scaling.fitting import BETWEEN, Before, fit
from calibration.scaling.steps import OF_MESSAGES, Scaling
from calibration.scaling.table import Table


def candidates(rows: Table, like: Scaling, between: Before = BETWEEN) -> dict[str, Scaling]:
    """The fit of each candidate; empty where no row has several hosts, or where there is one candidate alone.

    Args:
        like: steps before any fit.
        between: what is known of a byte between hosts.
    """
    apart = rows.hosts > 1
    names = _prior(rows)
    if not apart.any() or len(names) == 1 or (rows.gpus % rows.hosts).any():
        return {}
    return {name: fit(rows, replace(like, algorithm=name), between=between) for name in names}


def _prior(rows: Table) -> dict[str, float]:
    return algorithms.prior(int(rows.hosts.max()), int(rows.most.max()))


def told(rows: Table, found: dict[str, Scaling]) -> int:
    """Arrangements of several hosts, less the constants that a candidate fits to them."""
    free = [len(set(one.fitted) & set(OF_MESSAGES)) for one in found.values()]
    return max(0, arrangements(rows) - max(free, default=0))


def arrangements(rows: Table) -> int:
    """How many arrangements of ranks on several hosts there are."""
    apart = rows.where(rows.hosts > 1)
    return len(np.unique(np.stack([apart.hosts, apart.gpus]), axis=1).T)


def weights(rows: Table, found: dict[str, Scaling]) -> dict[str, float]:
    """By candidate. Rows of one arrangement are off alike, so that their mean counts once."""
    return algorithms.weights({name: off(rows, one) for name, one in found.items()}, told(rows, found), _prior(rows))


def off(rows: Table, found: Scaling) -> float:
    """Root mean square of the logarithm of predicted over measured, of the means of arrangements of several hosts."""
    apart = rows.where(rows.hosts > 1)
    _, places = np.unique(np.stack([apart.hosts, apart.gpus]), axis=1, return_inverse=True)
    logs, places = np.log(found.step_s(apart) / apart.step_s), places.ravel()
    return float(np.sqrt(np.mean((np.bincount(places, logs) / np.bincount(places)) ** 2)))
