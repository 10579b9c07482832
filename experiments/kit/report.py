"""Predicted against measured: tables of cells and of groups of them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from experiments.kit import pages

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.table import Table

    from experiments.kit.comparison import Comparison

CORES_FOUGHT_FOR = "cores fought for"
SLEEPS = "sleeps dominate"
UNSHARED = "neither"


def regime(row: Comparison, cores: int) -> str:
    """The regime of a cell, one of three: by its induced sleeps, and by computing ranks per core."""
    if row.cell.stragglers != "none":
        return SLEEPS
    return CORES_FOUGHT_FOR if row.cell.workers > cores else UNSHARED


def by_regime(rows: list[Comparison]) -> dict[str, list[Comparison]]:
    """The rows of each regime, where there are any."""
    cores = os.cpu_count() or 1
    names = (SLEEPS, UNSHARED, CORES_FOUGHT_FOR)
    return {name: found for name in names if (found := [row for row in rows if regime(row, cores) == name])}


def mean_absolute(rows: list[Comparison], quantity: str = "step_s") -> float:
    """Mean absolute percentage error."""
    return float(np.mean([abs(row.error(quantity)) for row in rows]))


def show(rows: list[Comparison], out: Path, fitted: str, further: Sequence[Comparison] = ()) -> None:
    """Every cell, then every regime, and what was `fitted`; `further` cells by protocol. All cells are kept."""
    pages.keep([record(row) for row in [*rows, *further]])
    pages.show(cells_table([*rows, *further]))
    pages.show(groups_table(by_regime(rows), "regime"))
    if further:
        pages.show(groups_table(groups_of(further), "other models and laws"))
    pages.show(f"Fitted: {fitted}, other runs than these. Tables, traces: {out}")


CELLS = (
    ("cell", lambda row: row.cell.label),
    ("step\nms", lambda row: f"{row.said() * 1e3:.1f}"),
    ("90 %\nms", lambda row: "{:.0f}-{:.0f}".format(*(1e3 * end_s for end_s in row.interval_s()))),
    ("real\nms", lambda row: f"{row.real() * 1e3:.1f}"),
    ("\nerror", lambda row: f"{row.error():+.1%}"),
    ("\nfloor", lambda row: f"{row.floor:.1%}"),
    ("\nsamples", lambda row: f"{row.said('samples'):.0f}"),
    ("\nreal", lambda row: f"{row.real('samples'):.0f}"),
    ("samples\n/s", lambda row: f"{row.said('throughput'):,.0f}"),
    ("real\n/s", lambda row: f"{row.real('throughput'):,.0f}"),
    ("\nerror", lambda row: f"{row.error('throughput'):+.1%}"),
)


def cells_table(rows: Sequence[Comparison]) -> Table:
    """A row for each cell."""
    return pages.listed("Predicted against measured: mean step, samples a step, throughput", CELLS, rows)


def groups_of(further: Sequence[Comparison]) -> dict[str, list[Comparison]]:
    """The rows of each protocol, then all."""
    names = dict.fromkeys(row.cell.protocol for row in further)
    return {name: [row for row in further if row.cell.protocol == name] for name in names} | {"all": list(further)}


def figures_of(rows: list[Comparison]) -> dict[str, float]:
    """The summary of a group of rows: mean absolute errors and noise floors as shares, and runs that intervals cover."""
    covered = [c for row in rows for c in row.covered]
    return {
        "cells": len(rows),
        "step": mean_absolute(rows),
        "floor": float(np.mean([row.floor for row in rows])),
        "floor_median": float(np.median([row.floor for row in rows])),
        "throughput": mean_absolute(rows, "throughput"),
        "samples": mean_absolute(rows, "samples"),
        "covered": int(sum(covered)),
        "of": len(covered),
    }


def groups_table(groups: dict[str, list[Comparison]], called: str) -> Table:
    """A row for each group, by its name; `called` heads these."""
    title = "Mean absolute error, and the noise floor: how far a repeat falls from its twin"
    headings = (called, "cells", "step", "floor", "floor median", "samples/s", "samples a step", "covered by 90 %")
    table = pages.table(title, *headings)
    table.columns[0].justify = "left"
    for name, of in groups.items():
        cells, *shares, covered, several = figures_of(of).values()
        table.add_row(name, str(cells), *(f"{share:.2%}" for share in shares), f"{covered} of {several}")
    return table


def record(row: Comparison) -> dict[str, str | float]:
    """A cell as it is kept; samples/s of each run and what is unknown beside other cells are JSON, by which `decisions` compares."""
    from sim.answers import paired

    unknown = paired.of(row.scenario, row.predicted) if row.scenario else []
    return {
        "cell": row.cell.label,
        "predicted_step_s": row.said(),
        "predicted_low_s": row.interval_s()[0],
        "predicted_high_s": row.interval_s()[1],
        **{f"measured_step_s_{i}": float(o.step_s.mean()) for i, o in enumerate(row.measured)},
        "floor": row.floor,
        "predicted_samples": row.said("samples"),
        "measured_samples": row.real("samples"),
        "predicted_samples_per_s": row.said("throughput"),
        "measured_samples_per_s": row.real("throughput"),
        "predicted_runs": _listed(row.predicted.throughput()),
        "measured_runs": _listed(float(one.throughput()[0]) for one in row.measured),
        "unknown": json.dumps([[_short(one.slower), _short(one.faster), "", one.shared] for one in unknown]),
    }


def _listed(numbers: Iterable[float]) -> str:
    return json.dumps([_short(number) for number in numbers])


def _short(number: float) -> float:
    return float(f"{number:.6g}")
