"""Messages, ports, cores and GPUs, and what messages need that share ports."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sim.engine.arrays.shape import INTEGERS, NOBODY, Empty
from sim.engine.kernel import layout
from sim.engine.kernel.cores import TICK_S
from sim.event.machines.cores import THREADS_TURN_S

if TYPE_CHECKING:
    from sim.engine.arrays.shape import Shape


def post(job: Shape) -> dict[str, np.ndarray | Empty]:
    """Messages and events."""
    most = job.most
    return {
        "event": Empty(2 * most, layout.EVENT, zeros=False),
        "soon": Empty(2 * most, INTEGERS, zeros=False),
        "message": Empty(most, layout.MESSAGE, zeros=False),
        "free_message": Empty(most, INTEGERS, zeros=False),
        "departure": Empty(most, layout.DEPARTURE, zeros=False),
        "free_departure": Empty(most, INTEGERS, zeros=False),
    }


def hosts(job: Shape) -> dict[str, np.ndarray | Empty]:
    """Ports and cores."""
    of, shared, found, at = job.scenario, job.scenario.cluster.shared_cores, [], 0
    turn_s = THREADS_TURN_S if of.threaded else TICK_S
    for host in () if job.cores_suffice else of.machines[:1] if shared else of.machines:
        found.append((0.0, host.speed, host.contention, turn_s, shared or host.cores, 0, at))
        at += shared or host.cores
    groups = np.array(found or [(0.0, 1.0, 0.0, TICK_S, 1, 0, 0)], layout.GROUP)
    cores = np.zeros(max(at, 1), layout.CORE)
    cores["group"] = np.repeat(np.arange(len(groups)), groups["cores"])
    return {
        "port": Empty(max(of.hosts) + 1, layout.PORT),
        "window": Empty(of.ranks**2 if of.network.tcp else 1, layout.WINDOW),
        "group": groups,
        "core": cores,
        "task": Empty((len(cores), 1 if job.cores_suffice else job.tasks), layout.TASK),
        **gpus(job),
    }


def gpus(job: Shape) -> dict[str, np.ndarray | Empty]:
    """GPUs that ranks share."""
    of = job.scenario
    places = job.shared_gpus
    gpus = np.zeros(max(1, len(places)), layout.GPU)
    for at, place in enumerate(places):
        gpus["speed"][at], gpus["switching"][at] = of.machines[place.host].speed, of.machines[place.host].switching
    return {"gpu": gpus, "gpu_work": Empty((len(gpus), of.ranks if places else 1), layout.GPU_WORK)}


def flows(job: Shape) -> dict[str, np.ndarray | Empty]:
    """What messages need that share ports."""
    of, link, ranks = job.scenario, job.scenario.network, job.scenario.ranks
    buckets = np.zeros(2 * (max(of.hosts) + 1) if link.fair else 1, layout.BUCKET)
    buckets["rate"], buckets["queue"] = link.bandwidth_bytes_per_s, link.queue_bytes
    buckets["depth"] = buckets["level"] = link.burst_bytes
    most, peers = (job.most, (ranks, ranks)) if link.fair else (1, (1, 1))
    return {
        "lane": Empty((layout.LANES, 2 * ranks + 1), layout.FLOAT),
        "flow": Empty(most, layout.FLOW),
        "free_flow": np.arange(most),
        "active": Empty(most, INTEGERS),
        "bucket": buckets,
        "callback": Empty(2 * most, layout.CALLBACK),
        "stream": np.full(peers, NOBODY, INTEGERS),
        "announced": np.full(peers, NOBODY, INTEGERS),
    }
