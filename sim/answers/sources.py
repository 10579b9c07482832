"""The sources of what is known of a job's numbers, and which jobs have a source in common."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from sim.answers import trust
from sim.job import named_gpus

if TYPE_CHECKING:
    from collections.abc import Hashable

    from sim.job.scenario import Scenario
    from sim.platform.cluster import Link

COMPUTING, LINKS, INNER_LINKS, HOSTS = "computing", "links between hosts", "links within hosts", "hosts that GPUs share"
CORES, SLEEPS, MODEL = "busy cores", "sleeps, and work after them", "errors of the simulator"
SUMMING = "the algorithm that sums"
BY_NAME, GIVEN = "by name", "given, and not measured"  # the sources of links


def nothing_measured(scenario: Scenario) -> bool:
    """Whether neither a profile nor the user says what this workload costs on these hosts."""
    return scenario.cluster.costs_of(scenario.workload) is None and "costs" not in scenario.workload.model_fields_set


def known_by_name(scenario: Scenario) -> tuple[bool, bool]:
    """Whether the network, and the link within a host, are known by name alone; costs that are the user's own come with links that are."""
    cluster, hosts = scenario.cluster, len(set(scenario.hosts))
    known = cluster.provenance
    fitted = cluster.costs_of(scenario.workload) is not None
    theirs = not (fitted or nothing_measured(scenario)) and not passed(scenario)[0].named
    if (fitted and not known) or theirs:
        return False, False
    between = hosts > 1 and not (known and known.links_measured) and not trust.free_links(scenario)
    if hosts == len(scenario.hosts) or (known and known.local_measured):
        return between, False
    if hosts > 1:
        return between, bool(between and cluster.local.named and scenario.summed)
    return between, gpus_together(scenario) and not (fitted and known and (known.workers or 1) > 1)


def gpus_together(scenario: Scenario) -> bool:
    """Whether ranks share hosts, all of which have GPUs."""
    hosts = set(scenario.hosts)
    return len(hosts) < len(scenario.hosts) and all(scenario.machines[host].gpus for host in hosts)


def passed(scenario: Scenario) -> tuple[Link, bool]:
    """The link that most of a job's messages pass, and whether it is that between hosts."""
    apart = len(set(scenario.hosts)) > 1
    return (scenario.network if apart else scenario.local), apart


def of_costs(scenario: Scenario) -> str:
    """The source of what is known of computing, as text."""
    cluster, workload = scenario.cluster, scenario.workload
    if cluster.costs_of(workload) is not None:
        return f"fitted: the profile {cluster.name}"
    if workload.step:
        carried = bool(scenario.costs.error)
        return "a step measured on another GPU, by the ratio of published rates" if carried else "a measured step"
    if scenario.on_named_gpus and workload.is_nominal:
        return "by name: published rates"
    return "given" if "costs" in workload.model_fields_set else "assumed: a nominal core"


def of_links(scenario: Scenario, apart: bool) -> str:
    """The same of the links between hosts, or within them."""
    cluster = scenario.cluster
    known = cluster.provenance
    if known and (known.links_measured if apart else known.local_measured):
        return f"measured: the profile {cluster.name}"
    return BY_NAME if (cluster.network if apart else cluster.local).named else GIVEN


def job(scenario: Scenario) -> Hashable:
    """Which job it is, on whatever links and with whatever stragglers."""
    asked = repr(scenario.protocol), scenario.workers, scenario.servers, scenario.batch
    return scenario.workload.name, scenario.cluster.name if scenario.cluster.provenance else machines(scenario), *asked


def kind(scenario: Scenario) -> Hashable:
    """Jobs of one kind are off their profile by the same factor; of GPUs known by name, those of one model on one GPU."""
    if scenario.on_named_gpus:
        return scenario.workload.name, *sorted({gpu.name for gpu in named_gpus.gpus(scenario) if gpu})
    return job(scenario)


def usual_machine(scenario: Scenario) -> str:
    """The name of the hosts that have most of the ranks: a few hosts more or fewer are still on the same network."""
    ranks = Counter(scenario.kinds[host].name for host in scenario.hosts)
    return min(ranks, key=lambda name: (-ranks[name], name))


def machines(scenario: Scenario) -> str:
    """The names of a cluster's hosts."""
    return ", ".join(host.name for host in scenario.cluster.hosts)
