"""The page of predicted against measured cells: for validate, and whatever else compares so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from experiments.reports.validate_report import by_regime, figures_of, groups_of, record
from sim.answers.summary import number, seconds
from sim.reports import Cell, Code, Figure, Section, Table, Text, page
from sim.reports.figures import scatter
from sim.reports.parts import Part

if TYPE_CHECKING:
    from experiments.kit.comparison import Comparison

SCHEMA = "validate/1"
GROUPS = ("", "cells", "step", "floor", "floor median", "samples/s", "samples a step", "covered", "of runs")
CELLS = ("cell", "step", "at least", "at most", "real step", "error", "floor", "samples/s", "real samples/s", "error")


def validate_page(
    title: str, rows: Sequence[Comparison], further: Sequence[Comparison], fitted: str, command: str
) -> str:
    """The HTML of a comparison.

    Args:
        rows: cells, which are summed up by regime.
        further: others, which are summed up by protocol.
        fitted: a description of the fitted runs.
        command: that makes the page.
    """
    groups = {name: figures_of(of) for name, of in by_regime(list(rows)).items()}
    others = {name: figures_of(of) for name, of in groups_of(further).items()} if further else {}
    every = figures_of([*rows, *further])
    data = {
        "schema": SCHEMA,
        "cells": [record(row) for row in [*rows, *further]],
        "regimes": groups,
        "others": others,
        "all": every,
    }
    said = f"A mean step is predicted within {every['step_error']:.1%} on average, and its repeats differ by {every['floor']:.1%}."
    covered = f"The 90 % intervals hold {every['covered']} of {every['of']} runs."
    answer: list[Part] = [
        Text(f"{said} {covered}", "answer"),
        _groups("regimes", groups),
        *([_groups("others", others)] if others else []),
    ]
    answer.append(
        Text(
            f"Mean absolute errors. Floor: how far a repeat falls from its twin. Fitted: {fitted}, other runs than these."
        )
    )
    sections = [
        Section("The answer", answer),
        Section("Predicted against measured", [_figure(rows, further)]),
        Section("Every cell", [_cells([*rows, *further])]),
        Section("Reproduce it", [Code(command)]),
    ]
    return page(title, sections, data)


def _groups(name: str, groups: dict[str, dict]) -> Table:
    shares = ("step_error", "floor", "floor_median", "throughput_error", "samples_error")
    rows: list[Sequence[str | Cell]] = [
        (
            group,
            Cell(str(of["cells"]), of["cells"]),
            *(_share(of[key]) for key in shares),
            Cell(str(of["covered"]), of["covered"]),
            Cell(str(of["of"]), of["of"]),
        )
        for group, of in groups.items()
    ]
    return Table(GROUPS, rows, name)


def _cells(rows: Sequence[Comparison]) -> Table:
    lines: list[Sequence[str | Cell]] = []
    for row in rows:
        low_s, high_s = row.interval_s()
        times = [Cell(seconds(value), value) for value in (row.said(), low_s, high_s, row.real())]
        speeds = [Cell(number(value), value) for value in (row.said("throughput"), row.real("throughput"))]
        errors = _signed(row.error()), _share(row.floor), *speeds, _signed(row.error("throughput"))
        lines.append((row.cell.label, *times, *errors))
    return Table(CELLS, lines, "cells")


def _figure(rows: Sequence[Comparison], further: Sequence[Comparison]) -> Figure:
    groups = by_regime(list(rows)) | ({"other models and laws": list(further)} if further else {})
    points = {
        name: {
            "x": [row.real() * 1e3 for row in of],
            "y": [row.said() * 1e3 for row in of],
            "pairs": [tuple(end * 1e3 for end in row.interval_s()) for row in of],
            "text": [row.cell.label for row in of],
        }
        for name, of in groups.items()
    }
    axes = "measured mean step, ms", "predicted mean step, ms"
    caption = "A point is a cell; its bar is where the mean step of one more run falls nine times in ten. On the line both are equal."
    return scatter(points, axes, caption, "predicted_measured")


def _share(value: float) -> Cell:
    return Cell(f"{value:.2%}", value)


def _signed(value: float) -> Cell:
    return Cell(f"{value:+.1%}", value)
