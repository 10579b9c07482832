"""Pauses of a recorded loop, evaluations and checkpoints: no part of a step, named by the loop or found among its updates.

Here because what records and what reads decide alike (trainsim.recording, sim.recording.recorded).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from sim.base.activity import Activity

PAUSES = ("evaluate", "checkpoint")
OWN = ("input", "compute", "wait", "update")  # of a rank's step, one after another
LONG = 5  # times the usual update, and
SHARE = 0.5  # of a usual step besides, from which a long update is taken to hold a pause,
FEWEST = 5  # among so many steps
SETS_THE_PACE = 0.1  # of a step: a loader beside computing is the slower of both if a loop waits for it so long


def beyond(update_s: Sequence[float], step_s: Sequence[float]) -> tuple[float, float]:
    """The usual update, and the seconds from which one is taken to hold a pause; infinite where there are too few."""
    if len(update_s) < FEWEST:
        return 0.0, float("inf")
    usual_s, step_s = sorted(update_s)[len(update_s) // 2], sorted(step_s)
    return usual_s, max(LONG * usual_s, usual_s + SHARE * step_s[len(step_s) // 2])


def found(rows: list[Activity], warmup: int) -> tuple[list[Activity], str | None]:
    """A rank's rows, with what is beyond the usual update in a row `evaluate` of its own; and a note on that, if there is any."""
    of_step: defaultdict[int, float] = defaultdict(float)
    for row in rows:
        of_step[row.step] += (row.end_s - row.start_s) * (row.activity in OWN and row.step >= warmup)
    updates = [row for row in rows if row.activity == "update" and row.step >= warmup]
    usual_s, least_s = beyond([row.end_s - row.start_s for row in updates], [of_step[row.step] for row in updates])
    long = [row for row in updates if row.end_s - row.start_s > least_s]
    if not long:
        return rows, None
    parts = {
        row: (
            row._replace(end_s=row.end_s - usual_s, activity="evaluate", samples=0),
            row._replace(start_s=row.end_s - usual_s),
        )
        for row in long
    }
    mean_s = sum(row.end_s - row.start_s for row in long) / len(long) - usual_s
    said = (
        f"in {len(long)} of {len(updates)} steps the update takes {LONG} times the usual {1e3 * usual_s:.3g} ms or more"
    )
    return (
        [part for row in rows for part in parts.get(row, (row,))],
        f"{said}: {1e3 * mean_s:.4g} ms more are taken as an evaluation or a checkpoint, no part of a step; recorder.pause() names them",
    )
