"""Time to accuracy, predicted against measured on this machine: a fit on fixed and anytime minibatches predicts every protocol.

All runs share one launch in random order. Each predicted cell runs twice, and the noise floor is how far two repeats differ on
the average. No run that is predicted was fitted. A prediction trains in simulated time, with the sleeps and the order of data of the
real runs of that seed, and evaluates after the same updates. A second interval is of runs that each have sleeps and an order of their
own, as `trainsim learn` gives it to whoever has no real run; it was added after the first had been printed. Targets were chosen before any
real run.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np

from experiments.kit import pages
from experiments.kit.cells import Plan, fitted, measure
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
TARGET, FLOORS = 0.10, 2  # mean error, or so many times the floor
COVERAGE = (0.85, 0.95)  # of intervals of 90 %


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


def plan(demo: bool, seed: int) -> Plan:
    """Fitted: fmb and amb of each model with 1 and 2 workers. Predicted: every protocol with 2, 3 or 4."""
    models, laws, steps = (MODELS[:1], LAWS[:1], 20) if demo else (MODELS, LAWS, 60)
    watched: dict = {"test_size": TEST_SIZE, "partitions": PARTITIONS, "data": "digits", "seed": seed}
    fits = [
        replace(cell, evaluate_every=5)
        for model in models
        for cell in fitted_cells(20, batches=model.fits, workload=model.workload, **watched)
    ]
    delayed: dict = {"settings": ("window_s=0.1",), **watched}
    fits += [
        Cell("amb-dg", 1, one.fits[1], 0.06, "niagara*0.03", 20, workload=one.workload, **delayed) for one in models
    ]
    cells = [(model, law, way) for model in models for law in laws for way in WAYS]
    predicted = [
        Cell(way.protocol, 2 + number % 3, model.batch, way.limit_s, law, steps, settings=way.settings, runtime=way.runtime,
             workload=model.workload, evaluate_every=way.every, **watched)
        for number, (model, law, way) in enumerate(cells)
    ]  # fmt: skip
    return Plan(fits, predicted, fits=1 if demo else 2, repeats=2)


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
    def differs(self) -> bool:
        """Whether some runs reached the target, simulated or real, and others did not."""
        return not self.known and (self.said_s is not None or bool(np.isfinite(self.real_s).any()))

    @property
    def error(self) -> float:
        """Predicted over measured, less 1."""
        assert self.said_s is not None
        return self.said_s / float(self.real_s.mean()) - 1

    @property
    def floor(self) -> float:
        """How far two repeats differ, the mean of all pairs, over the mean of the repeats."""
        apart = [abs(one - other) for one, other in combinations(self.real_s, 2)]
        return float(np.mean(apart) / self.real_s.mean())

    @property
    def covered(self) -> list[bool]:
        """Whether the interval holds each repeat."""
        return _held(self.interval_s, self.real_s)

    @property
    def covered_by_own(self) -> list[bool]:
        """The same of runs of their own."""
        return _held(self.own_s, self.real_s)


def _held(interval_s: tuple[float, float] | None, real_s: np.ndarray) -> list[bool]:
    low_s, high_s = interval_s or (np.inf, -np.inf)
    return [bool(low_s <= one <= high_s) for one in real_s]


def run(out: Path, seed: int = 0, demo: bool = False, resume: bool = False) -> None:
    """Measure, fit, predict and simulate, and print the tables."""
    chosen = plan(demo, seed)
    traces = measure(chosen.order(seed), out / "traces", resume=resume)
    cluster = fitted([name for name in traces if name.startswith("fit")], out / "traces", out / "profile.toml")
    rows = predicted(chosen, traces, cluster)
    show(rows)


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
    for name, some in groups(rows):
        summary.add_row(name, *figures(some))
    pages.show(summary)
    pages.show(*verdict(rows))


def verdict(rows: list[Row]) -> list[str]:
    """Mean error, coverage, and what was not reached, a line each, beside what was asked of them."""
    known = [row for row in rows if row.known]
    apart = sum(row.differs for row in rows)
    left = len(rows) - len(known) - apart
    said = [
        f"Left out: {left} rows that no simulated or real run reached in time, {apart} that some runs reached and others did not"
    ]
    if not known:
        return said
    error, floor = float(np.mean([abs(row.error) for row in known])), float(np.mean([row.floor for row in known]))
    most = max(TARGET, FLOORS * floor)
    return [
        f"Mean error {error:.1%}, target {most:.1%} (10 %, or twice the floor): {'met' if error <= most else 'missed'}",
        _coverage("with the real runs' sleeps and order of data", [one for row in known for one in row.covered]),
        _coverage("with sleeps and an order of their own", [one for row in known for one in row.covered_by_own]),
        *said,
    ]


def _coverage(said: str, held: list[bool]) -> str:
    share, (low, high) = float(np.mean(held)), COVERAGE
    met = "met" if low <= share <= high else "missed"
    return f"90 % intervals of simulated runs {said} hold {share:.1%} of {len(held)} runs, target {low:.0%} to {high:.0%}: {met}"


def groups(rows: list[Row]) -> list[tuple[str, list[Row]]]:
    """Rows by protocol, model, law, accuracy, and all."""
    found = [(way.protocol, [row for row in rows if row.cell.protocol == way.protocol]) for way in WAYS]
    for name in ("workload", "stragglers", "workers"):
        values = dict.fromkeys(getattr(row.cell, name) for row in rows)
        found += [
            (f"{name} {value}", [row for row in rows if getattr(row.cell, name) == value]) for value in sorted(values)
        ]
    found += [(f"accuracy {level:g}", [row for row in rows if row.accuracy == level]) for level in ACCURACIES]
    return [*found, ("all", rows)]


def figures(rows: list[Row]) -> list[str]:
    """Rows that were reached, their mean error and floor, how many repeats the interval holds, and rows that were not reached."""
    known = [row for row in rows if row.known]
    if not known:
        return ["0", "", "", "", "", f"{len(rows)}"]
    held, own = ([one for row in known for one in getattr(row, name)] for name in ("covered", "covered_by_own"))
    error, floor = np.mean([abs(row.error) for row in known]), np.mean([row.floor for row in known])
    covered = [f"{sum(some)} of {len(some)}" for some in (held, own)]
    return [f"{len(known)}", f"{error:.1%}", f"{floor:.1%}", *covered, f"{len(rows) - len(known)}"]
