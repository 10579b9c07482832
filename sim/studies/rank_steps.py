"""The steps of each worker in every replication, from traces: of protocols whose answer has one step for all ranks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from sim.base.errors import WrongSetting
from sim.recording.records import OF_A_BATCH

if TYPE_CHECKING:
    import pandas as pd

    from sim.answers.result import Result
    from sim.recording.traces import Trace

MOST = 10**7  # steps of workers, in all replications
BEGINS = ("sleep", *OF_A_BATCH)  # activities with which a worker begins a step


def frame(result: Result) -> pd.DataFrame:
    """A row for each worker's own step, see sim.answers.result.Result.to_frame. Every replication is simulated again, and recorded.

    Raises:
        WrongSetting: more than MOST steps, or a trace that needs too much memory.
    """
    import pandas as pd

    from sim.simulation import simulate

    done = result.done
    job = replace(result.scenario, steps=done.steps, warmup=done.warmup)
    if (count := job.workers * job.steps * done.runs) > MOST:
        raise WrongSetting(
            "by_rank", True, f"False: workers make {count:,} steps in all replications, more than {MOST:,}"
        )
    found = []
    for number in range(result.first, result.first + done.runs):
        again = simulate(job, replications=1, first=number, want_trace=True)
        found.append(_of_trace(again.kept_trace).assign(replication=number))
    return pd.concat(found, ignore_index=True)[["replication", "step", "rank", "step_s"]]


def _of_trace(trace: Trace) -> pd.DataFrame:
    """From one step's begin of a worker to its next; the last ends with what the worker did last, if it has as many steps as were asked."""
    head, rows = trace.header, trace.rows
    of_workers = rows[rows["rank"] >= head.servers]
    begun = of_workers[of_workers["activity"].isin(BEGINS)].groupby(["rank", "step"], as_index=False)["start_s"].min()
    last_s = of_workers.groupby("rank")["end_s"].max()
    following = begun.groupby("rank")["start_s"].shift(-1)
    ends_s = np.where(following.isna(), begun["rank"].map(last_s), following)
    found = begun.assign(step_s=ends_s - begun["start_s"])
    whole = following.notna() | (begun["step"] == head.warmup + head.steps - 1)
    found = found[whole & (found["step"] >= head.warmup)]
    return found.assign(step=found["step"] - head.warmup)[["step", "rank", "step_s"]]
