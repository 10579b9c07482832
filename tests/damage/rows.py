"""Rows that no run has, and rows that cannot be told from a run's, under checksums that are right."""

from collections.abc import Iterator
from dataclasses import asdict

import numpy as np
import pandas as pd

from damage.base import KINDS, ODD_COUNTS, ODD_SECONDS, Case, trace_file, whole
from sim.recording import traces


def cases() -> Iterator[Case]:
    """Of each kind of run."""
    for kind in KINDS:
        yield from _damaged(kind)


def _damaged(kind: str) -> Iterator[Case]:
    """Rows that no run has, some of which cannot be told from those of a run."""
    head, rows = asdict(whole(kind).header), whole(kind).rows

    def case(name: str, changed: pd.DataFrame) -> Case:
        return f"{kind}: {name}", trace_file(head, changed)

    for name in traces.TYPES:
        for value in ODD_SECONDS if name in traces.SECONDS else ODD_COUNTS:
            yield case(f"{name} {value} in one row", _with(rows, name, value, rows.index == len(rows) // 2))
            yield case(f"{name} {value} in all rows", _with(rows, name, value, slice(None)))
    for activity in rows["activity"].unique():
        at = rows["activity"] == activity
        yield case(f"no {activity}", rows[~at])
        yield case(f"nothing but {activity}", rows[at])
        yield case(f"{activity} takes no time", _with(rows, "end_s", rows["start_s"], at))
        yield case(f"{activity} takes a thousand years", _with(rows, "end_s", rows["start_s"] + 3e10, at))
        yield case(f"{activity} of nothing", _with(_with(rows, "samples", 0, at), "bytes", 0, at))
        yield case(f"{activity} is waiting", _with(rows, "activity", "wait", at))
    for rank in rows["rank"].unique():
        yield case(f"no rank {rank}", rows[rows["rank"] != rank])
    yield case("shuffled", rows.sample(frac=1, random_state=0))
    yield case("doubled", pd.concat([rows, rows]))
    yield case("none", rows[:0])
    yield case("one", rows[:1])
    yield case("every other", rows[::2])
    yield case("half", rows[: len(rows) // 2])
    yield case("backwards in time", rows.assign(start_s=-rows["end_s"], end_s=-rows["start_s"]))
    yield case("all at once", rows.assign(start_s=0.0, end_s=0.0))
    yield case("of one step", rows.assign(step=5))


def _with(rows: pd.DataFrame, name: str, value, at) -> pd.DataFrame:
    changed = rows.copy().reset_index(drop=True)
    changed.loc[np.asarray(at) if isinstance(at, pd.Series) else at, name] = value
    return changed
