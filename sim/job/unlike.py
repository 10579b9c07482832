"""A job whose workers compute on hosts of unlike speed: the same without the slowest hosts, and with minibatches in proportion to speed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, repeat
from typing import TYPE_CHECKING, NamedTuple

from sim.base.errors import WrongSetting

if TYPE_CHECKING:
    from sim.job.scenario import Scenario
    from sim.platform.cluster import Host

ALIKE = 0.9  # of the fastest host's speed: hosts that are no slower are taken as equally fast


class Kind(NamedTuple):
    """The workers on one entry of a cluster's hosts.

    Args:
        place: of the entry.
        speed: relative to what costs are of.
        workers: how many.
    """

    place: int
    speed: float
    workers: int


def kinds(scenario: Scenario) -> list[Kind]:
    """The entries of the cluster's hosts that have workers, in order."""
    places = list(chain.from_iterable(repeat(place, host.count) for place, host in enumerate(scenario.cluster.hosts)))
    speeds: dict[int, float] = {}
    workers: dict[int, int] = defaultdict(int)
    for host in scenario.computing_hosts:
        speeds[places[host]] = scenario.machines[host].speed
        workers[places[host]] += 1
    return [Kind(place, speeds[place], workers[place]) for place in sorted(speeds)]


def slowest(scenario: Scenario) -> list[Kind]:
    """The entries whose workers compute slowest, where others are faster; empty if all are alike."""
    every = kinds(scenario)
    least, most = min(one.speed for one in every), max(one.speed for one in every)
    return [one for one in every if one.speed * ALIKE <= least] if least < ALIKE * most else []


def without_slowest(scenario: Scenario) -> Scenario | None:
    """The job without the hosts whose workers compute slowest; None if all are alike, or a server is there, or no such job can be."""
    slow = slowest(scenario)
    places = {one.place for one in slow}
    if not slow or (scenario.servers_on == "own" and places & _of_servers(scenario)):
        return None
    hosts = tuple(host for place, host in enumerate(scenario.cluster.hosts) if place not in places)
    cluster = scenario.cluster.model_copy(update={"hosts": hosts})
    try:
        return replace(scenario, cluster=cluster, workers=scenario.workers - sum(one.workers for one in slow))
    except WrongSetting:  # as stragglers of a rank that is gone
        return None


def by_speed(scenario: Scenario) -> Iterator[tuple[str, Scenario]]:
    """The job with minibatches in proportion to speed, as many samples a step as it has; and before it what they are, as text.

    All workers then compute for as long. Their hosts are simulated so many times as fast as makes the minibatch of the job take that
    time. Nothing if hosts are alike, a worker would have no sample, or a step does not wait for every worker's whole minibatch.
    """
    protocol, line, batch = scenario.protocol, scenario.costs.compute, scenario.batch
    every = kinds(scenario)
    if not slowest(scenario) or protocol.by_arrival or protocol.limits_computing or not line.slope_s:
        return
    workers = sum(one.workers for one in every)
    step_s = workers * (line.base_s + line.slope_s * batch) / sum(one.workers * one.speed for one in every)
    batches = {one.place: (step_s * one.speed - line.base_s) / line.slope_s for one in every}
    if min(batches.values()) < 1:
        return
    hosts = list(scenario.cluster.hosts)
    for place, samples in batches.items():
        times = float(line(batch) / line(samples))
        hosts[place] = hosts[place].model_copy(update={"speed": hosts[place].speed * times})
    said = ", ".join(f"{samples:.0f} on {called(hosts[place])}" for place, samples in batches.items())
    cluster = scenario.cluster.model_copy(update={"hosts": tuple(hosts)})
    yield f"minibatches by speed: {said}", replace(scenario, cluster=cluster)


def called(host: Host) -> str:
    """A kind of host, with its GPU where that has a name."""
    return f"{host.name} ({host.gpu.name})" if host.gpu else host.name


def _of_servers(scenario: Scenario) -> set[int]:
    """The entries that hold a master or servers."""
    places = list(chain.from_iterable(repeat(place, host.count) for place, host in enumerate(scenario.cluster.hosts)))
    return {places[host] for host in scenario.hosts[: scenario.servers]}
