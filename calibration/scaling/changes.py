"""How well a table's smaller sizes predict its larger ones: by fits, and by trivial rules."""

from __future__ import annotations

from collections.abc import Callable
from math import log

import numpy as np

from calibration.scaling.fitting import as_measured
from calibration.scaling.steps import Scaling
from calibration.scaling.table import Table

MOST_ROWS = 400  # that a rule is tried on, at even distances
MOST_ORIGINS = 12  # sizes up to which a table is fitted again, at even distances


def unchanged_s(seen: Table, asked: Table) -> float:
    """Seconds of the step if nothing changed from the next smaller size with the same batch, and the nearest number of GPUs a host.

    Where that batch was not seen, a sample takes as long as on the largest number of GPUs.

    Args:
        seen: of which one row at least is smaller.
        asked: one row.
    """
    return _as_on(seen, asked, np.max)


def missed_by(rows: Table, rule: Callable[[Table, Table], float] = unchanged_s) -> float | None:
    """Root mean square of the logarithm by which a rule misses the rows that have smaller ones; None where no row has.

    By `unchanged_s` it says how much steps change from one size to the next.
    """
    off = []
    for place in np.unique(np.linspace(0, rows.size - 1, MOST_ROWS).astype(int)):
        asked = rows.where(np.arange(rows.size) == place)
        less = _smaller(rows, asked)
        if less.any():
            off.append(log(rule(rows.where(less), asked) / asked.step_s[0]))
    return float(np.sqrt(np.mean(np.square(off)))) if off else None


def sizes_of(rows: Table) -> np.ndarray:
    """The size of each row, shape (rows,): hosts, or GPUs where there is one number of hosts."""
    return rows.hosts if np.ptp(rows.hosts) else rows.gpus


def unforeseen(rows: Table, fitted: Callable[[Table], Scaling]) -> float | None:
    """Root mean square of the logarithm by which steps of a size differ from a fit of all smaller ones, each size weighing as one.

    A rolling origin (L. J. Tashman, Out-of-sample tests of forecasting accuracy, 2000). Of fewer than three sizes: all that steps changed
    by (`missed_by`); None of one.

    Args:
        fitted: makes a fit of some of the rows.
    """
    of_rows = sizes_of(rows)
    sizes, off = np.unique(of_rows), []
    for place in np.unique(np.linspace(1, len(sizes) - 2, MOST_ORIGINS).astype(int)) if len(sizes) > 2 else ():
        seen, asked = rows.where(of_rows <= sizes[place]), rows.where(of_rows == sizes[place + 1])
        off.append(as_measured(seen, fitted(seen)).misses(asked))
    return float(np.sqrt(np.mean(np.square(off)))) if off else missed_by(rows)


def _as_on(seen: Table, asked: Table, which: Callable[[np.ndarray], float]) -> float:
    same = seen.where(_smaller(seen, asked) & (seen.batch == asked.batch))
    if not same.size:
        some = seen.where(seen.gpus == which(seen.gpus))
        return float(np.exp(np.log(some.step_s / some.batch).mean()) * asked.batch[0])
    sizes = same.hosts if asked.hosts[0] > 1 else same.gpus
    same = same.where(sizes == which(sizes))
    near = np.abs(same.most - asked.most)
    return float(np.exp(np.log(same.step_s[near == near.min()]).mean()))


def _smaller(seen: Table, asked: Table) -> np.ndarray:
    return seen.hosts < asked.hosts if asked.hosts[0] > 1 else seen.gpus < asked.gpus
