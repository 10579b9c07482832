"""Seconds of an activity in a trace, by rank and step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.base.errors import WrongSetting
from sim.base.nearest import nearest

if TYPE_CHECKING:
    import pandas as pd

    from sim.recording.traces import Trace

SLEEP = "sleep"


def by_rank_and_step(trace: Trace, activity: str, first_step: int = 0) -> pd.DataFrame:
    """The seconds of each rank (rows) in each step (columns) from `first_step` on; NaN where a rank has none.

    A rank that computes in a step and does not sleep in it sleeps 0 seconds.

    Raises:
        WrongSetting: the trace has no such activity.
    """
    rows, known = trace.rows, sorted(set(trace.rows["activity"]))
    if activity not in known:
        raise WrongSetting(
            "--column", activity, f"an activity of the trace: {', '.join(known)}{nearest(activity, known)}"
        )
    rows = rows[rows["step"] >= first_step]
    counted = rows[rows["activity"].isin(["compute", SLEEP] if activity == SLEEP else [activity])]
    seconds = (counted["end_s"] - counted["start_s"]).where(counted["activity"] == activity, 0.0)
    return seconds.groupby([counted["rank"], counted["step"]]).sum().unstack("step").sort_index()
