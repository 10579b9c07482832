"""```{result} NAME``` is replaced by a result of docs/data; ```{summary}``` by one line for each, as in README.md.

The table of README.md: `python docs/extensions/results.py`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
DATA = HERE.parent / "data"


class Line(NamedTuple):
    """A line of the summary: the row of a table of floors, or None for all of them."""

    said: str
    experiment: str
    table: int = 0
    row: str | None = None


SUMMARY = (
    Line("sleeps dominate", "validate", 0, "sleeps dominate"),
    Line("fewer ranks than cores", "validate", 0, "neither"),
    Line("more ranks than cores", "validate", 0, "cores fought for"),
    Line("models, laws and protocols that were not fitted", "validate", 1, "all"),
    Line("TensorFlow's servers, sleeps dominate", "servers", 0, "sleeps dominate"),
    Line("TensorFlow's servers, fewer ranks than cores", "servers", 0, "neither"),
    Line("TensorFlow's servers, more ranks than cores", "servers", 0, "cores fought for"),
    Line("allreduce, sleeps dominate", "collectives", 0, "sleeps dominate"),
    Line("allreduce, fewer ranks than cores", "collectives", 0, "neither"),
    Line("allreduce, more ranks than cores", "collectives", 0, "cores fought for"),
)
HEADINGS = ("runs", "experiment", "cells", "mean error of a step", "noise floor", "90 % intervals that hold")


def kept(name: str):
    """The result of an experiment that is kept, or None."""
    from experiments.kit.kept import read

    path = DATA / f"{name}.json"
    return read(path) if path.exists() else None


def summary() -> str:
    """One line for each kind of runs, as a Markdown table."""
    rows = []
    for line in SUMMARY:
        table = kept(line.experiment).tables[line.table]
        cells = dict(zip(table.columns, next(row for row in table.rows if row[0] == line.row), strict=True))
        figures = [cells[name] for name in ("cells", "step", "floor", "covered by 90 %")]
        rows.append([line.said, f"`{line.experiment}`", *figures])
    return markdown(list(HEADINGS), [*rows, *_of_testbed(), _of_published()])


def _of_testbed() -> list[list[str]]:
    """The places of each rate: no interval is printed there."""
    table = kept("testbed").tables[0]
    everything, floors = (next(row for row in table.rows if row[0] == name) for name in ("all", "repeats differ by"))
    return [
        [
            f"3 and 4 hosts, links of {rate}",
            "`testbed`",
            error.split(" of ")[1].rstrip(")"),
            error.split(" ")[0],
            floor,
            "-",
        ]
        for rate, error, floor in list(zip(table.columns, everything, floors, strict=True))[1:-1]
    ]


def _of_published() -> list[str]:
    """The anytime run of ten machines: measured, its halves, predicted, low to high, error, without sleeps."""
    row = next(row for row in kept("published").tables[1].rows if row[0] == "mean step, s")
    measured, (low, high) = float(row[1]), map(float, row[4].split(" to "))
    return [
        "amb on 10 EC2 machines",
        "`published`",
        "1",
        row[5].lstrip("+-"),
        row[2],
        f"{int(low <= measured <= high)} of 1",
    ]


def markdown(headings: list[str], rows: list[list[str]]) -> str:
    """A table; the first column is text, the others are numbers."""
    cells = [[cell.replace("|", "\\|") for cell in row] for row in (headings, *rows)]
    marks = ["---", *["---:"] * (len(headings) - 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (cells[0], marks, *cells[1:]))


def page(name: str) -> str:
    """An experiment as Markdown: its question, command, date, what was fitted, and all that it printed."""
    from experiments.run import QUESTIONS

    question, result = QUESTIONS[name], kept(name)
    head = f"## {name}\n\n*{question.asked}* It takes {question.takes} on 2 cores.\n"
    if result is None:
        return f"{head}\nNo result is kept. `python -m experiments.run {name}` prints it.\n"
    about = f"`{result.command}`, {result.date}, {result.machine}. Fitted: {result.fitted}."
    return "\n\n".join([head, about, *_parts(result.shown)])


def _parts(shown: list) -> list[str]:
    """Tables as tables, and lines that follow one another as one block."""
    found: list[str] = []
    lines: list[str] = []
    for part in [*shown, None]:
        if isinstance(part, str):
            lines.append(part)
            continue
        if lines:
            found.append("```text\n" + "\n".join(lines) + "\n```")
            lines = []
        if part is not None:
            title = f"**{part.title}**\n\n" if part.title else ""
            found.append(title + markdown([column or " " for column in part.columns], part.rows))
    return found


def setup(app) -> dict:
    from sphinx.util.docutils import SphinxDirective

    class Result(SphinxDirective):
        """One experiment."""

        required_arguments = 1

        def run(self):
            self.env.note_dependency(str(DATA / f"{self.arguments[0]}.json"))
            return self.parse_text_to_nodes(page(self.arguments[0]), allow_section_headings=True)

    class Summary(SphinxDirective):
        """The table of README.md."""

        def run(self):
            return self.parse_text_to_nodes(summary())

    app.add_directive("result", Result)
    app.add_directive("summary", Summary)
    return {"parallel_read_safe": True}


if __name__ == "__main__":
    sys.path.insert(0, str(HERE.parents[1]))
    print(summary())
