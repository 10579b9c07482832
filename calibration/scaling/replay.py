"""The rows of a table as the simulator has them with the profile that was fitted to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sim import protocols
from sim.job.scenario import Scenario
from sim.simulation import simulate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibration.scaling.table import Table
    from sim.model.workload import Workload
    from sim.platform.cluster import Cluster

MOST_ROWS, MOST_RANKS = 24, 256  # that are simulated, which takes a few seconds


def off(profile: Cluster, model: Workload, protocol: str, settings: Sequence[str], rows: Table) -> np.ndarray:
    """Logarithms of simulated over measured seconds, of up to MOST_ROWS rows at even distances, without the profile's error.

    Rows that accumulate gradients are left out: a simulated step has one minibatch.
    """
    costs = profile.costs[model.name].model_copy(update={"error": 0.0})
    exact = profile.model_copy(update={"costs": {model.name: costs}})
    some = some_of(rows)
    said_s = [simulate(job, replications=1).step_s.mean() for job in jobs(exact, model, protocol, settings, some)]
    return np.log(np.array(said_s) / some.step_s)


def some_of(rows: Table) -> Table:
    """Up to MOST_ROWS rows at even distances, of steps of one minibatch, of whole samples, on few ranks."""
    small = rows.where((rows.gpus <= MOST_RANKS) & (rows.minibatches == 1) & (rows.minibatch % 1 == 0))
    order = np.lexsort((small.batch, small.gpus, small.hosts))
    return small.where(order[np.unique(np.linspace(0, small.size - 1, MOST_ROWS).astype(int))]) if small.size else small


def jobs(profile: Cluster, model: Workload, protocol: str, settings: Sequence[str], rows: Table) -> list[Scenario]:
    """The jobs of rows, on hosts like the profile's."""
    text, found, like = protocols.make(protocol, list(settings)), [], profile.hosts[0]
    for row in zip(*(column.tolist() for column in rows), strict=True):
        hosts, gpus, each, batch = map(int, row[:4])
        here = {"count": hosts, "cores": max(each, like.cores), "slots": each} | ({"gpus": each} if like.gpus else {})
        place = profile.model_copy(update={"hosts": (like.model_copy(update=here),)})
        job = Scenario(text, model, workers=gpus, steps=1, warmup=1, batch=batch, cluster=place)
        found.append(job.without_stragglers())
    return found
