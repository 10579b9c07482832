"""Rows of a sweep beside one of them, run by run: equal runs of one random seed have equal random numbers in every row."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from sim.base import interval
from sim.base.errors import WrongSetting

if TYPE_CHECKING:
    import pandas as pd

RUNS = "samples_per_s_runs"
SAME_DRAWS = ("seed", "sleeps_of", "steps_done", "warmup_done")


def differences(rows: pd.DataFrame, base: int = 0) -> pd.DataFrame:
    """The throughput of each row over that of a base row.

    Args:
        rows: of a sweep, as `sweep` returns them or its file holds them.
        base: the place of the base row, from 0.

    Returns:
        With the index of `rows`: `ratio`, the geometric mean over pairs of runs; `ratio_se`, its standard error, of the runs alone and
        without what is unknown of costs and links; `pairs`, their number. A row of another random seed or length, or with an error, has
        no pairs.

    Raises:
        WrongSetting: no rows of a sweep, no such row, or one with an error.
    """
    import pandas as pd

    if not isinstance(rows, pd.DataFrame) or not {RUNS, *SAME_DRAWS} <= set(rows.columns):
        raise WrongSetting("rows", type(rows).__name__, "rows of a sweep, a DataFrame")
    if isinstance(base, bool) or not isinstance(base, (int, np.integer)) or not 0 <= base < len(rows):
        raise WrongSetting("base", base, f"the place of a row, from 0 to {len(rows) - 1}")
    table = rows.to_dict("records")
    ours = _runs(table[base])
    if not len(ours):
        raise WrongSetting("base", base, "the place of a row that was simulated, and summed something")
    paired = [_beside(table[base], ours, row) for row in table]
    return pd.DataFrame(paired, columns=["ratio", "ratio_se", "pairs"], index=rows.index)


def _beside(base: dict, ours: np.ndarray, row: dict) -> tuple[float, float, int]:
    theirs = _runs(row)
    pairs = min(len(ours), len(theirs)) if _draws(row) == _draws(base) else 0
    if not pairs:
        return np.nan, np.nan, 0
    ratios = theirs[:pairs] / ours[:pairs]
    error = interval.standard_error(ratios)
    return interval.middle(ratios), np.nan if error is None else error, pairs


def _draws(row: dict) -> list[str]:
    return [str(row[name]) for name in SAME_DRAWS]


def _runs(row: dict) -> np.ndarray:
    """Samples a second of each run; none where one of them is 0 or not known."""
    found = np.array(json.loads(row[RUNS]) if isinstance(row[RUNS], str) else [], float)
    return found if np.isfinite(found).all() and (found > 0).all() else found[:0]
