"""How long parameters take from a master to all workers, and how long the master takes gradients in, against size and number of workers.

As T. Adikari's test_bandwidth.sh measures it, of models of 0.3 to 13 MB. Fitted: one worker with each model, other minibatches, and two
workers with one of them. Predicted: one to three workers. All runs share one launch in random order, and every cell runs twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from experiments.kit import pages, report
from experiments.kit.cells import Plan, simulated_runs
from experiments.kit.comparison import Comparison
from real.cells import Cell
from sim.answers.outcome import Outcome, of_trace
from sim.model import workload as workloads
from sim.plot import first_steps
from sim.recording.traces import Trace

MODELS = ("mlp", "toy_conv", "toy_fc", "mnist")  # by size
MOST_WORKERS, BATCH, FIT_BATCHES = 3, 16, (8, 32)
STEPS, REPEATS, REPLICATIONS = 40, 2, 10
FITTED = "1 worker, and 2 with the first model, other minibatches"


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


def plan(seed: int) -> Plan:
    """One worker with each model, and two with one of them; predicted: one to three."""
    job: dict = {"steps": STEPS, "seed": seed, "data": None, "optimiser": "sgd"}
    fits = [Cell("fmb", 1, batch, workload=model, **job) for model in MODELS for batch in FIT_BATCHES]
    fits.append(Cell("fmb", 2, FIT_BATCHES[0], workload=MODELS[0], **job))
    several = range(1, MOST_WORKERS + 1)
    return Plan(fits, [Cell("fmb", n, BATCH, workload=one, **job) for one in MODELS for n in several], REPEATS, REPEATS)


def run(out: Path, seed: int = 0, resume: bool = False) -> None:
    """Run everything, and print the tables."""
    chosen = plan(seed)
    traces, cluster = chosen.run(out, seed, resume), chosen.profile(out)
    rows = [
        row
        for cell, real in chosen.measured(traces)
        for row in moved(cell, simulated_runs(cell, cluster, REPLICATIONS), real)
    ]
    show(rows, out)


def moved(cell: Cell, simulated: list[Trace], measured: list[Trace]) -> Iterator[Comparison]:
    """A row a phase, in place of whose steps are the seconds of that phase."""
    for phase, seconds in PHASES.items():
        real = [of_runs([seconds(trace)]) for trace in measured]
        yield Comparison(replace(cell, called=phase), of_runs([seconds(trace) for trace in simulated]), real)


def of_runs(seconds: Sequence[float]) -> Outcome:
    """Runs whose mean step took so long."""
    step_s = np.array(seconds)[:, None]
    return Outcome(step_s, np.ones(step_s.shape), np.zeros(step_s.shape))


COLUMNS = (
    ("model", lambda row: row.cell.workload),
    ("MB", lambda row: f"{workloads.read(row.cell.workload).message_bytes / 1e6:.3g}"),
    ("workers", lambda row: str(row.cell.workers)),
    ("ms", lambda row: f"{row.said() * 1e3:.3g}"),
    ("90 %", lambda row: "{:.3g}-{:.3g}".format(*(1e3 * end_s for end_s in row.interval_s()))),
    ("real ms", lambda row: f"{row.real() * 1e3:.3g}"),
    ("error", lambda row: f"{row.error():+.1%}"),
    ("floor", lambda row: f"{row.floor:.1%}"),
)


def show(rows: list[Comparison], out: Path) -> None:
    """A line a cell and phase, then the errors."""
    pages.keep([report.record(row) for row in rows])
    for phase in PHASES:
        mine = [row for row in rows if row.cell.called == phase]
        pages.show(pages.listed(f"{phase}: milliseconds a step", COLUMNS, mine))
        found = report.figures_of(mine)
        pages.show(f"{phase}: mean absolute error {found['step']:.1%}, noise floor {found['floor']:.1%}", end="\n\n")
    pages.show(f"Fitted: {FITTED}; other runs than these. Files: {out}")
