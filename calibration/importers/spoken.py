"""Tables among the lines of a job's log: each row may have before it what a launcher says of its rank (srun -l, mpirun --tag-output)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from calibration.importers import framework_logs, logs
from calibration.importers.table_names import NAMES, RANK, SECONDS, STEP, words
from sim.base import tables
from sim.base.errors import WrongSetting

if TYPE_CHECKING:
    import pandas as pd

    from calibration.importers.about import About

NAME = re.compile(r"[A-Za-z_][^:=,;\t|]{0,60}")
MOST_TEXT = 2**28  # bytes of a log
SPEAKER = "rank by the launcher"  # a column


def read(path: Path, what: str, columns: Sequence[str], about: About) -> tuple[pd.DataFrame, list[str]]:
    """The table in a file, or in its lines that a framework printed, and notes; with a column SPEAKER, where a launcher says whose each is.

    Args:
        what, columns: see sim.base.tables.read.
        about: what a log does not say.

    Raises:
        WrongSetting: see sim.base.tables.read; a log with neither a heading nor lines of a framework.
    """
    launched = path.name.endswith((".csv", ".csv.gz")) and logs.speaker(
        logs.beginning(path, 100).decode(errors="replace")
    )
    if str(path).endswith(tables.ENDINGS) and not launched:
        return tables.read(path, what, columns), []
    allowed = f"rows with the columns {', '.join(columns)}"
    lines = [line for line in logs.lines(path, what, allowed, MOST_TEXT) if line.strip()]
    said = [(logs.speaker(line), logs.without_speaker(line)) for line in lines]
    heading = next((line for _, line in said if _is_heading(line, about)), None)
    if heading is None:
        if found := framework_logs.table_of(lines, about, str(path)):
            return found
        raise WrongSetting(
            what, str(path), f"{allowed}; or lines with times or rates of steps, such as those of {framework_logs.WHAT}"
        )
    mark = tables.apart(heading)
    rows = [(rank, line) for rank, line in said if line.count(mark) == heading.count(mark) and line != heading]
    found = tables.parsed([heading, *(line for _, line in rows)], path)
    others = sum(line.count(mark) != heading.count(mark) for _, line in said)
    notes = [f"{others} of {len(lines)} lines left out: no rows of the table"] * (others > 0)
    if all(rank for rank, _ in rows):
        found[SPEAKER] = [int(rank) for rank, _ in rows]
    return found, notes


def _is_heading(line: str, about: About) -> bool:
    """Whether the cells of a line are names, and the step, the rank or a column that the user names is among them."""
    cells = [cell.strip(" \"'") for cell in line.split(tables.apart(line))]
    if len(cells) < 2 or not all(NAME.fullmatch(cell) for cell in cells):
        return False
    known = {*NAMES[STEP], *NAMES[RANK]}
    return any(words(cell) in known or cell in about.names.columns.values() for cell in cells[:-1]) or SECONDS in cells
