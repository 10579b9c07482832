"""The same job with one thing changed that no option changes: other costs, hosts of other speeds, all ranks as the median one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from sim.job.scenario import Scenario
    from sim.model.costs import Costs
    from sim.platform.cluster import Host, Link


def with_costs(scenario: Scenario, costs: Costs) -> Scenario:
    """The job with other costs; each host is as fast, relative to them, as it was."""
    return _settled(scenario, scenario.machines, costs)


def as_fast(scenario: Scenario, times: float) -> Scenario:
    """The job where all work that the error of its costs is of goes so many times as fast: that of GPUs, or of all hosts if measured."""
    measured = scenario.cluster.costs_of(scenario.workload) is not None
    of_gpus = not measured and any(host.gpu for host in scenario.kinds)
    hosts = [
        host.model_copy(update={"speed": host.speed * times}) if host.gpu or not of_gpus else host
        for host in scenario.cluster.hosts
    ]
    return replace(scenario, cluster=scenario.cluster.model_copy(update={"hosts": tuple(hosts)}))


def with_links(
    scenario: Scenario, times: float = 1.0, latency: float = 1.0, work: float = 1.0, *, within: bool
) -> Scenario:
    """The job where a byte takes so many times as long on the links between hosts, or within them; limits of ports stay.

    Args:
        latency, work: times as long as latency, and as all else of a message, take.
        within: whether those within hosts, and not those between them.
    """
    cluster, found = scenario.cluster, {}
    for name in ("local",) if within else ("network", "library"):
        link = getattr(cluster, name)
        if link is not None:
            found[name] = link.model_copy(update=_slowed(link, times, latency, work))
    return replace(scenario, cluster=cluster.model_copy(update=found))


def _slowed(link: Link, times: float, latency: float, work: float) -> dict[str, float]:
    taken = {name: work * getattr(link, name) for name in ("overhead_s", "gap_s", "tree_inner_s")}
    taken |= {"tree_s": work * link.tree_s} if link.tree_s is not None else {}
    return taken | {
        "bandwidth_bytes_per_s": link.bandwidth_bytes_per_s / times,
        "latency_s": latency * link.latency_s,
    }


def at_the_median(scenario: Scenario) -> Scenario:
    """The job where every rank is as the median one: no stragglers, noise and hosts' speeds at their medians.

    Nominal noise, which is a guess, stays as it is, and so do hosts without GPUs that only serve.
    """
    free, costs, machines = scenario.without_stragglers(), scenario.costs, scenario.machines
    if scenario.has_measured_costs:
        costs = costs.at_the_median()
    computing = set(scenario.computing_hosts)
    speed = float(np.median([machines[host].speed for host in scenario.computing_hosts]))
    on_gpus = any(machines[host].gpus for host in computing)
    evened = [
        machine.model_copy(update={"speed": speed}) if index in computing or on_gpus == bool(machine.gpus) else machine
        for index, machine in enumerate(machines)
    ]
    if costs == scenario.costs and evened == machines:
        return free
    return _settled(free, evened, costs)


def _settled(scenario: Scenario, machines: Iterable[Host], costs: Costs) -> Scenario:
    """The job with these costs, on machines of these speeds relative to them."""
    kinds = [(alike[0], len(alike)) for alike in (list(group) for _, group in groupby(machines))]
    hosts = tuple(host.model_copy(update={"count": count}) for host, count in kinds)
    cluster, workload = scenario.cluster, scenario.workload
    if cluster.costs_of(workload) is None:
        workload = workload.model_copy(update={"costs": costs})
        return replace(scenario, cluster=cluster.model_copy(update={"hosts": hosts}), workload=workload)
    known = {"costs": cluster.costs | {workload.name: costs}, "hosts": hosts}
    return replace(scenario, cluster=cluster.model_copy(update=known))
