"""The trace: one row an activity, the same for simulated and measured runs; parquet or JSON lines by the file's ending.

A file holds a checksum of its header and its rows, so that damage is noticed. The parts of a growing trace have none:
a flipped digit or a lost line is noticed only if it leaves an impossible row.
"""

from __future__ import annotations

import json
import os
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field, ValidationError

from sim.base.activity import ACTIVITIES, HEADER_FILE, NOBODY, Activity, facts_file, part_file
from sim.base.errors import WrongSetting, nearest
from sim.base.files import check_ending, reading, text_of, write_whole
from sim.base.home import need
from sim.base.models import validator
from sim.base.ranges import check_kind
from sim.job import replay
from sim.job.header import LONGEST_RUN_S, WRITTEN, Header, Training

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ACTIVITIES", "HEADER_FILE", "NOBODY", "Activity", "Header", "Trace", "Training", "part_file", "read"]

SLEEP = "sleep"
CHECKSUM = "crc32"
SECONDS, COUNTS = ("start_s", "end_s"), ("rank", "step", "samples", "bytes", "peer", "version")
TYPES = {name: "float64" if name in SECONDS else "int64" for name in (*SECONDS, *COUNTS)}
WHOLE = Annotated[int, Field(ge=-(2**63), lt=2**63)]  # those that a column holds
KINDS = {"start_s": float, "end_s": float, "activity": str}
ROW: Any = tuple.__class_getitem__(tuple(KINDS.get(name, WHOLE) for name in Activity._fields))
EARLIEST_S = -60.0  # of a row: clocks of several hosts differ a little
OF_A_BATCH = ("input", "compute")
MOST_MINIBATCHES = 10**6  # of each rank in one update
MOST_OF_A_WINDOW = 10**4  # steps of a worker between two updates by the clock
MOST = 10**15  # bytes of a row: a thousand of them can be added up
# Rows that any file may have. More are allowed at a byte each, because a small file of equal rows may fill the memory.
SMALL = 10**6


@dataclass
class Trace:
    """A header and its activities, in a table with the columns of `Activity`, ordered by end_s."""

    header: Header
    rows: pd.DataFrame

    @classmethod
    def of(cls, header: Header, activities: list[Activity]) -> Trace:
        """A trace of activities in any order."""
        import pandas as pd

        rows = pd.DataFrame(activities, columns=list(Activity._fields))
        return cls(header, rows.sort_values(["end_s", "rank", "start_s"], kind="stable", ignore_index=True))

    def write(self, path: str | Path) -> None:
        """Write the file whole, or not at all; `.parquet` or `.jsonl`.

        Raises:
            WrongSetting: another ending, a folder that cannot be written, or no table of activities.
        """
        check_path(path)
        check_kind("header", self.header, Header, "the Header of a run")
        written = write_parquet if Path(path).suffix == ".parquet" else write_jsonl
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
        rows += parsed(lines[:-1], str(part))  # after the last newline there is nothing, or a cut row
    trace = Trace.of(head, [Activity(*row) for row in rows])
    check(head, trace.rows, str(folder))
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
        text, rows, said = (read_parquet if Path(path).suffix == ".parquet" else read_jsonl)(source)
    head = replay.header(text, source)
    if said != checksum(json.loads(text), rows):
        raise WrongSetting(
            "trace file", source, "a whole trace (its checksum says that this one was damaged or edited)"
        )
    check(head, rows, source)
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


def write_jsonl(head: dict, rows: pd.DataFrame, path: Path) -> None:
    """A line for the header, with the checksum, and one for each row."""
    rows = typed(rows)
    with path.open("w", encoding="utf-8") as file:
        file.write(json.dumps({CHECKSUM: checksum(head, rows), **head}) + "\n")
        file.writelines(json.dumps(row) + "\n" for row in rows.itertuples(index=False, name=None))


def write_parquet(head: dict, rows: pd.DataFrame, path: Path) -> None:
    """The header and the checksum are metadata of the schema."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = typed(rows)
    schema = pa.schema([(name, TYPES.get(name, "string")) for name in Activity._fields])
    table = pa.Table.from_pandas(rows, schema, preserve_index=False)
    about = {"header": json.dumps(head), CHECKSUM: str(checksum(head, rows))}
    pq.write_table(table.replace_schema_metadata(about), path, write_page_checksum=True)


def typed(rows: pd.DataFrame) -> pd.DataFrame:
    """The columns of `Activity` in their types, in order; WrongSetting if one is missing, or has a value of another type."""
    try:
        return rows[list(Activity._fields)].astype(TYPES)
    except (KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
        allowed = f"a table with the columns {', '.join(Activity._fields)} ({error})"
        raise WrongSetting("rows", list(getattr(rows, "columns", [rows])), allowed) from error


def checksum(head: dict, rows: pd.DataFrame) -> int:
    """The checksum of a header and its rows, which is equal in both formats of the file."""
    found = zlib.crc32(json.dumps(head).encode())
    for name in TYPES:
        found = zlib.crc32(np.ascontiguousarray(rows[name].to_numpy()).data, found)
    return zlib.crc32("\n".join(rows["activity"]).encode(), found)


def read_jsonl(source: str) -> tuple[str, pd.DataFrame, int | None]:
    """The header's text, the rows, and the checksum that the file says; WrongSetting if a line is none of these."""
    import pandas as pd

    first, *lines = Path(source).read_bytes().split(b"\n")
    try:
        head = json.loads(first)
        said = head.pop(CHECKSUM, None)
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise WrongSetting("trace file", source, WRITTEN) from error
    if lines[-1:] != [b""]:
        raise WrongSetting(
            f"{source}: line {len(lines) + 1}", "a line without an end", "a whole trace (this one was cut)"
        )
    rows = pd.DataFrame(parsed(lines[:-1], source, first=2), columns=list(Activity._fields))
    return json.dumps(head), typed(rows), said


