"""How much busy cores of one host slow one another: the value with which runs of more and of fewer ranks agree."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from calibration.evidence import factors
from calibration.evidence.core_seconds import core_seconds
from calibration.evidence.seats import Placement
from sim.recording.traces import Trace

MOST = 1.0  # at which two busy cores do no more than one
NODES = np.linspace(0, MOST, 11)  # costs are smooth between them
GRID = np.linspace(0, MOST, 1001)
REPEATS = 40  # of the fit, on runs that drift anew


class Contention(NamedTuple):
    """The two of sim.platform.cluster.Host."""

    value: float
    error: float = 0.0


NONE = Contention(0.0)


def fit(traces: list[Trace], place: Placement) -> Contention:
    """Contention with which the same computation costs the same core seconds in every run.

    Least absolute deviations of the logarithms of the median computation of each (run, rank) from the median of its kind:
    protocol, settings, batch. 0 where no kind was run with different numbers of ranks, because nothing can be said then. Its
    error by a parametric bootstrap: the same fit, had the runs drifted otherwise (Efron and Tibshirani 1993, section 6.5).

    Args:
        traces: of real runs.
        place: the hosts that the ranks were on.
    """
    kinds: dict[tuple, list[Trace]] = {}
    for trace in traces:
        header = trace.header
        kinds.setdefault((header.workload, header.protocol, header.batch, str(header.settings)), []).append(trace)
    several = [of for of in kinds.values() if len({trace.header.workers for trace in of}) > 1]
    if not several or not place.shared:
        return NONE
    costs = [[_log_costs(trace, place) for trace in of] for of in several]
    best = _agreed(costs)
    drift = np.concatenate([_drift([run[:, best] for run in of]) for of in costs])
    freedom = len(drift) - len(costs) - 1
    if freedom < 1:
        return Contention(float(GRID[best]))
    rng, sigma = np.random.default_rng(0), np.sqrt(np.sum(drift**2) / freedom) * factors.like_student(freedom)
    again = [_agreed([[run + sigma * rng.standard_normal() for run in of] for of in costs]) for _ in range(REPEATS)]
    return Contention(float(GRID[best]), float(np.std(np.log1p(GRID[again]))))


def _agreed(costs: list[list[np.ndarray]]) -> int:
    """The index in GRID at which the runs of each kind agree best; of each run, shape (ranks, GRID)."""
    logs = [np.concatenate(of) for of in costs]
    return int(np.argmin(sum(np.abs(of - np.median(of, axis=0)).sum(axis=0) for of in logs)))


def _drift(runs: list[np.ndarray]) -> np.ndarray:
    """The distance of each run of a kind from the mean of all, shape (runs,)."""
    middles = np.array([run.mean() for run in runs])
    return middles - middles.mean()


def _log_costs(trace: Trace, place: Placement) -> np.ndarray:
    """Logarithm of core seconds per sample, the median of each rank's steps, for each contention in GRID; shape (ranks, GRID)."""
    rows = trace.rows
    chosen = (rows["activity"] == "compute") & (rows["step"] >= trace.header.warmup) & (rows["samples"] > 0)
    samples, ranks, nodes = rows["samples"][chosen], rows["rank"][chosen], []
    for value in NODES:
        seconds = core_seconds(rows, place, value)[chosen]
        nodes.append(np.log((seconds / samples).groupby(ranks).median().to_numpy()))
    return np.array([np.interp(GRID, NODES, of_rank) for of_rank in np.transpose(nodes)])
