"""Traces as a timeline that Perfetto (ui.perfetto.dev) or chrome://tracing shows: a process a run, threads a rank.

`python -m sim.timeline TRACE... -o FILE` makes one of recorded traces.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from sim import command
from sim.base.files import check_outputs, write_text

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from sim.recording.traces import Header, Trace

ENDINGS = (".json",)
ARGUMENTS = ["step", "samples", "bytes", "peer", "version"]  # fields that a click on an activity shows
ROUTE = ["step", "from", "to", "nth"]  # a send and a receive that agree in these are one message
MAIN = 0  # the lane of a rank's own sequence
# Earlier names are more of a rank's own sequence. Of two that overlap, the later name leaves the main lane, in the whole trace.
ORDER = (
    *("compute", "sleep", "input", "copy to device", "pack", "copy to host"),
    *("evaluate", "checkpoint", "update", "reduce", "wait", "receive", "send"),
)
DIGITS = 3  # of a microsecond: the viewers count in nanoseconds


def parser() -> command.Parser:
    """The command line."""
    parser = command.Parser(
        prog="sim.timeline", description="Make a timeline for Perfetto or chrome://tracing of traces."
    )
    parser.add_argument(
        "traces",
        nargs="+",
        metavar="TRACE",
        help="a trace of sim.run or real.run, .parquet or .jsonl; several are laid side by side",
    )
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="the timeline to write, .json")
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run the command."""
    given = parser().parse_args(argv)
    from sim.recording.traces import read

    check_outputs([("--output", given.output, ENDINGS)], given.traces)
    found = [(path, read(path)) for path in given.traces]
    write_many([(run_name(trace, path), trace) for path, trace in found], given.output)
    return 0


def write_many(runs: list[tuple[str, Trace]], path: str | Path) -> None:
    """Write labelled runs side by side, such as a simulated and a measured one, each from its own time 0.

    The Trace Event Format (Duca and Sinclair, 2016): "X" events with ts and dur in microseconds, and an arrow ("s" to
    "f") from the start of each send to the receive of the same message.

    Raises:
        WrongSetting: a folder that cannot be written.
    """
    ids = count(1)
    events = [event for pid, (label, trace) in enumerate(runs, 1) for event in _run(pid, label, trace, ids)]
    other = {"runs": [{"label": label, **asdict(trace.header)} for label, trace in runs]}
    text = json.dumps({"traceEvents": events, "displayTimeUnit": "ms", "otherData": other})
    write_text(path, text)


def run_name(trace: Trace, path: str | Path) -> str:
    """The name of a trace beside others."""
    return f"{trace.header.protocol}, {trace.header.world} ({path})"


def rank_name(rank: int, header: Header) -> str:
    """The name of a rank in pictures of such a job, with its number in traces and in laws of slow ranks."""
    if header.workers == 0:
        return "process"
    if rank >= header.servers:
        return f"worker {rank}"
    return "master" if header.servers == 1 else f"server {rank}"


def _run(pid: int, label: str, trace: Trace, ids: Iterator[int]) -> Iterator[dict]:
    rows = trace.rows.sort_values(["start_s", "end_s"], kind="stable", ignore_index=True)
    start_us, end_us = ((rows[name] * 1e6).round(DIGITS) for name in ("start_s", "end_s"))
    rows = rows.assign(start_us=start_us, dur_us=(end_us - start_us).clip(lower=0).round(DIGITS))
    rows["lane"] = lanes(rows.assign(start=_whole(start_us), end=_whole(end_us)))
    used = {(rank, MAIN) for rank in range(trace.header.ranks)} | set(zip(rows["rank"], rows["lane"], strict=True))
    threads = {lane: thread for thread, lane in enumerate(sorted(used), 1)}  # to the viewers 0 is the idle thread
    rows["thread"] = [threads[found] for found in zip(rows["rank"], rows["lane"], strict=True)]
    yield from _names(pid, label, threads, trace.header)
    yield from _activities(pid, rows)
    yield from _arrows(pid, rows, ids)


def _whole(times_us: pd.Series) -> pd.Series:
    """Times as integers, as viewers count them."""
    return (times_us * 10**DIGITS).round().astype("int64")


def _names(pid: int, label: str, threads: dict[tuple[int, int], int], header: Header) -> Iterator[dict]:
    yield _name(pid, 1, "process_name", name=label)
    yield _name(pid, 1, "process_sort_index", sort_index=pid)
    for (rank, lane), thread in threads.items():
        beside = "" if lane == MAIN else ", beside" if lane == 1 else f", beside {lane}"
        yield _name(pid, thread, "thread_name", name=rank_name(rank, header) + beside)
        yield _name(pid, thread, "thread_sort_index", sort_index=thread)


def _name(pid: int, thread: int, what: str, **value) -> dict:
    return {"ph": "M", "pid": pid, "tid": thread, "name": what, "args": value}


def _activities(pid: int, rows: pd.DataFrame) -> Iterator[dict]:
    columns = _columns(rows, ["activity", "thread", "start_us", "dur_us", *ARGUMENTS])
    for activity, thread, start_us, dur_us, *arguments in zip(*columns, strict=True):
        what = dict(zip(ARGUMENTS, arguments, strict=True))
        yield {"ph": "X", "pid": pid, "tid": thread, "name": activity, "ts": start_us, "dur": dur_us, "args": what}


def _columns(rows: pd.DataFrame, names: list[str]) -> list[list]:
    return [rows[name].tolist() for name in names]  # Python's own numbers, which JSON can say


def _arrows(pid: int, rows: pd.DataFrame, ids: Iterator[int]) -> Iterator[dict]:
    sent, received = _ends(rows, "send", "rank", "peer"), _ends(rows, "receive", "peer", "rank")
    messages = sent.merge(received, on=ROUTE, suffixes=("_sent", "_received"))
    ends = _columns(messages, ["thread_sent", "thread_received", "start_us_sent", "start_us_received"])
    for sender, receiver, sent_us, received_us in zip(*ends, strict=True):
        both = {"pid": pid, "name": "message", "cat": "message", "id": next(ids)}
        yield {"ph": "s", "tid": sender, "ts": sent_us, **both}
        yield {"ph": "f", "bp": "e", "tid": receiver, "ts": received_us, **both}


def _ends(rows: pd.DataFrame, activity: str, source: str, destination: str) -> pd.DataFrame:
    """One end of every message: its route, its thread and when the activity began; `nth` of those between two ranks in a step."""
    ends = rows.loc[rows["activity"] == activity, ["step", source, destination, "thread", "start_us"]]
    ends = ends.rename(columns={source: "from", destination: "to"})
    return ends.assign(nth=ends.groupby(["step", "from", "to"]).cumcount())


def lanes(rows: pd.DataFrame) -> np.ndarray:
    """The lane of each activity, shape (rows,): MAIN, or a number from 1. On each, activities follow one another.

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
        lane = next((one for one, since in enumerate(free_from) if since <= start[index]), len(free_from))
        free_from[lane : lane + 1] = [end[index]]
        found[index] = lane
    return found


if __name__ == "__main__":
    command.run("sim.timeline", main)
