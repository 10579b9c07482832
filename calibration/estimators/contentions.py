"""How much busy cores of one host slow one another: the value with which runs of more and of fewer ranks agree."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from calibration.evidence import factors
from calibration.evidence.core_seconds import core_seconds
from calibration.evidence.seats import Placement
from sim.recording.traces import Trace

MOST = 1.0  # at which two busy cores do no more than one
LEAST = {"contention": 0.0, "switching": -0.5}  # the latter where two ranks on a GPU do as much as on a GPU each
STEP, NODE = 1e-3, 0.1  # of the grid; of values between which costs are smooth
REPEATS = 40  # of the fit, on runs that drift anew


class Contention(NamedTuple):
    """The two of sim.platform.cluster.Host."""

    value: float
    error: float = 0.0


NONE = Contention(0.0)


def fit(traces: list[Trace], place: Placement, of: str = "contention") -> Contention:
    """Contention with which the same computation costs the same core seconds in every run; or switching, and seconds of a GPU.

    Least absolute deviations of the logarithms of the median computation of each (run, rank) from the median of its kind:
    protocol, settings, batch. 0 if no kind was run with different numbers of ranks. Its
    error by a parametric bootstrap: the same fit, had the runs drifted otherwise (Efron and Tibshirani 1993, section 6.5).

    Args:
        traces: of real runs.
        place: the hosts that the ranks were on.
        of: contention, or switching.
    """
    kinds: dict[tuple, list[Trace]] = {}
    for trace in traces:
        header = trace.header
        kinds.setdefault((header.workload, header.protocol, header.batch, str(header.settings)), []).append(trace)
    several = [alike for alike in kinds.values() if len({trace.header.workers for trace in alike}) > 1]
    if not several or not place.shared:
        return NONE
    grid = _values(of, STEP)
    costs = [[_log_costs(trace, place, of) for trace in alike] for alike in several]
    best = _agreed(costs)
    middles = [np.array([run[:, best].mean() for run in alike]) for alike in costs]
    drift = np.concatenate([runs - runs.mean() for runs in middles])  # of each run of a kind, from the mean of all
    freedom = len(drift) - len(costs) - 1
    if freedom < 1:
        return Contention(float(grid[best]))
    rng, sigma = np.random.default_rng(0), np.sqrt(np.sum(drift**2) / freedom) * factors.like_student(freedom)
    again = [
        _agreed([[run + sigma * rng.standard_normal() for run in alike] for alike in costs]) for _ in range(REPEATS)
    ]
    return Contention(float(grid[best]), float(np.std(np.log1p(grid[again]))))


def _values(of: str, step: float) -> np.ndarray:
    """The values that are tried, at even distances."""
    return np.arange(round(LEAST[of] / step), round(MOST / step) + 1) * step


def _agreed(costs: list[list[np.ndarray]]) -> int:
    """The index of the value at which the runs of each kind agree best; of each run, shape (ranks, values)."""
    logs = [np.concatenate(alike) for alike in costs]
    return int(np.argmin(sum(np.abs(alike - np.median(alike, axis=0)).sum(axis=0) for alike in logs)))


def _log_costs(trace: Trace, place: Placement, of: str) -> np.ndarray:
    """Logarithm of core seconds per sample, the median of each rank's steps, for each value of the grid; shape (ranks, values)."""
    rows = trace.rows
    chosen = (rows["activity"] == "compute") & (rows["step"] >= trace.header.warmup) & (rows["samples"] > 0)
    samples, ranks, nodes = rows["samples"][chosen], rows["rank"][chosen], []
    for value in _values(of, NODE):
        alone_s = core_seconds(rows, place, **{of: value})[chosen]
        nodes.append(np.log((alone_s / samples).groupby(ranks).median().to_numpy()))
    return np.array([np.interp(_values(of, STEP), _values(of, NODE), of_rank) for of_rank in np.transpose(nodes)])
