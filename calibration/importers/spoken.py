"""Tables among the lines of a job's log: each row may have before it what a launcher says of its rank (srun -l, mpirun --tag-output)."""

from __future__ import annotations

import gzip
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from calibration.importers import logs
from sim.base import tables
from sim.base.errors import WrongSetting
from sim.base.files import reading

if TYPE_CHECKING:
    import pandas as pd

ENDINGS = (".log", ".out", ".txt")
MOST_TEXT = 2**28  # bytes of a log
SPEAKER = "rank by the launcher"  # a column


def read(path: Path, what: str, columns: Sequence[str]) -> tuple[pd.DataFrame, list[str]]:
    """The table in a file, and notes; with a column SPEAKER, where a launcher says whose each row is.

    Args:
        what, columns: see sim.base.tables.read.

    Raises:
        WrongSetting: see sim.base.tables.read; a log without a heading.
    """
    if not str(path).endswith(ENDINGS) and not _launched(path, what):
        return tables.read(path, what, columns), []
    allowed = f"rows with the columns {', '.join(columns)}"
    lines = [line for line in logs.lines(path, what, allowed, MOST_TEXT) if line.strip()]
    said = [(logs.speaker(line), logs.without_speaker(line)) for line in lines]
    heading = next((line for _, line in said if "," in line), None)
    if heading is None:
        raise WrongSetting(what, str(path), allowed)
    rows = [(rank, line) for rank, line in said if line.count(",") == heading.count(",") and line != heading]
    found = _parsed([heading, *(line for _, line in rows)], what, path, allowed)
    others = sum(line.count(",") != heading.count(",") for _, line in said)
    notes = [f"{others} of {len(lines)} lines left out: no rows of the table"] * (others > 0)
    if all(rank for rank, _ in rows):
        found[SPEAKER] = [int(rank) for rank, _ in rows]
    return found, notes


def _parsed(lines: list[str], what: str, path: Path, allowed: str) -> pd.DataFrame:
    import pandas as pd

    try:
        return pd.read_csv(io.StringIO("\n".join(lines)))
    except (ValueError, OverflowError, RecursionError) as error:
        raise WrongSetting(what, str(path), f"{allowed} ({' '.join(str(error).split())[:100]})") from error


def _launched(path: Path, what: str) -> bool:
    """Whether a launcher has put a rank before the first line of a CSV."""
    if not str(path).endswith((".csv", ".csv.gz")):
        return False
    with reading(what, path), open(path, "rb") as raw:
        packed = raw.read(2) == logs.PACKED
        raw.seek(0)
        try:
            with gzip.open(raw) if packed else raw as file:
                first = file.readline(10_000)
        except (EOFError, gzip.BadGzipFile):
            return False  # which the table's reader says
    return bool(logs.speaker(first.decode(errors="replace")))
