"""Steps to a target by the global batch: steps = s_min (1 + b_crit / batch).

McCandlish, Kaplan, Amodei and others, "An empirical model of large-batch training", arXiv 1812.06162, 2018, equation 2.11. A small batch
needs few samples and many steps, a large one many samples and few steps; b_crit is where a run takes twice the least of each.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from sim.base import tables
from sim.base.errors import WrongSetting
from sim.base.interval import LEVEL

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np


OPTION = "--until"
COLUMNS = ("batch", "steps")  # of a table of runs to a target
MOST = 1e12


class Published(NamedTuple):
    """Spreads of published tables, standard deviations of logarithms: docs/data/efficiency.json says how they were learned.

    Args:
        spread: of a batch's mean about the law of its table.
        freedom: degrees of freedom that this counts as, beside those of a table.
        a_doubling: further, for each doubling beyond a table.
        of_runs: from run to run of a batch, which is in the rows of a table without repeats.
    """

    spread: float = 0.046
    freedom: float = 2.1
    a_doubling: float = 0.075
    of_runs: float = 0.047


PUBLISHED = Published()
EDGE = 1e3  # b_crit is looked for up to so many times beyond the table, where samples or steps are the same for all batches


class Steps(NamedTuple):
    """Steps to a target: the median, and the ends of the interval for one more run (90 %)."""

    median: float
    low: float
    high: float


class Law(NamedTuple):
    """The law of a table.

    Args:
        s_min: the least number of steps, of a batch without end.
        b_crit: samples.
        batches: of the table, ascending, shape (batches,).
        spread: standard deviation of the logarithm of a batch's mean about the law.
        freedom: degrees of freedom of that.
        of_runs: standard deviation of the logarithm from run to run of a batch; 0 if none was repeated: `spread` then has it.
        a_doubling: further standard deviation for each doubling beyond the table.
    """

    s_min: float
    b_crit: float
    batches: tuple[float, ...]
    spread: float
    freedom: float
    of_runs: float
    a_doubling: float

    def steps(self, batch: float) -> Steps:
        """Steps to the target with a global batch, in samples."""
        from scipy.special import stdtrit

        median = self.s_min * (1 + self.b_crit / batch)
        further = math.exp(float(stdtrit(self.freedom, (1 + LEVEL) / 2)) * self.deviation(batch))
        return Steps(median, median / further, median * further)

    def deviation(self, batch: float) -> float:
        """Standard deviation of the logarithm of one more run's steps."""
        about_law = self.spread * math.sqrt(1 + self._leverage(batch))
        return math.hypot(about_law, self.of_runs, self.a_doubling * self.beyond(batch))

    def beyond(self, batch: float) -> float:
        """Doublings of the batch from the table's nearest; 0 within the table."""
        return max(0.0, math.log2(batch / self.batches[-1]), math.log2(self.batches[0] / batch))

    def _leverage(self, batch: float) -> float:
        """Variance of the law at a batch, in units of `spread` squared: of linear least squares near the fitted parameters."""
        import numpy as np

        slopes = _slopes(np.array([*self.batches, batch]), self.b_crit)
        known, here = slopes[:-1], slopes[-1]
        return float(here @ np.linalg.pinv(known.T @ known) @ here)


def fit(batches: Sequence[float] | np.ndarray, steps: Sequence[float] | np.ndarray) -> Law:
    """The law of least squares of logarithms, with the spreads of published tables; runs of one batch count as their mean.

    Args:
        batches: samples of a step, of all workers, shape (runs,).
        steps: to the target, shape (runs,).

    Raises:
        WrongSetting: they are all of one batch.
    """
    import numpy as np
    from scipy.optimize import minimize_scalar

    logs = np.log(np.asarray(steps, float))
    known, place, runs = np.unique(np.asarray(batches, float), return_inverse=True, return_counts=True)
    if len(known) < 2:
        raise WrongSetting("batches", known.tolist(), "two or more")
    means = np.bincount(place, logs) / runs

    def residuals(log_b_crit: float) -> np.ndarray:
        found = means - np.log1p(math.exp(log_b_crit) / known)
        return found - found.mean()

    edges = math.log(known[0] / EDGE), math.log(known[-1] * EDGE)
    how = {"bounds": edges, "method": "bounded", "options": {"xatol": 1e-9}}
    best = minimize_scalar(lambda log: float(np.sum(residuals(log) ** 2)), **how)
    b_crit, freedom = math.exp(best.x), len(known) - 2 + PUBLISHED.freedom
    again = len(logs) - len(known)
    of_others = math.hypot(PUBLISHED.spread, 0.0 if again else PUBLISHED.of_runs)
    spread = math.sqrt((float(best.fun) + PUBLISHED.freedom * of_others**2) / freedom)
    of_runs = math.sqrt(float(np.sum((logs - means[place]) ** 2)) / again) if again else 0.0
    s_min = math.exp(float(np.mean(means - np.log1p(b_crit / known))))
    return Law(s_min, b_crit, tuple(known.tolist()), spread, freedom, of_runs, PUBLISHED.a_doubling)


def _slopes(batches: np.ndarray, b_crit: float) -> np.ndarray:
    """Of the logarithm of steps by those of s_min and b_crit, shape (batches, 2)."""
    import numpy as np

    return np.stack([np.ones_like(batches), b_crit / (batches + b_crit)], axis=1)


def read(path: str) -> Law:
    """The law of a table of runs to a target, in a file; several rows of one batch are repeated runs.

    Raises:
        WrongSetting: there is no such file or column, a value is no number from 1, or all rows are of one batch.
    """
    table = tables.read(path, OPTION, COLUMNS)
    batches, steps = (tables.numbers(table, name, f"{OPTION} {path}", least=1, most=MOST) for name in COLUMNS)
    if len(set(batches)) < 2:
        allowed = "two batches or more, which say what a larger one saves"
        raise WrongSetting(f"{OPTION} {path}: batch", f"one batch, {batches[0]:g}", allowed)
    return fit(batches, steps)
