"""What of a run does not depend on its times, on which worlds that run one text must agree; and the steps of a run without a master."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from sim.base.activity import NOBODY
from sim.recording.traces import Trace


class Gradients(NamedTuple):
    """Samples of all gradients of a run.

    Args:
        computed: by all workers.
        applied: in the updates of rank 0; of a user's text without a master, in those of any rank, each once.
    """

    computed: int
    applied: int


def gradients(trace: Trace) -> Gradients:
    """The samples that were computed, and those that were applied."""
    samples, activity = trace.rows["samples"], trace.rows["activity"]
    computed, applied = int(samples[activity == "compute"].sum()), (activity == "update") & (trace.rows["rank"] == 0)
    if not trace.header.by_all_ranks:
        return Gradients(computed, int(samples[applied].sum()))
    rounds = rounds_of(trace)
    return Gradients(computed, max(rounds.largest, int(rounds.samples.sum())))


class Rounds(NamedTuple):
    """The complete steps of a run.

    Args:
        ends_s: when each rank has ended each, shape (steps, ranks): where a wait of no time for nobody says so; else with its last
            update, or its last activity if it has made none.
        samples: whose gradients are applied anywhere, shape (steps,); one that several ranks apply counts once.
        largest: samples that any one rank applies in the run.
    """

    ends_s: np.ndarray
    samples: np.ndarray
    largest: int


def rounds_of(trace: Trace) -> Rounds:
    """The complete steps of a run, up to the first that rank 0 has not updated in."""
    rows, ranks = trace.rows, range(trace.header.ranks)
    updates = rows[rows["activity"] == "update"]
    updated_s, ended_s = _last_s(updates, ranks), _last_s(rows, ranks)
    marks = rows[(rows["activity"] == "wait") & (rows["peer"] == NOBODY) & (rows["start_s"] == rows["end_s"])]
    said_s = _last_s(marks, ranks).reindex(ended_s.index)
    steps = _complete(updated_s, ended_s, trace.header.warmup + trace.header.steps)
    ends_s = said_s.fillna(updated_s.reindex(ended_s.index)).fillna(ended_s).iloc[:steps].to_numpy(float)
    applied, computed = (
        of.groupby("step")["samples"].sum().reindex(range(steps), fill_value=0).to_numpy(int)
        for of in (updates, rows[rows["activity"] == "compute"])
    )
    each = updates.groupby("rank")["samples"].sum()
    return Rounds(np.maximum.accumulate(ends_s), np.minimum(applied, computed), int(each.max()) if len(each) else 0)


def _last_s(rows: pd.DataFrame, ranks: range) -> pd.DataFrame:
    """When the last of some activities ended, by step and rank; NaN where there is none."""
    return rows.groupby(["step", "rank"])["end_s"].max().unstack().reindex(columns=ranks)


def _complete(updated_s: pd.DataFrame, ended_s: pd.DataFrame, rounds: int) -> int:
    """The number of steps that all ranks have ended: they have updated in it, or have gone on to the next."""
    rounds = min(rounds, int(ended_s.index.max()) + 2)  # of a run that was cut short
    of_first = updated_s[0].reindex(range(rounds)).notna().to_numpy()
    updates = rounds if of_first.all() else int(of_first.argmin())
    if updates == rounds:
        return rounds
    last = [max(_last(updated_s[rank]), _last(ended_s[rank]) - 1) for rank in ended_s.columns]
    return min(updates, min(last) + 1)


def _last(of_steps: pd.Series) -> int:
    found = of_steps.last_valid_index()
    return -1 if found is None else int(found)
