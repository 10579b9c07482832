"""The same job with one thing changed that no option changes: other costs, hosts of other speeds or none of the slowest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from sim.base.errors import WrongSetting

if TYPE_CHECKING:
    from sim.job.scenario import Scenario
    from sim.model.costs import Costs
    from sim.platform.cluster import Host

ALIKE = 0.9  # of the fastest host's speed: hosts that are no slower are taken as equally fast


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
    return scenario.on(hosts=tuple(hosts))


def with_links(
    scenario: Scenario, times: float = 1.0, latency: float = 1.0, work: float = 1.0, *, within: bool
) -> Scenario:
    """The job where a byte takes so many times as long on the links between hosts, or within them; limits of ports stay.

    Args:
        latency, work: times as long as latency, and as all else of a message, take.
        within: whether those within hosts, and not those between them.
    """
    found = {}
    for name in ("local",) if within else ("network", "library"):
        link = getattr(scenario.cluster, name)
        if link is not None:
            seconds = {one: getattr(link, one) for one in ("overhead_s", "gap_s", "tree_inner_s", "tree_s")}
            slowed = {one: work * seconds[one] for one in seconds if seconds[one] is not None}
            slowed["latency_s"] = latency * link.latency_s
            slowed["bandwidth_bytes_per_s"] = link.bandwidth_bytes_per_s / times
            found[name] = link.model_copy(update=slowed)
    return scenario.on(**found)


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
        return replace(scenario.on(hosts=hosts), workload=workload)
    return scenario.on(costs=cluster.costs | {workload.name: costs}, hosts=hosts)


def without_slowest(scenario: Scenario) -> Scenario | None:
    """The job without the hosts whose workers compute slowest; None if all are alike, or a server is there, or no such job can be."""
    # By the entry of the cluster's hosts.
    workers = Counter(scenario.places[host] for host in scenario.computing_hosts)
    speeds = {scenario.places[host]: scenario.machines[host].speed for host in scenario.computing_hosts}
    least, most = min(speeds.values()), max(speeds.values())
    slow = {place for place, speed in speeds.items() if speed * ALIKE <= least}
    servers = {scenario.places[host] for host in scenario.hosts[: scenario.servers]}
    if least >= ALIKE * most or (scenario.servers_on == "own" and servers & slow):
        return None
    hosts = tuple(host for place, host in enumerate(scenario.cluster.hosts) if place not in slow)
    cluster = scenario.cluster.model_copy(update={"hosts": hosts})
    try:
        return replace(scenario, cluster=cluster, workers=scenario.workers - sum(workers[place] for place in slow))
    except WrongSetting:  # as stragglers of a rank that is gone
        return None


def called(host: Host) -> str:
    """A kind of host, with its GPU where that has a name."""
    return f"{host.name} ({host.gpu.name})" if host.gpu else host.name
