"""The page of predictions of rows that were held out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from experiments.extrapolation import law
from experiments.kit import kept
from sim.reports import Code, Section, Table, Text, page
from sim.reports.figures import scatter

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rich.table import Table as Printed

    from experiments.extrapolation.held import Held
    from sim.answers.ignorance import Law

SCHEMA = "evidence/1"
MOST = 150  # points of a source


def evidence_page(
    rows: Sequence[Held], of_others: dict[str, Law], printed: list[Printed | str], command: str, out: Path
) -> str:
    """The HTML.

    Args:
        of_others: by source, the law by which its rows are judged.
        printed: what the experiment prints.
        command: that makes the page.
    """
    parts = [kept.part(one, out) for one in printed]
    said = next(part for part in parts if isinstance(part, str))
    groups = {name: _points(of, of_others[name]) for name, of in law.by_source(rows).items()}
    axes = "measured, s a step", "predicted, s a step"
    caption = f"On the line both are equal. At most {MOST} rows of a source."
    told = [Text(part) for part in parts if isinstance(part, str)]
    tables = [
        Section(part.title or "Further", [Table(part.columns, part.rows, f"table_{place}", range(len(part.columns)))])
        for place, part in enumerate(parts)
        if not isinstance(part, str)
    ]
    sections = [
        Section("The answer", [Text(said, "answer")]),
        Section("Predicted against measured", [scatter(groups, axes, caption, "held_out")]),
        *tables,
        Section("In words", told),
        Section("Reproduce it", [Code(command)]),
    ]
    return page("Beyond what was measured", sections, {"schema": SCHEMA, "rows": [row._asdict() for row in rows]})


def _points(rows: Sequence[Held], its: Law) -> dict:
    few = rows[:: 1 + len(rows) // MOST]
    return {
        "x": [row.measured_s for row in few],
        "y": [row.predicted_s for row in few],
        "pairs": [law.interval_s(row, its) for row in few],
        "text": [f"{row.row}; {row.split}" for row in few],
    }
