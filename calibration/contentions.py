"""How much busy cores of one host slow each other: the value with which runs of more and fewer ranks agree."""

from __future__ import annotations

import numpy as np

from calibration.placement import Placement
from calibration.sharing import core_seconds
from sim.traces import Trace

MOST = 1.0  # at which two busy cores do no more than one


def fit(traces: list[Trace], place: Placement) -> float:
    """Contention (see sim.cluster.Host) with which the same computation costs the same core seconds in every run.

    Least absolute deviations of the logarithms of the median computation of each (run, rank) from the median of its kind:
    protocol, settings, batch. 0 where no kind was run with different numbers of ranks, for nothing can be said then.

    Args:
        traces: of real runs.
        place: where the ranks sat.
    """
    from scipy.optimize import minimize_scalar

    kinds: dict[tuple, list[Trace]] = {}
    for trace in traces:
        header = trace.header
        kinds.setdefault((header.workload, header.protocol, header.batch, str(header.settings)), []).append(trace)
    several = [of for of in kinds.values() if len({trace.header.workers for trace in of}) > 1]
    if not several or not place.shared:
        return 0.0
    found = minimize_scalar(
        lambda value: sum(_spread(of, place, value) for of in several), bounds=(0, MOST), method="bounded"
    )
    return float(found.x)


def _spread(traces: list[Trace], place: Placement, contention: float) -> float:
    logs = np.concatenate([_log_costs(trace, place, contention) for trace in traces])
    return float(np.abs(logs - np.median(logs)).sum())


def _log_costs(trace: Trace, place: Placement, contention: float) -> np.ndarray:
    """log core seconds per sample, the median of each rank's steps."""
    rows = trace.rows
    seconds = core_seconds(rows, place, contention)
    chosen = (rows["activity"] == "compute") & (rows["step"] >= trace.header.warmup) & (rows["samples"] > 0)
    per_sample = (seconds / rows["samples"].clip(lower=1))[chosen]
    return np.log(per_sample.groupby(rows["rank"][chosen]).median().to_numpy())
