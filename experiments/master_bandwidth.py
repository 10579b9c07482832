"""How long parameters take from a master to all workers, and how long the master takes gradients in, against size and number of workers.

As T. Adikari's test_bandwidth.sh measures it, of models of 0.3 to 13 MB. Fitted: one worker with each model, other minibatches, and two
workers with one of them. Predicted: one to three workers. All runs share one launch in random order, and every cell runs twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from experiments.kit import pages
from experiments.kit.cells import fitted, measure, simulated_runs
from real.cells import Cell, interleaved
from sim import reports
from sim.answers.outcome import of_trace
from sim.base import interval
from sim.base.files import write_whole
from sim.base.home import installed
from sim.base.progress import each
from sim.model import workload as workloads
from sim.plot import first_steps
from sim.recording.traces import Trace

MODELS = ("mlp", "toy_conv", "toy_fc", "mnist")  # by size
DEMO_MODELS = ("mlp", "toy_fc")
BATCH, FIT_BATCHES = 16, (8, 32)
STEPS, REPEATS, REPLICATIONS = 40, 2, 10
FITTED = "1 worker, and 2 with the first model, other minibatches"


@dataclass(frozen=True)
class Moved:
    """A cell: seconds a step of one phase, of each run.

    Args:
        simulated, measured: shape (runs,).
    """

    cell: Cell
    phase: str
    simulated: np.ndarray
    measured: np.ndarray

    @property
    def megabytes(self) -> float:
        """Of the parameters."""
        return workloads.read(self.cell.workload).message_bytes / 1e6

    @property
    def said_s(self) -> float:
        """Simulated."""
        return interval.middle(self.simulated)

    @property
    def real_s(self) -> float:
        """Measured: the mean of the repeats."""
        return float(self.measured.mean())

    @property
    def error(self) -> float:
        """Simulated over measured, less 1."""
        return self.said_s / self.real_s - 1

    @property
    def floor(self) -> float:
        """How far the repeats fall from one another, over their mean."""
        return float(np.ptp(self.measured) / self.real_s)


def broadcast_s(trace: Trace) -> float:
    """Seconds of the median measured step from the master's first send until the last worker has its parameters.

    Raises:
        WrongSetting: no step was completed after warm-up.
    """
    steps = range(trace.header.warmup, trace.header.warmup + of_trace(trace).step_s.shape[1])
    rows = trace.rows[trace.rows["step"].isin(steps)]
    sent_s = rows[(rows["rank"] == 0) & (rows["activity"] == "send")].groupby("step")["start_s"].min()
    there_s = rows[(rows["rank"] > 0) & (rows["activity"] == "receive")].groupby("step")["end_s"].max()
    return float((there_s - sent_s).median())


def reduce_s(trace: Trace) -> float:
    """Seconds of the median measured step in which the master receives or adds up gradients; what overlaps counts once.

    Raises:
        WrongSetting: no step was completed after warm-up.
    """
    rows, ends_s = first_steps(trace, 1, of_trace(trace).step_s.shape[1])
    rows = rows[rows["activity"].isin(["receive", "reduce"])].sort_values("start_s")
    start_s, end_s = rows["start_s"].to_numpy(float), rows["end_s"].to_numpy(float)
    until_s = np.maximum.accumulate(np.concatenate([[0.0], end_s]))[:-1]  # when all that began before has ended
    more_s = (end_s - np.maximum(start_s, until_s)).clip(min=0)
    return float(np.median(np.bincount(np.searchsorted(ends_s, start_s, "right"), more_s, len(ends_s))))


PHASES = {"broadcast": broadcast_s, "reduce": reduce_s}


def plan(demo: bool, seed: int) -> tuple[list[Cell], list[Cell]]:
    """Cells that are fitted, and that are predicted."""
    models, most = (DEMO_MODELS, 2) if demo else (MODELS, 3)
    job: dict = {"steps": STEPS, "seed": seed, "data": None, "optimiser": "sgd"}
    fits = [Cell("fmb", 1, batch, workload=model, **job) for model in models for batch in FIT_BATCHES]
    fits.append(Cell("fmb", 2, FIT_BATCHES[0], workload=models[0], **job))
    predicted = [Cell("fmb", n, BATCH, workload=model, **job) for model in models for n in range(1, most + 1)]
    return fits, predicted


def run(out: Path, seed: int = 0, demo: bool = False, resume: bool = False, report: str | None = None) -> None:
    """Run everything; print the table, write out/master_bandwidth.csv and .png, and the page `report` if it is asked for."""
    fits, predicted = plan(demo, seed)
    runs = [(f"fit-{i}", cell, REPEATS) for i, cell in enumerate(fits)]
    runs += [(f"predict-{i}", cell, REPEATS) for i, cell in enumerate(predicted)]
    traces = measure(interleaved(runs, seed), out / "traces", resume=resume)
    cluster = fitted([name for name in traces if name.startswith("fit")], out / "traces", out / "profile.toml")
    rows = []
    for number, cell in enumerate(each(predicted, "simulating", label=lambda cell: cell.label)):
        played = simulated_runs(cell, cluster, REPLICATIONS)
        rows += moved(cell, played, [traces[f"predict-{number}-{repeat}"] for repeat in range(REPEATS)])
    write_csv(rows, out / "master_bandwidth.csv")
    figure(rows, out / "master_bandwidth.png")
    show(rows, out)
    if report:
        from experiments.reports.master_bandwidth_page import master_bandwidth_page

        command = f"python -m {installed('experiments.run')} master-bandwidth --seed {seed}{' --demo' * demo}"
        reports.write(report, master_bandwidth_page(rows, FITTED, command))


def moved(cell: Cell, simulated: list[Trace], measured: list[Trace]) -> list[Moved]:
    """A row a phase."""
    return [
        Moved(cell, phase, *(np.array([seconds(trace) for trace in runs]) for runs in (simulated, measured)))
        for phase, seconds in PHASES.items()
    ]


def mean_absolute(rows: list[Moved]) -> tuple[float, float]:
    """The mean absolute error of rows, and their mean noise floor."""
    return float(np.mean([abs(row.error) for row in rows])), float(np.mean([row.floor for row in rows]))


def of_phase(rows: list[Moved], phase: str) -> list[Moved]:
    """The rows of one phase."""
    return [row for row in rows if row.phase == phase]


def write_csv(rows: list[Moved], path: Path) -> None:
    """One line a cell and phase; seconds a step."""
    import pandas as pd

    table = pd.DataFrame(map(record, rows))
    write_whole(path, lambda temporary: table.to_csv(temporary, index=False, float_format="%.6g"))


def record(row: Moved) -> dict:
    """A row of the file."""
    low_s, high_s = interval.of_runs(row.simulated)
    return {
        "phase": row.phase,
        "workload": row.cell.workload,
        "megabytes": row.megabytes,
        "workers": row.cell.workers,
        "simulated_s": row.said_s,
        "simulated_low_s": low_s,
        "simulated_high_s": high_s,
        "measured_s": row.real_s,
        "error": row.error,
        "floor": row.floor,
    }


def show(rows: list[Moved], out: Path) -> None:
    """A line a cell and phase, then the errors."""
    headings = ("MB", "workers", "ms", "90 %", "real ms", "error", "floor")
    for phase in PHASES:
        table = pages.table(f"{phase}: milliseconds a step", "model", *headings)
        for row in of_phase(rows, phase):
            low_ms, high_ms = np.array(interval.of_runs(row.simulated)) * 1e3
            figures = (row.megabytes, row.said_s * 1e3, row.real_s * 1e3)
            size, said, real = (f"{figure:.3g}" for figure in figures)
            spread = f"{low_ms:.3g}-{high_ms:.3g}"
            line = (size, str(row.cell.workers), said, spread, real, f"{row.error:+.1%}", f"{row.floor:.1%}")
            table.add_row(row.cell.workload, *line)
        pages.show(table)
        error, floor = mean_absolute(of_phase(rows, phase))
        pages.show(f"{phase}: mean absolute error {error:.1%}, noise floor {floor:.1%}", end="\n\n")
    pages.show(f"Fitted: {FITTED}; other runs than these. Files: {out}")


def figure(rows: list[Moved], path: Path) -> None:
    """A panel a phase: milliseconds against size, a line a number of workers, simulated; measured beside it."""
    drawing, panels = pages.figure(1, len(PHASES), (11, 4.5), sharey=True)
    for axes, phase in zip(panels, PHASES, strict=True):
        for workers in sorted({row.cell.workers for row in rows}):
            of = sorted((r for r in of_phase(rows, phase) if r.cell.workers == workers), key=lambda r: r.megabytes)
            sizes, style = [row.megabytes for row in of], {"color": f"C{workers}"}
            axes.plot(sizes, [row.said_s * 1e3 for row in of], label=f"{workers} workers: simulated", **style)
            marker = "osD^"[workers % 4]
            axes.plot(sizes, [row.real_s * 1e3 for row in of], marker, mfc="none", label="measured", **style)
        axes.set(xscale="log", yscale="log", xlabel="parameters, MB", title=phase)
    panels[0].set_ylabel("milliseconds a step")
    panels[0].legend(frameon=False, fontsize=7)
    pages.save(drawing, path)
