"""The tables and the figure of testbed: how far off, and whether the right one wins."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from experiments.kit import pages
from experiments.kit.comparison import Comparison
from experiments.reports.testbed_plan import DOMINATES, HOSTS, MODELS, RATES, WAYS, Where
from experiments.reports.validate_report import record, write_records
from sim.base.files import write_whole

TARGET = 0.05
HELD = "90 % intervals hold"


@dataclass(frozen=True)
class Row(Comparison):
    """A place, predicted and measured.

    Args:
        network: share of the predicted step that goes if messages take no time.
    """

    network: float

    @property
    def shaped(self) -> bool:
        """Whether the network dominates."""
        return self.network >= DOMINATES


def report(rows: dict[Where, Row], out: Path) -> None:
    """The tables on stdout, the same as CSV, and a figure."""
    for rate in RATES:
        pages.show(_table(rate, {where: row for where, row in rows.items() if where.rate == rate}))
    title = f"Mean absolute error of a step (places within {TARGET:.0%})"
    pages.show(_errors(rows, title))
    shaped = {where: row for where, row in rows.items() if row.shaped}
    pages.show(_errors(shaped, f"{title} where the network takes {DOMINATES:.0%} or more of the predicted step"))
    held = [held for row in rows.values() for held in row.covered]
    pages.show(f"{HELD}: {sum(held)} of {len(held)} runs")
    pairs = winners(rows)
    pages.show(
        f"Allreduce or server: {sum(right for *_, right in pairs)} of {len(pairs)} pairs that differ, ranked right",
    )
    for one, other, right in pairs:
        if not right:
            pages.show(f"  wrong: {one.rate}, {one.hosts} hosts, {one.model}: {one.way} or {other.way}")
    records = [{"where": f"{where.rate}, {where.model}", **record(row)} for where, row in rows.items()]
    write_records(records, out / "testbed.csv")
    figure(rows, out / "testbed.png")
    pages.show(f"Tables, traces, figure: {out}")


def winners(rows: dict[Where, Row]) -> list[tuple[Where, Where, bool]]:
    """Pairs of an allreduce and a server in one place that differ by more than their repeats do; whether ranked right."""
    found = []
    for one, other in product(rows, rows):
        if one[:3] != other[:3] or rows[one].cell.protocol != "allreduce" or rows[other].cell.protocol == "allreduce":
            continue
        real, said = (_ratio(rows[one], rows[other], predicted) for predicted in (False, True))
        if abs(real - 1) > max(rows[one].floor, rows[other].floor):
            found.append((one, other, (real > 1) == (said > 1)))
    return found


def _ratio(one: Comparison, other: Comparison, predicted: bool) -> float:
    """Samples a second of one over the other's."""

    def speed(row: Comparison) -> float:
        return row.said("throughput") if predicted else row.real("throughput")

    return speed(one) / speed(other)


def _said(rows: list[Row]) -> str:
    """Mean absolute error, and how many are within the target."""
    if not rows:
        return "-"
    errors = np.abs([row.error() for row in rows])
    return f"{errors.mean():.1%} ({np.sum(errors <= TARGET)} of {len(errors)})"


def _errors(rows: dict[Where, Row], title: str):
    """The mean absolute error of the step by kind of run and rate, and the noise floor of all."""
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None, header_style="bold")
    for heading in ("way", *RATES, "all"):
        table.add_column(heading, justify="left" if heading == "way" else "right")
    servers = [way for way, (*_, runtime) in WAYS.items() if runtime == "tensorflow"]
    for name, ways in {**{way: [way] for way in WAYS}, "TensorFlow's servers": servers, "all": WAYS}.items():
        chosen = [[row for where, row in rows.items() if where.way in ways and where.rate == rate] for rate in RATES]
        table.add_row(name, *map(_said, [*chosen, [row for some in chosen for row in some]]))
    floors = [np.mean([row.floor for where, row in rows.items() if where.rate == rate]) for rate in RATES]
    table.add_row("repeats differ by", *(f"{floor:.1%}         " for floor in floors))
    return table


def _table(rate: str, rows: dict[Where, Row]):
    from rich.table import Table

    table = Table(title=f"Links of {rate}: mean step, ms", box=None, header_style="bold")
    for heading in (
        "model",
        "hosts",
        "way",
        "network",
        "predicted",
        "measured",
        "error",
        "floor",
        "samples/s",
        "measured",
    ):
        table.add_column(heading, justify="left" if heading in ("model", "way") else "right")
    for where, row in sorted(rows.items(), key=lambda item: (item[0].model, item[0].hosts)):
        numbers = (f"{row.said() * 1e3:.1f}", f"{row.real() * 1e3:.1f}", f"{row.error():+.1%}")
        speeds = (f"{row.said('throughput'):.0f}", f"{row.real('throughput'):.0f}")
        table.add_row(
            where.model, str(where.hosts), where.way, f"{row.network:.0%}", *numbers, f"{row.floor:.1%}", *speeds
        )
    return table


def figure(rows: dict[Where, Row], path: Path) -> None:
    """Step times of every way, a panel for each rate and model."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(11, 6), layout="constrained")
    axes = drawing.subplots(len(MODELS), len(RATES), sharex=True)
    for (line, model), (column, rate) in product(enumerate(MODELS), enumerate(RATES)):
        axis = axes[line][column]
        for index, hosts in enumerate(HOSTS):
            at = np.arange(len(WAYS)) + (index - 0.5) * 0.3
            here = [rows[Where(rate, hosts, model, way)] for way in WAYS]
            real_ms = [[o.step_s.mean() * 1e3 for o in row.measured] for row in here]
            axis.plot(at, real_ms, f"C{index}o", mfc="none")
            axis.plot(at, [row.said() * 1e3 for row in here], f"C{index}_", ms=14, mew=2)
        axis.set(title=f"{model}, {rate}", ylim=(0, None))
        axis.set_xticks(range(len(WAYS)), list(WAYS), rotation=35, ha="right", fontsize=8)
    drawing.supylabel("step, ms: circles measured, bars predicted; blue 3 hosts, orange 4")
    write_whole(path, lambda temporary: drawing.savefig(temporary, dpi=150))
