"""Allreduce over MPI, Horovod, TensorFlow's collectives, the hybrid, predicted and measured: a fit on 1 and 2 ranks predicts 2 to 4.

Each library has a profile. It is fitted on runs without stragglers, of other batches than the predicted ones. Sums that overlap with
computing have a profile of their own. The contention of busy cores comes from runs of another protocol. All runs share
one launch in random order; every predicted cell runs several times, and no run that is predicted was fitted.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from experiments.kit import pages, report
from experiments.kit.cells import Plan
from experiments.kit.comparison import Comparison
from experiments.servers import show_order
from experiments.validate import STRAGGLERS
from real.cells import Cell

APART = (("fused=true",), ("fused=false",))  # what is fitted of sums that come after computing


class Way(NamedTuple):
    """One line of the table.

    Args:
        profile: which fit predicts it: the name of one of FITTED.
        batch: that is predicted.
    """

    profile: str
    protocol: str
    runtime: str
    settings: tuple[str, ...] = ()
    batch: int = 256
    workload: str = "toy_fc"


class Fit(NamedTuple):
    """The runs that a profile is made from.

    Args:
        several: settings of the protocol, each run.
        jobs: (workload, batch), each run by two ranks; the first also by one rank, for the cost of a call.
    """

    protocol: str
    runtime: str
    several: tuple[tuple[str, ...], ...] = ((),)
    jobs: tuple[tuple[str, int], ...] = (("toy_fc", 128), ("toy_fc", 512), ("mlp", 256))


WAYS = {
    "MPI": Way("mpi", "allreduce", "mpi"),
    "MPI, unfused": Way("mpi", "allreduce", "mpi", ("fused=false",), batch=384),
    "Horovod": Way("horovod", "allreduce", "horovod", ("algorithm=ring",)),
    "Horovod, unfused": Way("horovod", "allreduce", "horovod", ("algorithm=ring", "fused=false"), batch=384),
    "Horovod, overlapping": Way("overlapping", "horovod", "horovod", ("algorithm=ring",)),
    "TensorFlow": Way("tensorflow", "allreduce", "tensorflow", ("algorithm=ring",)),
    "TensorFlow, unfused": Way("tensorflow", "allreduce", "tensorflow", ("algorithm=ring", "fused=false"), batch=384),
    "hybrid": Way("hybrid", "hybrid", "mpi", batch=32, workload="lstm_lm"),
}
FITTED = {
    "mpi": Fit("allreduce", "mpi", APART),
    "horovod": Fit("allreduce", "horovod", APART),
    "overlapping": Fit("horovod", "horovod"),
    "tensorflow": Fit("allreduce", "tensorflow", APART),
    "hybrid": Fit("hybrid", "mpi", jobs=(("lstm_lm", 16), ("lstm_lm", 64))),
}
RANKS = (2, 3, 4)
REPLICATIONS = 12


def plan(seed: int) -> Plan:
    """Fitted: two models, two batches of the one that is predicted, 1 and 2 ranks. Predicted: batches between them."""
    fitted = [
        Cell(fit.protocol, ranks, batch, steps=30, seed=seed, runtime=fit.runtime, settings=settings, workload=model,
             data=None)
        for fit in FITTED.values()
        for ranks in (1, 2)
        for number, (model, batch) in enumerate(fit.jobs)
        for half, settings in enumerate(fit.several)
        if ranks > 1 or number == half
    ]  # fmt: skip
    fitted += [Cell("fmb", workers, 512, steps=40, seed=seed) for workers in (1, 2)]  # how busy cores slow each other
    predicted = [
        Cell(way.protocol, ranks, way.batch, None, law, steps, seed=seed, runtime=way.runtime, settings=way.settings,
             workload=way.workload, data=None, called=name)
        for law, steps in (("none", 40), (STRAGGLERS, 25))
        for name, way in WAYS.items()
        for ranks in RANKS
    ]  # fmt: skip
    return Plan(fitted, predicted, fits=2, repeats=2)


def run(out: Path, seed: int = 0, resume: bool = False) -> None:
    """Run everything, and print the tables."""
    chosen = plan(seed)
    traces = chosen.run(out, seed, resume)
    clusters = {
        name: chosen.profile(out, name, lambda cell, fit=fit: (cell.protocol, cell.runtime) in (fit[:2], ("fmb", None)))
        for name, fit in FITTED.items()
    }
    rows = chosen.compared(traces, lambda cell: clusters[WAYS[cell.called].profile], REPLICATIONS)
    report.show(rows, out, "1 and 2 ranks without stragglers; 1 and 2 workers of fmb for contention")
    _show_ways(rows)
    show_order(rows)


def _show_ways(rows: list[Comparison]) -> None:
    pages.show("Mean absolute error of throughput by way: sleeps dominate, else (their floors)")
    for name in WAYS:
        mine = [row for row in rows if row.cell.called == name]
        parts = [[row for row in mine if (row.cell.stragglers == "none") == quiet] for quiet in (False, True)]
        said = [f"{_error(part):6.1%} ({np.mean([row.floor for row in part]):.1%})" for part in parts]
        pages.show(f"  {name:22} {said[0]}  {said[1]}")


def _error(rows: list[Comparison]) -> float:
    return report.mean_absolute(rows, "throughput")
