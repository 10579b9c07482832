"""How much busy cores of one host slow one another: the value with which runs of more and of fewer ranks agree."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from calibration.evidence import factors
from calibration.evidence.core_seconds import core_seconds
from calibration.evidence.seats import Placement
from sim.recording.traces import Trace

MOST = 1.0  # at which two busy cores do no more than one
LEAST_SWITCHING = -0.5  # at which two ranks on a GPU do as much as on a GPU each
STEP, NODE = 1e-3, 0.1  # of the grid; of values between which costs are smooth
REPEATS = 40  # of the fit, on runs that drift anew


class Contention(NamedTuple):
    """The two of sim.platform.cluster.Host."""

    value: float
    error: float = 0.0


NONE = Contention(0.0)


class Seconds(NamedTuple):
    """What is to agree: seconds that rows would have taken alone, by a value.

    Args:
        of: a function of rows and the value.
        least: of the values.
    """

    of: Callable[[Any, float], np.ndarray]
    least: float = 0.0

    @property
    def grid(self) -> np.ndarray:
        """The values."""
        return np.arange(round(self.least / STEP), round(MOST / STEP) + 1) * STEP

    @property
    def nodes(self) -> np.ndarray:
        """Some of them."""
        return np.arange(round(self.least / NODE), round(MOST / NODE) + 1) * NODE


def of_gpus(traces: list[Trace], place: Placement) -> Contention:
    """The switching with which the same computation costs the same seconds of a GPU in every run; see `fit`."""
    seconds = partial(_switched_s, place)
    return _fit(traces, place, Seconds(seconds, LEAST_SWITCHING))


def fit(traces: list[Trace], place: Placement) -> Contention:
    """Contention with which the same computation costs the same core seconds in every run.

    Least absolute deviations of the logarithms of the median computation of each (run, rank) from the median of its kind:
    protocol, settings, batch. 0 if no kind was run with different numbers of ranks. Its
    error by a parametric bootstrap: the same fit, had the runs drifted otherwise (Efron and Tibshirani 1993, section 6.5).

    Args:
        traces: of real runs.
        place: the hosts that the ranks were on.
    """
    return _fit(traces, place, Seconds(partial(_contended_s, place)))


def _fit(traces: list[Trace], place: Placement, seconds: Seconds) -> Contention:
    kinds: dict[tuple, list[Trace]] = {}
    for trace in traces:
        header = trace.header
        kinds.setdefault((header.workload, header.protocol, header.batch, str(header.settings)), []).append(trace)
    several = [of for of in kinds.values() if len({trace.header.workers for trace in of}) > 1]
    if not several or not place.shared:
        return NONE
    costs = [[_log_costs(trace, seconds) for trace in of] for of in several]
    best, grid = _agreed(costs), seconds.grid
    drift = np.concatenate([_drift([run[:, best] for run in of]) for of in costs])
    freedom = len(drift) - len(costs) - 1
    if freedom < 1:
        return Contention(float(grid[best]))
    rng, sigma = np.random.default_rng(0), np.sqrt(np.sum(drift**2) / freedom) * factors.like_student(freedom)
    again = [_agreed([[run + sigma * rng.standard_normal() for run in of] for of in costs]) for _ in range(REPEATS)]
    return Contention(float(grid[best]), float(np.std(np.log1p(grid[again]))))


def _agreed(costs: list[list[np.ndarray]]) -> int:
    """The index of the value at which the runs of each kind agree best; of each run, shape (ranks, values)."""
    logs = [np.concatenate(of) for of in costs]
    return int(np.argmin(sum(np.abs(of - np.median(of, axis=0)).sum(axis=0) for of in logs)))


def _drift(runs: list[np.ndarray]) -> np.ndarray:
    """The distance of each run of a kind from the mean of all, shape (runs,)."""
    middles = np.array([run.mean() for run in runs])
    return middles - middles.mean()


def _contended_s(place: Placement, rows, value: float) -> np.ndarray:
    return core_seconds(rows, place, contention=value)


def _switched_s(place: Placement, rows, value: float) -> np.ndarray:
    return core_seconds(rows, place, switching=value)


def _log_costs(trace: Trace, seconds: Seconds) -> np.ndarray:
    """Logarithm of core seconds per sample, the median of each rank's steps, for each value of the grid; shape (ranks, values)."""
    rows = trace.rows
    chosen = (rows["activity"] == "compute") & (rows["step"] >= trace.header.warmup) & (rows["samples"] > 0)
    samples, ranks, nodes = rows["samples"][chosen], rows["rank"][chosen], []
    for value in seconds.nodes:
        alone_s = seconds.of(rows, value)[chosen]
        nodes.append(np.log((alone_s / samples).groupby(ranks).median().to_numpy()))
    return np.array([np.interp(seconds.grid, seconds.nodes, of_rank) for of_rank in np.transpose(nodes)])
