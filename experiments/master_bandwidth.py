"""How long parameters take from a master to all workers, and how long the master takes gradients in, against size and number of workers.

As T. Adikari's test_bandwidth.sh measures it, of models of 0.3 to 13 MB. Fitted: one worker with each model, other minibatches, and two
workers with one of them. Predicted: one to three workers. All runs share one launch in random order, and every cell runs twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from experiments.kit import pages
from experiments.kit.cells import Plan, fitted, measure, simulated_runs
from real.cells import Cell
from sim.answers.outcome import of_trace
from sim.base import interval
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


def plan(demo: bool, seed: int) -> Plan:
    """One worker with each model, and two with one of them; predicted: one to three."""
    models, most = (DEMO_MODELS, 2) if demo else (MODELS, 3)
    job: dict = {"steps": STEPS, "seed": seed, "data": None, "optimiser": "sgd"}
    fits = [Cell("fmb", 1, batch, workload=model, **job) for model in models for batch in FIT_BATCHES]
    fits.append(Cell("fmb", 2, FIT_BATCHES[0], workload=models[0], **job))
    predicted = [Cell("fmb", n, BATCH, workload=model, **job) for model in models for n in range(1, most + 1)]
    return Plan(fits, predicted, REPEATS, REPEATS)


def run(out: Path, seed: int = 0, demo: bool = False, resume: bool = False) -> None:
    """Run everything, and print the tables."""
    chosen = plan(demo, seed)
    traces = measure(chosen.order(seed), out / "traces", resume=resume)
    cluster = fitted([name for name in traces if name.startswith("fit")], out / "traces", out / "profile.toml")
    rows = [
        row
        for cell, real in chosen.measured(traces)
        for row in moved(cell, simulated_runs(cell, cluster, REPLICATIONS), real)
    ]
    show(rows, out)


def moved(cell: Cell, simulated: list[Trace], measured: list[Trace]) -> list[Moved]:
    """A row a phase."""
    return [
        Moved(cell, phase, *(np.array([seconds(trace) for trace in runs]) for runs in (simulated, measured)))
        for phase, seconds in PHASES.items()
    ]


def record(row: Moved) -> dict[str, str | float]:
    """A cell as it is kept."""
    low_s, high_s = interval.of_runs(row.simulated)
    return {
        "cell": f"{row.phase}, {row.cell.workload} {row.cell.workers}w",
        "megabytes": row.megabytes,
        "predicted_step_s": row.said_s,
        "predicted_low_s": low_s,
        "predicted_high_s": high_s,
        "measured_step_s": row.real_s,
        "floor": row.floor,
    }


COLUMNS = (
    ("model", lambda row: row.cell.workload),
    ("MB", lambda row: f"{row.megabytes:.3g}"),
    ("workers", lambda row: str(row.cell.workers)),
    ("ms", lambda row: f"{row.said_s * 1e3:.3g}"),
    ("90 %", lambda row: "{:.3g}-{:.3g}".format(*(1e3 * end_s for end_s in interval.of_runs(row.simulated)))),
    ("real ms", lambda row: f"{row.real_s * 1e3:.3g}"),
    ("error", lambda row: f"{row.error:+.1%}"),
    ("floor", lambda row: f"{row.floor:.1%}"),
)


def show(rows: list[Moved], out: Path) -> None:
    """A line a cell and phase, then the errors."""
    pages.keep([record(row) for row in rows])
    for phase in PHASES:
        mine = [row for row in rows if row.phase == phase]
        pages.show(pages.listed(f"{phase}: milliseconds a step", COLUMNS, mine))
        error, floor = np.mean([abs(row.error) for row in mine]), np.mean([row.floor for row in mine])
        pages.show(f"{phase}: mean absolute error {error:.1%}, noise floor {floor:.1%}", end="\n\n")
    pages.show(f"Fitted: {FITTED}; other runs than these. Files: {out}")
