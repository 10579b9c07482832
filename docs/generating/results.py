"""Results of experiments that are kept in docs/data, as pages show them, and the summary: a line for each kind of runs.

As a program, this file prints the summary, which README.md has.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from experiments.kit.kept import Kept, read
from experiments.run import QUESTIONS

HERE = Path(__file__).parent
DATA = HERE.parent / "data"
LINE = 80  # characters of a line of what was printed


class Line(NamedTuple):
    """A line of the summary: the rows of a table of floors that it sums up."""

    said: str
    experiment: str
    table: int
    rows: tuple[str, ...]


REGIMES = ("sleeps dominate", "neither", "cores fought for")
SUMMARY = (
    Line("our texts over MPI", "validate", 0, REGIMES),
    Line("models, laws, protocols that were not fitted", "validate", 1, ("all",)),
    Line("TensorFlow's parameter servers", "servers", 0, REGIMES),
    Line("allreduce by MPI, Horovod, TensorFlow; Parallax's hybrid", "collectives", 0, REGIMES),
    Line("PyTorch's DistributedDataParallel, by Gloo", "ddp", 0, REGIMES),
)
COVERED = "covered by 90 %"  # a column that tables of regimes have
OF_PLACES = "Mean absolute error of a step (places"  # how the title of the table of rates begins
EVIDENCE = (  # a line of the summary, its sources as `evidence` calls them, and how titles of their tables end
    ("published tables, larger sizes held out: sources for choices", "choice", ("choice",)),
    (
        "published tables: sources held out, most seen before the last choice",
        "held out or kept back",
        ("held out", "kept back", "second list"),
    ),
    ("of these, predicted by nobody until all was chosen", "kept back of the second list", ("second list",)),
)
HEADINGS = ("runs", "experiment", "cells", "mean error of a step", "noise floor", "90 % intervals cover")


def kept(name: str) -> Kept:
    """The result of an experiment that is kept."""
    return read(DATA / f"{name}.json")


def summary() -> str:
    """One line for each kind of runs, as a Markdown table."""
    lines = [*(_summed_up(line) for line in SUMMARY), _of_testbed(), _of_learning(), _of_published(), *_of_evidence()]
    return markdown(list(HEADINGS), lines)


def _summed_up(line: Line) -> list[str]:
    """Means over all cells, of means over the cells of each row."""
    table = [table for table in kept(line.experiment).tables if COVERED in table.columns][line.table]
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows if row[0] in line.rows]
    cells = [int(row["cells"]) for row in rows]
    error, floor = (_mean([row[name] for row in rows], cells) for name in ("step", "floor"))
    covered = [row[COVERED].split(" of ") for row in rows]
    held, several = (sum(int(pair[index]) for pair in covered) for index in (0, 1))
    return [line.said, f"`{line.experiment}`", str(sum(cells)), error, floor, f"{held} of {several}"]


def _mean(shares: list[str], weights: list[int]) -> str:
    """Of shares in percent."""
    whole = sum(float(share.rstrip("%")) * weight for share, weight in zip(shares, weights, strict=True))
    return f"{whole / sum(weights):.1f}%"


def _of_testbed() -> list[str]:
    """All places. Each rate has as many places as the others."""
    result = kept("testbed")
    table = next(table for table in result.tables if table.title.startswith(OF_PLACES))
    everything, floors = (next(row for row in table.rows if row[0] == name) for name in ("all", "repeats differ by"))
    error, _, places = everything[-1].partition(" (")
    floor = _mean(floors[1:4], [1, 1, 1])
    said = "3 and 4 hosts, 100 Mbit/s to 1 Gbit/s"
    hold = next(part for part in result.shown if isinstance(part, str) and part.startswith("90 % intervals hold"))
    held = hold.split(": ")[1].removesuffix(" runs")
    return [said, "`testbed`", places.split(" of ")[1].rstrip(")"), error, floor, held]


def _of_learning() -> list[str]:
    """All protocols, models, laws and accuracies."""
    table = next(
        table for table in kept("learning").tables if table.title.startswith("Mean absolute error of the time")
    )
    # Intervals are of runs with an order of data of their own, as the command has them.
    _, rows, error, floor, _, held, _ = table.rows[-1]
    return ["time to an accuracy, 8 protocols over MPI", "`learning`", rows, error, floor, held]


def _of_published() -> list[str]:
    """The anytime run of ten machines: measured, its halves, predicted, low to high, error, without sleeps."""
    row = next(row for row in kept("published").tables[1].rows if row[0] == "mean step, s")
    measured, (low, high) = float(row[1]), map(float, row[4].split(" to "))
    held = f"{int(low <= measured <= high)} of 1"
    return ["`amb` on 10 EC2 machines (2019)", "`published`", "1", row[5].lstrip("+-"), row[2], held]


def of_sources(titles: tuple[str, ...]) -> list[dict[str, str]]:
    """A row for each source of published tables, of the tables whose titles end so."""
    tables = [
        one for one in kept("evidence").tables if one.title.startswith("Further sources") and one.title.endswith(titles)
    ]
    return [dict(zip(table.columns, row, strict=True)) for table in tables for row in table.rows]


def _of_evidence() -> Iterator[list[str]]:
    """Rows of published tables: they do not say how far two equal runs differ. Coverage is the mean of sources."""
    result = kept("evidence")
    for said, split, titles in EVIDENCE:
        sources = of_sources(titles)
        rows = [int(source["rows"]) for source in sources]
        error = _mean([source["mean abs. error"] for source in sources], rows)
        start = f"{len(sources)} further sources, {split}: "
        line = next(part for part in result.shown if isinstance(part, str) and part.startswith(start))
        held = line.partition("hold of rows ")[2].split()[1]
        yield [
            f"{said} ({len(sources)})",
            "`evidence`",
            str(sum(rows)),
            error,
            "not published",
            f"{held}, mean of sources",
        ]


def markdown(headings: list[str], rows: list[list[str]]) -> str:
    """A table; columns of numbers are to the right."""
    cells = [[cell.replace("|", "\\|") for cell in row] for row in (headings, *rows)]
    marks = ["---:" if all(_is_number(cell) for cell in column) else "---" for column in zip(*cells[1:], strict=True)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (cells[0], marks, *cells[1:]))


def _is_number(cell: str) -> bool:
    return not cell or cell[0] in "+-0123456789" or cell == "not published"


def pages() -> str:
    """All results that are kept; those without a question are of experiments that were."""
    names = [*QUESTIONS, *sorted(path.stem for path in DATA.glob("*.json") if path.stem not in QUESTIONS)]
    return "\n\n".join(page(name) for name in names if (DATA / f"{name}.json").exists())


def page(name: str) -> str:
    """An experiment as Markdown: its question, command, date, what was fitted, and all that it printed."""
    question, result = QUESTIONS.get(name), kept(name)
    asked = f"\n*{question.asked}* It takes {question.takes} on 2 cores.\n" if question else ""
    head = f"## {name}\n{asked}"
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
            found.append("```text\n" + "\n".join(map(_wrapped, lines)) + "\n```")
            lines = []
        if part is not None:
            title = f"**{part.title}**\n\n" if part.title else ""
            found.append(title + markdown([column or " " for column in part.columns], part.rows))
    return found


def _wrapped(line: str) -> str:
    return textwrap.fill(line, LINE, subsequent_indent="    ", break_long_words=False)


if __name__ == "__main__":
    print(summary())
