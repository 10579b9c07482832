"""The page of a job that was trained in simulated time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite
from typing import TYPE_CHECKING

from real.learning import answer
from real.learning.learned import in_a_line
from sim.reports import figures
from sim.reports.page import page
from sim.reports.parts import Cell, Code, Figure, Part, Section, Table, Text

if TYPE_CHECKING:
    from real.learning.learned import Learned

Compared = tuple[str, "Learned"]
AXES = {"time_s": "simulated seconds", "step": "updates", "samples": "samples"}
DRAWN = (("accuracy", "time_s"), ("loss", "time_s"), ("accuracy", "step"), ("accuracy", "samples"))
CAPTION = "The first run of each; the others are in the table of runs and in the data of this page."


def learned_page(base: Learned, compared: Sequence[Compared], command: str) -> str:
    """The HTML.

    Args:
        command: that makes the page.
    """
    jobs = [("as it is", base), *compared]
    sections = [
        Section("The answer", list(_answer(base, jobs))),
        Section("Curves", [_figure(jobs, *axes) for axes in DRAWN]),
        Section("Every run", [_runs(jobs)]),
        Section("Reproduce it", [Code(command)]),
    ]
    goal = f"{base.target.of} {base.target.value:g}" if base.target else "accuracy"
    title = f"{base.scenario.protocol.name}, {base.scenario.workload.name}: time to {goal}"
    return page(title, sections, answer.as_json(base, compared))


def _answer(base: Learned, jobs: Sequence[Compared]) -> Iterator[Part]:
    yield Text(in_a_line(base), "answer")
    yield from (Text(note, "note") for note in base.notes)
    rows = [answer.cells(change, one, None if one is base else base) for change, one in jobs]
    yield Table(answer.HEADINGS, rows, "times", tuple(range(len(answer.HEADINGS))))


def _figure(jobs: Sequence[Compared], of: str, against: str) -> Figure:
    series = {
        change: (getattr(one.curves[0], against).tolist(), getattr(one.curves[0], of).tolist()) for change, one in jobs
    }
    return figures.lines(series, (AXES[against], of), CAPTION, f"{of}_vs_{against.removesuffix('_s')}")


def _runs(jobs: Sequence[Compared]) -> Table:
    rows = [
        (change, Cell(f"{run}", run), Cell(answer.reached(time_s), time_s if isfinite(time_s) else None),
         Cell(f"{steps:,}", steps), Cell(f"{one.curves[run].accuracy.max():.3f}"))
        for change, one in jobs
        for run, (time_s, steps) in enumerate(zip(one.times_s.tolist(), one.updates, strict=True))
    ]  # fmt: skip
    return Table(("job", "run", "time to target", "updates", "best accuracy"), rows, "runs")