def parsed(lines: list[bytes], source: str, first: int = 1) -> list[tuple]:
    """The rows that lines of JSON hold.

    Args:
        first: the number of the first line.

    Raises:
        WrongSetting: a line that is no row, by its number.
    """
    row, found = validator(ROW), []
    for number, line in enumerate(lines, first):
        try:
            found.append(row.validate_json(line, strict=True))
        except ValidationError as error:
            problem = error.errors()[0]
            at = problem["loc"][0] if problem["loc"] else None
            where = Activity._fields[at] if isinstance(at, int) and at < len(Activity._fields) else "row"
            given = line[:80].decode(errors="replace")
            raise WrongSetting(f"{source}: line {number}: {where}", given, problem["msg"]) from error
    return found


def read_parquet(source: str) -> tuple[bytes, pd.DataFrame, int | None]:
    """The header's text, the rows, and the checksum that the file says.

    Raises:
        WrongSetting: no parquet, a column missing, another one, or one of another type; no header.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not Path(source).is_file():
        raise FileNotFoundError(source)
    try:
        with pq.ParquetFile(source, page_checksum_verification=True) as file:
            about = _checked_schema(file, source)
            table = file.read()
        table.validate(full=True)
    except (pa.ArrowException, OSError, OverflowError, MemoryError, UnicodeDecodeError) as error:
        why = " ".join(str(error).split()) or type(error).__name__
        raise WrongSetting("trace file", source, f"{WRITTEN} ({why[:200]})") from error
    for name in Activity._fields:
        if table.column(name).null_count:
            raise WrongSetting(f"{source}: {name}", None, "a value in every row")
    said = about.get(CHECKSUM.encode(), b"")
    return about[b"header"], typed(table.to_pandas()), int(said) if said.isdigit() else None


def _checked_schema(file, source: str) -> dict[bytes, bytes]:
    """The metadata of the schema of a file whose columns are those of a trace, and not too many rows for its size."""
    import pyarrow as pa

    schema, rows = file.schema_arrow, file.metadata.num_rows
    if sorted(schema.names) != sorted(Activity._fields):
        raise WrongSetting(f"{source}: columns", ", ".join(schema.names), ", ".join(Activity._fields))
    for column in schema:
        kind = TYPES.get(column.name, "string")
        if column.type != pa.type_for_alias(kind):
            raise WrongSetting(f"{source}: {column.name}", str(column.type), kind)
    if not 0 <= rows <= max(SMALL, Path(source).stat().st_size):
        raise WrongSetting(f"{source}: rows", rows, "no more than a file of this size holds")
    about = schema.metadata or {}
    if b"header" not in about:
        raise WrongSetting("trace file", source, WRITTEN)
    return about


def check(head: Header, rows: pd.DataFrame, source: str) -> None:
    """Refuse rows that are impossible in a run with this header.

    Steps count from 0. If messages come in any order, a worker may make as many steps as there are updates, and some more. If a
    master updates by the clock, a worker may make many in each window.

    Raises:
        WrongSetting: naming the column, and the row by its number from 0.
    """
    updates = (head.steps + head.warmup + 2) * (head.workers + 1)
    ranges = {
        "start_s": (EARLIEST_S, LONGEST_RUN_S),
        "end_s": (EARLIEST_S, LONGEST_RUN_S),
        "rank": (0, head.ranks - 1),
        "step": (0, updates * (MOST_OF_A_WINDOW if "window_s" in head.settings else 1)),
        "samples": (0, max(head.batch * head.ranks * MOST_MINIBATCHES, head.test_size)),
        "bytes": (0, MOST),
        "peer": (NOBODY, head.ranks - 1),
        "version": (0, updates),
    }
    for name, (least, most) in ranges.items():
        _check(rows, rows[name].between(least, most), name, f"from {least:g} to {most:g}", source)
    _check(rows, rows["activity"].isin(ACTIVITIES), "activity", ", ".join(ACTIVITIES), source)
    _check(rows, rows["end_s"] >= rows["start_s"], "end_s", "no less than start_s", source)
    whole = ~rows["activity"].isin(OF_A_BATCH) | (rows["samples"] <= head.batch)
    _check(rows, whole, "samples", f"at most the batch, {head.batch}, where it is fetched or computed", source)


def _check(rows: pd.DataFrame, holds: pd.Series, name: str, allowed: str, source: str) -> None:
    wrong = np.flatnonzero(~holds.to_numpy(bool))
    if wrong.size:
        given = rows[name].iloc[wrong[0]]
        raise WrongSetting(f"{source}: row {wrong[0]}: {name}", getattr(given, "item", lambda: given)(), allowed)
