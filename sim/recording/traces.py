"""The trace: one row an activity, the same for simulated and measured runs; parquet or JSON lines by the file's ending.

A file holds a checksum of its header and its rows, so that damage is noticed. The parts of a growing trace have none:
a flipped digit or a lost line is noticed only if it leaves an impossible row.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sim.base.errors import WrongSetting
from sim.base.extras import need
from sim.base.files import check_ending, reading, text_of, write_whole
from sim.base.nearest import nearest
from sim.base.ranges import check_kind
from sim.job import replay
from sim.job.header import Header, Training
from sim.recording import records
from sim.recording.activity import ACTIVITIES, NOBODY, Activity
from sim.recording.parts import HEADER_FILE, facts_file, part_file

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ACTIVITIES", "HEADER_FILE", "NOBODY", "Activity", "Header", "Trace", "Training", "part_file", "read"]

SLEEP = "sleep"


@dataclass
class Trace:
    """A header and its activities, in a table with the columns of `Activity`, ordered by end_s."""

    header: Header
    rows: pd.DataFrame

    @classmethod
    def of(cls, header: Header, activities: list[Activity]) -> Trace:
        """A trace of activities in any order."""
        import pandas as pd

        return cls.ordered(header, pd.DataFrame(activities, columns=list(Activity._fields)))

    @classmethod
    def ordered(cls, header: Header, rows: pd.DataFrame) -> Trace:
        """A trace of a table of activities in any order."""
        return cls(header, rows.sort_values(["end_s", "rank", "start_s"], kind="stable", ignore_index=True))

    def write(self, path: str | Path) -> None:
        """Write the file whole, or not at all; `.parquet` or `.jsonl`.

        Raises:
            WrongSetting: another ending, a folder that cannot be written, or no table of activities.
        """
        check_path(path)
        check_kind("header", self.header, Header, "the Header of a run")
        written = records.write_parquet if Path(path).suffix == ".parquet" else records.write_jsonl
        write_whole(path, lambda file: written(asdict(self.header), self.rows, file))


def read_parts(folder: Path) -> Trace:
    """The parts that the ranks of a run have written so far; an activity that a crash cut short is dropped.

    Raises:
        WrongSetting: no parts there, or parts that are not of one run.
    """
    try:
        text = (folder / HEADER_FILE).read_bytes()
    except OSError as error:
        raise WrongSetting(
            "trace folder", str(folder), "the parts of a trace that real.run has begun, or trainsim.Recorder"
        ) from error
    head, rows = replay.header(text, str(folder / HEADER_FILE)), []
    for part in sorted(folder.glob("rank-*.jsonl")):
        with reading("trace file", part):
            lines = part.read_bytes().split(b"\n")
        rows += records.parsed(lines[:-1], str(part))  # after the last newline there is nothing, or a cut row
    trace = Trace.of(head, [Activity(*row) for row in rows])
    records.check(head, trace.rows, str(folder))
    return trace


def is_trace(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a trace, and no table."""
    if Path(path).suffix != ".parquet":
        return Path(path).suffix == ".jsonl"
    import pyarrow.parquet as pq

    try:
        return b"header" in (pq.read_schema(path).metadata or {})
    except (OSError, ValueError):  # said when the table is read
        return False


def check_path(path: str | Path) -> None:
    """Refuse a trace file whose ending says no format, before anything is run.

    Raises:
        WrongSetting: neither .parquet nor .jsonl.
        MissingExtra: what writes or reads it is not installed.
    """
    check_ending("trace file", path, (".parquet", ".jsonl"))
    need(*["pyarrow"] * (Path(path).suffix == ".parquet"))


def read(path: str | os.PathLike[str]) -> Trace:
    """The trace in a file, or in the folder of one that is growing.

    Raises:
        WrongSetting: no such file, no trace, one of another schema, one that was damaged, or rows that its header forbids.
    """
    path = text_of("trace file", path)
    if Path(path).is_dir():
        if not (Path(path) / HEADER_FILE).exists() and facts_file(Path(path), 0).exists():
            from sim.recording import recorded

            return recorded.read(Path(path))
        return read_parts(Path(path))
    check_path(path)
    source = str(path)
    with reading("trace file", path):
        text, rows, checksum = (records.read_parquet if Path(path).suffix == ".parquet" else records.read_jsonl)(source)
    head = replay.header(text, source)
    if checksum != records.checksum(json.loads(text), rows):
        raise WrongSetting(
            "trace file", source, "a whole trace (its checksum says that this one was damaged or edited)"
        )
    records.check(head, rows, source)
    return Trace(head, rows)


def by_rank_and_step(trace: Trace, activity: str, first_step: int = 0) -> pd.DataFrame:
    """The seconds of an activity, of each rank (rows) in each step (columns) from `first_step` on; NaN where a rank has none.

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
