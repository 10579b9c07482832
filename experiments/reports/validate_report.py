"""The tables and the figure of predicted against measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from experiments.kit import pages
from sim.base.files import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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
    import os

    cores = os.cpu_count() or 1
    names = (SLEEPS, UNSHARED, CORES_FOUGHT_FOR)
    return {name: found for name in names if (found := [row for row in rows if regime(row, cores) == name])}


def mean_absolute(rows: list[Comparison], quantity: str = "step_s") -> float:
    """Mean absolute percentage error."""
    return float(np.mean([abs(row.error(quantity)) for row in rows]))


def show(rows: list[Comparison], out: Path, fitted: str, further: Sequence[Comparison] = ()) -> None:
    """Every cell, then every regime, and what was `fitted`; `further` cells by protocol."""
    pages.show(cells_table([*rows, *further]))
    pages.show(groups_table(by_regime(rows), "regime"))
    if further:
        pages.show(groups_table(groups_of(further), "other models and laws"))
    pages.show(f"Fitted: {fitted}, other runs than these. Tables, traces, figure: {out}")


HEADINGS = ("step\nms", "90 %\nms", "real\nms", "\nerror", "\nfloor", "\nsamples", "\nreal")
HEADINGS += ("samples\n/s", "real\n/s", "\nerror")


def cells_table(rows: list[Comparison]):
    """A row for each cell."""
    from rich.table import Table

    table = Table(
        title="Predicted against measured: mean step, samples a step, throughput", box=None, header_style="bold"
    )
    table.add_column("cell", no_wrap=True)
    for name in HEADINGS:
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*_line(row))
    return table


def _line(row: Comparison) -> list[str]:
    low_s, high_s = row.interval_s()
    return [
        row.cell.label,
        f"{row.said() * 1e3:.1f}",
        f"{low_s * 1e3:.0f}-{high_s * 1e3:.0f}",
        f"{row.real() * 1e3:.1f}",
        f"{row.error():+.1%}",
        f"{row.floor:.1%}",
        f"{row.said('samples'):.0f}",
        f"{row.real('samples'):.0f}",
        f"{row.said('throughput'):,.0f}",
        f"{row.real('throughput'):,.0f}",
        f"{row.error('throughput'):+.1%}",
    ]


def groups_of(further: Sequence[Comparison]) -> dict[str, list[Comparison]]:
    """The rows of each protocol, then all."""
    names = dict.fromkeys(row.cell.protocol for row in further)
    return {name: [row for row in further if row.cell.protocol == name] for name in names} | {"all": list(further)}


def figures_of(rows: list[Comparison]) -> dict[str, float]:
    """The summary of a group of rows: mean absolute errors and noise floors as shares, and runs that intervals cover."""
    covered = [c for row in rows for c in row.covered]
    return {
        "cells": len(rows),
        "step_error": mean_absolute(rows),
        "floor": float(np.mean([row.floor for row in rows])),
        "floor_median": float(np.median([row.floor for row in rows])),
        "throughput_error": mean_absolute(rows, "throughput"),
        "samples_error": mean_absolute(rows, "samples"),
        "covered": int(sum(covered)),
        "of": len(covered),
    }


def groups_table(groups: dict[str, list[Comparison]], called: str):
    """A row for each group, by its name; `called` heads these."""
    from rich.table import Table

    table = Table(title="Mean absolute error, and the noise floor: how far a repeat falls from its twin", box=None)
    for name in (called, "cells", "step", "floor", "floor median", "samples/s", "samples a step", "covered by 90 %"):
        table.add_column(name, justify="left" if name == called else "right")
    for name, of in groups.items():
        found = figures_of(of)
        shares = ("step_error", "floor", "floor_median", "throughput_error", "samples_error")
        covered = f"{found['covered']} of {found['of']}"
        table.add_row(name, str(len(of)), *(f"{found[share]:.2%}" for share in shares), covered)
    return table


def write_csv(rows: list[Comparison], path: Path) -> None:
    """One line a cell; seconds, samples, and shares."""
    write_records([record(row) for row in rows], path)


def write_records(records: list[dict[str, str | float]], path: Path) -> None:
    """One line a record, which is kept too."""
    import pandas as pd

    pages.keep(records)
    table = pd.DataFrame(records)
    write_whole(path, lambda temporary: table.to_csv(temporary, index=False))


def record(row: Comparison) -> dict[str, str | float]:
    """A cell as a row of the file."""
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
        **runs_of(row),
    }


def runs_of(row: Comparison) -> dict[str, str]:
    """Samples/s of each run, and what is unknown of the cell beside others: JSON, by which `decisions` compares cells."""
    from sim.answers import paired

    unknown = paired.of(row.scenario, row.predicted) if row.scenario else []
    return {
        "predicted_runs": _listed(row.predicted.throughput()),
        "measured_runs": _listed([float(one.throughput()[0]) for one in row.measured]),
        "unknown": json.dumps([[_short(one.slower), _short(one.faster), "", one.shared] for one in unknown]),
    }


def _listed(numbers: Iterable[float]) -> str:
    return json.dumps([_short(number) for number in numbers])


def _short(number: float) -> float:
    return float(f"{number:.6g}")


def figure(rows: list[Comparison], path: Path) -> None:
    """Predicted against measured mean step, a colour a regime, with intervals."""
    drawing, axes = pages.figure(1, 1, (6.5, 6))
    for name, of in by_regime(rows).items():
        measured_ms = np.array([row.real() for row in of]) * 1e3
        predicted_ms = np.array([row.said() for row in of]) * 1e3
        low_ms, high_ms = np.array([row.interval_s() for row in of]).T * 1e3
        error = np.abs(np.stack([np.minimum(low_ms, predicted_ms), np.maximum(high_ms, predicted_ms)]) - predicted_ms)
        axes.errorbar(
            measured_ms, predicted_ms, yerr=error, fmt="o", ms=4, capsize=2, label=f"{name}: {mean_absolute(of):.1%}"
        )
    ends = np.array(axes.get_xlim())
    axes.plot(ends, ends, color="black", lw=0.8)
    axes.fill_between(ends, ends * 0.9, ends * 1.1, color="black", alpha=0.07, lw=0, label="within 10 %")
    axes.set(
        xlabel="measured mean step, ms",
        ylabel="predicted mean step, ms",
        title="Predicted against measured, runs that were not fitted",
    )
    axes.legend(frameon=False)
    pages.save(drawing, path)
