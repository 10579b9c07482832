"""The page of what a master takes to send and to receive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from experiments.master_bandwidth import PHASES, mean_absolute, of_phase, record
from sim.answers.summary import number, seconds
from sim.reports import Cell, Code, Section, Table, Text, page
from sim.reports.figures import scatter

if TYPE_CHECKING:
    from experiments.master_bandwidth import Moved

SCHEMA = "master-bandwidth/1"
HEADINGS = ("model", "phase", "MB", "workers", "simulated", "at least", "at most", "measured", "error", "floor")
TIMES = ("simulated_s", "simulated_low_s", "simulated_high_s", "measured_s")


def master_bandwidth_page(rows: list[Moved], fitted: str, command: str) -> str:
    """The HTML.

    Args:
        fitted: a description of the fitted runs.
        command: that makes the page.
    """
    records = [record(row) for row in rows]
    errors = {phase: mean_absolute(of_phase(rows, phase)) for phase in PHASES}
    said = "; ".join(
        f"{phase}: {error:.1%} off on average, repeats differ by {floor:.1%}"
        for phase, (error, floor) in errors.items()
    )
    groups = {
        phase: {
            "x": [one["measured_s"] * 1e3 for one in of],
            "y": [one["simulated_s"] * 1e3 for one in of],
            "pairs": [(one["simulated_low_s"] * 1e3, one["simulated_high_s"] * 1e3) for one in of],
            "text": [f"{one['workload']}, {one['workers']} workers" for one in of],
        }
        for phase in PHASES
        for of in [[one for one in records if one["phase"] == phase]]
    }
    axes = "measured, ms a step", "simulated, ms a step"
    sections = [
        Section("The answer", [Text(said, "answer"), Text(f"Fitted: {fitted}; other runs than these.")]),
        Section("Simulated against measured", [scatter(groups, axes, "On the line both are equal.", "phases")]),
        Section("Every cell", [Table(HEADINGS, [_line(one) for one in records], "cells", (0, 1))]),
        Section("Reproduce it", [Code(command)]),
    ]
    return page("A master's broadcast and reduce", sections, {"schema": SCHEMA, "cells": records})


def _line(one: dict) -> Sequence[str | Cell]:
    counts = Cell(number(one["megabytes"]), one["megabytes"]), Cell(str(one["workers"]), one["workers"])
    times = (Cell(seconds(one[name]), one[name]) for name in TIMES)
    shares = Cell(f"{one['error']:+.1%}", one["error"]), Cell(f"{one['floor']:.1%}", one["floor"])
    return (one["workload"], one["phase"], *counts, *times, *shares)
