"""TensorFlow's own parameter servers, predicted and measured: a fit on 1 worker and 1 server predicts 1 to 4 and 1 to 2.

Asynchronous and synchronous runs are fitted separately, because their updates differ. The contention of busy cores comes from runs of
another protocol, by MPI. The cost of one more server comes from a probe: runs of another model. All runs share one launch in random
order; every predicted cell runs several times, and no run that is predicted was fitted.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np

from experiments.kit import pages, report
from experiments.kit.cells import Plan, ends, simulated_runs
from experiments.kit.comparison import Comparison
from experiments.validate import STRAGGLERS
from real.cells import Cell
from sim.answers.outcome import join, of_trace, staleness_of
from sim.recording.traces import Trace

WAYS = {"asynchronous": ("ps-async",), "synchronous": ("ps-sync", "ps-backup")}
MOST_STALE = 8  # updates; staler gradients are counted with these
REPLICATIONS = 20


def plan(seed: int) -> Plan:
    """Fitted: two models, two batches of the one that is predicted. Predicted: the batch between them."""
    known: dict = {"runtime": "tensorflow", "seed": seed}
    fitted = [
        Cell(protocol, 1, batch, workload=workload, steps=steps, **known)
        for protocol in ("ps-async", "ps-sync")
        for workload, batch, steps in (("mlp", 100, 200), ("toy_fc", 128, 100), ("toy_fc", 512, 100))
    ]
    # what a sleep costs besides
    slept: dict = {"stragglers": STRAGGLERS, "workload": "toy_fc", "steps": 40, **known}
    fitted += [Cell(protocol, 1, batch, **slept) for protocol in ("ps-async", "ps-sync") for batch in (128, 512)]
    # how busy cores slow each other
    fitted += [Cell("fmb", workers, 512, steps=60, seed=seed) for workers in (1, 2) * 2]
    predicted = [
        Cell(protocol, workers, 256, stragglers=law, steps=50, servers=servers, **known)
        for law in ("none", STRAGGLERS)
        for servers in (1, 2)
        for protocol in ("ps-async", "ps-sync", "ps-backup")
        for workers in ((2, 3, 4) if protocol == "ps-backup" else (1, 2, 3, 4))
    ]
    return Plan(fitted, predicted, fits=3, repeats=2)


def run(out: Path, seed: int = 0, resume: bool = False) -> None:
    """Run everything, and print the tables."""
    chosen = plan(seed)
    traces = chosen.run(out, seed, resume)
    clusters = {
        way: chosen.profile(out, way, lambda cell, of=protocols: cell.protocol in (*of, "fmb"))
        for way, protocols in WAYS.items()
    }
    rows, stale = [], []
    for cell, real in chosen.measured(traces):
        cluster = next(clusters[way] for way, protocols in WAYS.items() if cell.protocol in protocols)
        played = simulated_runs(cell, cluster, REPLICATIONS)
        predicted = replace(join([of_trace(t) for t in played]), ends=ends(cell, cluster))
        rows.append(Comparison(cell, predicted, [of_trace(t) for t in real], scenario=cell.scenario(cluster)))
        if cell.protocol == "ps-async" and cell.workers > 1:
            stale.append((cell, histogram(played), histogram(real)))
    report.show(rows, out, "1 worker with 1 server, with and without sleeps; 1 and 2 workers of fmb for contention")
    show_order(rows)
    _show_staleness(stale)


def histogram(traces: list[Trace]) -> np.ndarray:
    """Share of gradients by the updates that they had missed, shape (MOST_STALE + 1,)."""
    missed = np.concatenate([staleness_of(trace) for trace in traces])
    return np.bincount(missed.clip(0, MOST_STALE), minlength=MOST_STALE + 1) / len(missed)


def pairs_in_order(rows: list[Comparison]) -> tuple[int, int]:
    """The pairs of cells that the prediction ranks as the measurement does, among those that differ by more than the floor."""
    floor = np.mean([row.floor for row in rows])
    right = total = 0
    for one, other in combinations(rows, 2):
        real = [row.real("throughput") for row in (one, other)]
        if abs(real[0] / real[1] - 1) <= max(floor, one.floor, other.floor):
            continue
        total += 1
        said = one.said("throughput") > other.said("throughput")
        right += said == (real[0] > real[1])
    return right, total


def show_order(rows: list[Comparison]) -> None:
    """How many pairs of cells are ranked right."""
    right, total = pairs_in_order(rows)
    share = f" ({right / total:.1%})" if total else ""
    pages.show(
        f"Pairs of cells whose throughput differs by more than the noise floor: {right} of {total} ranked right{share}"
    )


def _show_staleness(found: list[tuple[Cell, np.ndarray, np.ndarray]]) -> None:
    """Predicted and measured, a line a cell."""
    pages.show(
        "Staleness of asynchronous gradients, updates missed: mean predicted, mean real, distance of the histograms"
    )
    updates = np.arange(MOST_STALE + 1)
    for cell, simulated, real in found:
        distance = np.abs(simulated - real).sum() / 2
        pages.show(f"  {cell.label:42} {simulated @ updates:5.2f} {real @ updates:5.2f} {distance:6.1%}")
