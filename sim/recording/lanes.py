"""Lanes of a rank: on each, activities follow one another. The main lane has the rank's own sequence, the others activities beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

MAIN = 0
# Earlier names are more of a rank's own sequence. Of two that overlap, the later name leaves the main lane, in the whole trace.
ORDER = (
    *("compute", "sleep", "input", "copy to device", "pack", "copy to host"),
    *("evaluate", "checkpoint", "update", "reduce", "wait", "receive", "send"),
)


def lanes(rows: pd.DataFrame) -> np.ndarray:
    """The lane of each activity, shape (rows,): MAIN, or a number from 1.

    Args:
        rows: rank, activity, start and end (in one unit, whatever it is).
    """
    found = np.zeros(len(rows), int)
    kind, start, end = (rows[name].to_numpy() for name in ("activity", "start", "end"))
    for of_rank in rows.groupby("rank").indices.values():
        main, beside = of_rank[:0], of_rank[:0]
        for activity in ORDER:
            more = of_rank[kind[of_rank] == activity]
            together = np.concatenate([main, more])
            if _apart(start[together], end[together]):
                main = together
            else:
                beside = np.concatenate([beside, more])
        found[beside] = 1 + _fitted(start[beside], end[beside])
    return found


def _apart(start: np.ndarray, end: np.ndarray) -> bool:
    """Whether each ends before the next one starts, or as it does."""
    order = np.lexsort((end, start))
    return bool((end[order][:-1] <= start[order][1:]).all())


def _fitted(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """The first lane from 0 that is free, for each in the order of their starts."""
    free_from: list = []
    found = np.zeros(len(start), int)
    for index in np.lexsort((end, start)):
        lane = _free(free_from, start[index])
        free_from[lane : lane + 1] = [end[index]]
        found[index] = lane
    return found


def _free(free_from: Sequence, start) -> int:
    return next((lane for lane, since in enumerate(free_from) if since <= start), len(free_from))
