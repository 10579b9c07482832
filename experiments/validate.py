"""Predicted against measured on this machine: a fit on runs of 1 and 2 workers, few of them with sleeps, predicts all others.

All runs share one launch in random order, because the processor drifts. Every cell runs several times, and the noise floor is the
spread of those repeats. No run that is predicted was fitted. Further cells are of models, laws of sleeps and protocols that the
simulator was not built on. For each model fmb and amb are fitted on 1 and 2 workers, and amb-dg on 1.
"""

from __future__ import annotations

from pathlib import Path

from experiments.kit import report
from experiments.kit.cells import Plan
from real.cells import SLEEPS, Cell, fitted_cells

STRAGGLERS = "niagara*0.05"  # sleeps of up to 0.33 s: 0.05 s on average


def plan(demo: bool, seed: int) -> Plan:
    """Two batches, two limits, 1 to 4 workers, with stragglers and without; of the demo, one batch, one limit, 2 and 4."""
    workers, batches, limits_s, steps, fits, repeats = (1, 2, 3, 4), (512, 1024), (0.06, 0.12), 80, 3, 2
    if demo:
        workers, batches, limits_s, steps, fits = (2, 4), (1024,), (0.06,), 50, 1
    ways = [("fmb", None), *(("amb", limit_s) for limit_s in limits_s)]
    predicted = [
        Cell(protocol, count, batch, limit_s, law, steps, seed=seed)
        for law in ("none", STRAGGLERS)
        for count in workers
        for batch in batches
        for protocol, limit_s in ways
    ]
    cells = fitted_cells(40, seed)
    if demo:
        return Plan(cells, predicted, fits, repeats)
    for workload, batches, partitions in (("mnist", (48, 96), 8), ("mlp", (128, 256), 16)):
        of = {"workload": workload, "partitions": partitions, "data": None, "steps": 40, "seed": seed}
        cells += [*fitted_cells(batches=batches, **of), renewing_cell(batches[1], **of)]
    return Plan(cells, predicted, fits, repeats, tuple(further_cells(seed)))


def renewing_cell(batch: int, **job) -> Cell:
    """Fitted: amb-dg on one worker, whose partitions follow one another with warm caches, and some with cold ones."""
    return Cell("amb-dg", 1, batch, 0.06, SLEEPS, settings=("window_s=0.1",), **job)


THREE_SLEEPS = str(Path(__file__).parent / "laws" / "three_sleeps.toml")


def further_cells(seed: int) -> list[Cell]:
    """Models, laws and protocols that are not fitted: every protocol that runs over MPI."""
    mnist: dict = {"batch": 96, "partitions": 8, "workload": "mnist", "data": None, "steps": 60, "seed": seed}
    anytime: dict = {"time_limit_s": 0.15, **mnist}
    cells = [Cell("amb-dg", 2, settings=("window_s=0.2",), stragglers=law, **anytime) for law in ("none", THREE_SLEEPS)]
    cells += [Cell("amb", 2, stragglers=law, **anytime) for law in (THREE_SLEEPS, "cedar*0.02")]
    cells += [Cell("fmb", 2, stragglers=THREE_SLEEPS, **mnist)]
    cells += [Cell("kbatch-async", 2, settings=("gradients=4",), stragglers=THREE_SLEEPS, **mnist)]
    for protocol in ("ps-sync", "ps-ssp", "ps-async", "ps-backup"):
        cells += [Cell(protocol, workers, stragglers="cedar*0.02", runtime="mpi", **mnist) for workers in (2, 3)]
    small: dict = {"batch": 256, "data": None, "runtime": "mpi", "steps": 60, "seed": seed}
    for protocol, settings in (("ps-sync", ()), ("ps-ssp", ()), ("ps-async", ()), ("allreduce", ("algorithm=ring",))):
        for workload, law in (("mlp", THREE_SLEEPS), ("toy_fc", "none")):
            job: dict = {"workload": workload, "stragglers": law, "settings": settings, **small}
            cells += [Cell(protocol, workers, **job) for workers in (2, 3)]
    return cells


FITTED = "fmb and amb, 1 and 2 workers, of fmb some with sleeps"


def run(out: Path, seed: int = 0, demo: bool = False, resume: bool = False) -> None:
    """Run everything, and print the tables."""
    chosen = plan(demo, seed)
    traces, cluster = chosen.run(out, seed, resume), chosen.profile(out)
    rows = chosen.compared(traces, lambda _: cluster)
    predicted = len(chosen.predicted)
    report.show(rows[:predicted], out, FITTED, rows[predicted:])
