"""The rows of a table as the simulator has them with the profile that was fitted to them."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import numpy as np

from calibration.scaling.table import Table, evenly
from sim import protocols
from sim.job.scenario import Scenario
from sim.model.costs import Line
from sim.model.workload import Workload
from sim.platform.cluster import SERVER, Cluster, Host
from sim.simulation import simulate

MOST_ROWS, MOST_RANKS = 24, 256  # that are simulated, which takes a few seconds
SEVERAL = 4  # steps with servers, which workers come to at other times, and as many before them


def steps_s(profile: Cluster, model: Workload, protocol: str, settings: Sequence[str], rows: Table) -> list[float]:
    """Simulated seconds of the steps of rows."""
    of_rows = jobs(profile, model, protocol, settings, rows)
    return [float(simulate(job, replications=1).step_s.mean()) for job in of_rows]


def some_of(rows: Table) -> Table:
    """Up to MOST_ROWS rows at even distances, of equal minibatches on few ranks."""
    small = rows.where((rows.gpus <= MOST_RANKS) & (rows.minibatch % 1 == 0))
    order = np.lexsort((small.batch, small.gpus, small.hosts))
    return small.where(order[evenly(small.size, MOST_ROWS)])


def jobs(profile: Cluster, model: Workload, protocol: str, settings: Sequence[str], rows: Table) -> list[Scenario]:
    """The jobs of rows, on hosts like the profile's. Each simulates one minibatch: others, and waits for real data, come before it."""
    text, found, like = protocols.make(protocol, list(settings)), [], profile.hosts[-1]
    reading, synthetic = (profile.fitted(model.name) or model).reading, model.model_copy(update={"reading": None})
    for at in range(rows.size):
        hosts, gpus, each, samples = (int(column[at]) for column in rows[:4])
        minibatches = int(rows.minibatches[at])
        batch = samples // minibatches
        servers = 1 if rows.servers is None else int(rows.servers[at])
        beside = bool(rows.beside is not None and rows.beside[at])
        cores = max(each, like.cores) + ceil(servers / hosts) * beside
        here = {"count": hosts, "cores": cores, "slots": each} | ({"gpus": each} if like.gpus else {})
        place = profile.model_copy(update={"hosts": (like.model_copy(update=here),)})
        if not text.masterless and not beside:
            place = place.model_copy(update={"hosts": (Host(name=SERVER, count=servers), *place.hosts)})
        costs = profile.costs[model.name]
        compute_s = float(costs.of_batch(batch).among(gpus, hosts).compute(batch))
        real = reading if rows.real is None or rows.real[at] else None
        read_s = each * batch / real if real else 0.0
        if input_s := minibatches * max(compute_s, read_s) - compute_s:
            costs = costs.model_copy(update={"input": Line(base_s=input_s)})
        on, steps = "workers" if beside else "own", 1 if text.masterless else SEVERAL
        place = place.model_copy(update={"costs": {model.name: costs}})
        job = Scenario(text, synthetic, gpus, steps, steps, batch, place, servers=servers, servers_on=on)
        found.append(job.without_stragglers())
    return found
