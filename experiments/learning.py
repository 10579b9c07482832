"""Time to accuracy, predicted against measured on this machine: a fit on fixed and anytime minibatches predicts every protocol.

All runs share one launch in random order. Each predicted cell runs twice, and the noise floor is how far two repeats differ on
the average. No run that is predicted was fitted. A prediction trains in simulated time, with the sleeps and the order of data of the
real runs of that seed, and evaluates after the same updates. A second interval is of runs that each have sleeps and an order of their
own, as `trainsim learn` gives it to whoever has no real run; it was added after the first had been printed. Targets were chosen before any
real run.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from experiments.kit import pages
from experiments.kit.cells import Plan
from real.cells import Cell, fitted_cells
from real.learning.learning import learn
from real.learning.trainer import Trainer
from real.training.trainee import Training
from sim.base.progress import each
from sim.platform.cluster import Cluster
from sim.recording.curves import curves, reached
from sim.recording.traces import Trace

ACCURACIES = (0.7, 0.8, 0.9)
TEST_SIZE = 297  # all that digits have
REPLICATIONS = 8
STEPS = 60  # of what is predicted


class Model(NamedTuple):
    """A model, the minibatch that is predicted, and those that are fitted."""

    workload: str
    batch: int
    fits: tuple[int, int]


MODELS = (Model("mlp", 64, (48, 96)), Model("toy_fc", 64, (48, 96)))
LAWS = ("niagara*0.05", "shifted-exponential(mean=40ms,shift=10ms)")


class Way(NamedTuple):
    """A protocol as it is run here.

    Args:
        limit_s: of its time, if it has one.
        every: steps between evaluations.
    """

    protocol: str
    limit_s: float | None = None
    settings: tuple[str, ...] = ()
    every: int = 2
    runtime: str | None = None


WAYS = (
    Way("fmb"),
    Way("amb", 0.06),
    Way("ps-sync", runtime="mpi"),
    Way("ps-backup", runtime="mpi"),
    Way("allreduce", settings=("algorithm=ring",)),
    Way("ps-async", every=1, runtime="mpi"),
    Way("kbatch-async"),
    Way("amb-dg", 0.06, ("window_s=0.1",)),
)
PARTITIONS = 8


def plan(seed: int) -> Plan:
    """Fitted: fmb and amb of each model with 1 and 2 workers. Predicted: every protocol with 2, 3 or 4."""
    watched: dict = {"test_size": TEST_SIZE, "partitions": PARTITIONS, "data": "digits", "seed": seed}
    fits = [
        replace(cell, evaluate_every=5)
        for model in MODELS
        for cell in fitted_cells(20, batches=model.fits, workload=model.workload, **watched)
    ]
    delayed: dict = {"settings": ("window_s=0.1",), **watched}
    fits += [
        Cell("amb-dg", 1, one.fits[1], 0.06, "niagara*0.03", 20, workload=one.workload, **delayed) for one in MODELS
    ]
    cells = [(model, law, way) for model in MODELS for law in LAWS for way in WAYS]
    predicted = [
        Cell(way.protocol, 2 + number % 3, model.batch, way.limit_s, law, STEPS, settings=way.settings, runtime=way.runtime,
             workload=model.workload, evaluate_every=way.every, **watched)
        for number, (model, law, way) in enumerate(cells)
    ]  # fmt: skip
    return Plan(fits, predicted, fits=2, repeats=2)


class Row(NamedTuple):
    """A cell and a target: predicted and measured seconds.

    Args:
        said_s, interval_s: predicted; None if not every simulated run reached it, or if that is not known.
        real_s: of each repeat, shape (repeats,); NaN where it did not reach the target.
        own_s: the interval of runs that each have sleeps and an order of data of their own, as `trainsim learn` has it.
    """

    cell: Cell
    accuracy: float
    said_s: float | None
    interval_s: tuple[float, float] | None
    real_s: np.ndarray
    own_s: tuple[float, float] | None = None

    @property
    def known(self) -> bool:
        """Whether all runs reached the target, simulated and real."""
        return self.said_s is not None and bool(np.isfinite(self.real_s).all())

    @property
    def error(self) -> float:
        """Predicted over measured, less 1."""
        assert self.said_s is not None
        return self.said_s / float(self.real_s.mean()) - 1

    @property
    def floor(self) -> float:
        """How far the repeats differ, over their mean."""
        return float(np.ptp(self.real_s) / self.real_s.mean())

    def held(self, interval_s: tuple[float, float] | None) -> list[bool]:
        """Whether an interval of the row has each repeat."""
        low_s, high_s = interval_s or (np.inf, -np.inf)
        return [bool(low_s <= one <= high_s) for one in self.real_s]


def run(out: Path, seed: int = 0, resume: bool = False) -> None:
    """Measure, fit, predict and simulate, and print the tables."""
    chosen = plan(seed)
    show(predicted(chosen, chosen.run(out, seed, resume), chosen.profile(out)))


def predicted(chosen: Plan, traces: dict[str, Trace], cluster: Cluster) -> list[Row]:
    """Every cell at every target."""
    rows, trainers = [], {}
    for index, cell in enumerate(each(chosen.predicted, "training in simulated time", label=lambda cell: cell.label)):
        scenario, training = cell.scenario(cluster), Training(data=cell.data, optimiser=cell.optimiser, threads=2)
        if cell.workload not in trainers:
            trainers[cell.workload] = Trainer(scenario.workload, scenario.seed, training)
        found, own = (
            learn(replace(scenario, sleeps_of=one), training, None, REPLICATIONS, trainer=trainers[cell.workload])
            for one in (0, None)
        )
        real = [curves(traces[f"predict-{index}-{repeat}"]) for repeat in range(chosen.repeats)]
        for accuracy in ACCURACIES:
            target = f"accuracy={accuracy}"
            one, real_s = found.at(target), np.array([reached(curve, target) for curve in real])
            rows.append(Row(cell, accuracy, one.time_s, one.interval, real_s, own.at(target).interval))
    return rows


COLUMNS = (
    ("cell", lambda row: row.cell.label),
    ("accuracy", lambda row: f"{row.accuracy:g}"),
    ("predicted", lambda row: "not reached" if row.said_s is None else f"{row.said_s:.2f}"),
    ("interval", lambda row: "" if row.interval_s is None else "{:.2f}-{:.2f}".format(*row.interval_s)),
    ("measured", lambda row: " ".join("not reached" if np.isnan(one) else f"{one:.2f}" for one in row.real_s)),
    ("error", lambda row: f"{row.error:+.1%}" if row.known else ""),
    ("floor", lambda row: f"{row.floor:.1%}" if row.known else ""),
)


def show(rows: list[Row]) -> None:
    """Cells, and what they come to."""
    pages.show(pages.listed("Seconds to an accuracy", COLUMNS, rows))
    title = "Mean absolute error of the time to an accuracy, and the noise floor"
    summary = pages.table(
        title, "of", "rows", "error", "floor", "covered by 90 %", "by runs of their own", "not reached"
    )
    for name, some in groups(rows).items():
        summary.add_row(name, *figures(some))
    pages.show(summary)


def groups(rows: list[Row]) -> dict[str, list[Row]]:
    """Rows by protocol, model, law, workers and accuracy, and all."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        of_cell = [f"{name} {getattr(row.cell, name)}" for name in ("protocol", "workload", "stragglers", "workers")]
        for name in (*of_cell, f"accuracy {row.accuracy:g}"):
            found.setdefault(name, []).append(row)
    return dict(sorted(found.items())) | {"all": rows}


def figures(rows: list[Row]) -> list[str]:
    """Rows that were reached, their mean error and floor, how many repeats the interval holds, and rows that were not reached."""
    known = [row for row in rows if row.known]
    if not known:
        return ["0", "", "", "", "", f"{len(rows)}"]
    error, floor = np.mean([abs(row.error) for row in known]), np.mean([row.floor for row in known])
    held = [[one for row in known for one in row.held(getattr(row, name))] for name in ("interval_s", "own_s")]
    covered = [f"{sum(some)} of {len(some)}" for some in held]
    return [f"{len(known)}", f"{error:.1%}", f"{floor:.1%}", *covered, f"{len(rows) - len(known)}"]
