"""What a run leaves: its record, in simulated time and on this machine's ranks, and the parameters that it ends with."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import event
import numpy as np

from real.recording import parameters
from sim.job.scenario import Scenario
from sim.model.costs import Line
from sim.recording.traces import Trace

INPUT = Line(base_s=1e-5, slope_s=0)  # that takes time, or it leaves no row


def simulated(scenario: Scenario) -> Trace:
    """The trace of a scenario in the event world, where fetching a minibatch takes time."""
    costs = scenario.costs.model_copy(update={"input": INPUT})
    cluster = scenario.cluster.model_copy(update={"costs": {scenario.workload.name: costs}})
    return event.trace(replace(scenario, cluster=cluster))


def record(trace: Trace) -> Counter:
    """Counts of each (rank, step, activity, samples, bytes, peer).

    The order of arrival numbers a server's steps where each gradient is applied by itself; its steps then count as step 0.
    """
    rows = trace.rows[["rank", "step", "activity", "samples", "bytes", "peer"]].copy()
    if trace.header.updates_per_step > 1:
        rows.loc[rows["rank"] == 0, "step"] = 0
    return Counter(rows.itertuples(index=False, name=None))


def trained(folder: Path, name: str) -> np.ndarray:
    """What a run's file NAME.npz has, float32 (parameters,)."""
    return np.concatenate([values.ravel() for values in parameters.read(folder / f"{name}.npz").values()])


def ends_alike(trace: Trace) -> bool:
    """Whether all ranks have ended with the same parameters."""
    return len(set(trace.header.details["parameters_crc32"])) == 1
