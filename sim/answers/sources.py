"""The sources of what is known of a job's numbers, which jobs have a source in common, and the distance from the measured sizes."""

from __future__ import annotations

from collections import Counter
from math import exp, log2
from typing import TYPE_CHECKING, NamedTuple

from sim.answers.ignorance import doublings
from sim.base import interval
from sim.job import measured_steps, named_gpus
from sim.model import workload_text

if TYPE_CHECKING:
    from collections.abc import Hashable

    from sim.job.scenario import Scenario
    from sim.platform.cluster import Link, Provenance

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
    between = hosts > 1 and not (known and known.links_measured) and not free_links(scenario)
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


TRIED = 2  # times the workers that were fitted: so many have been compared with real runs on one machine (experiments validate)

LONGEST_LAW = 60  # characters of a law in a note


class Beyond(NamedTuple):
    """The quantity in which a job is larger than the fitted runs; as text, "fitted on 2 hosts, asked for 16"."""

    thing: str
    fitted: int
    asked: int

    @property
    def doublings(self) -> float:
        """The number of doublings from the fitted size to the size that is asked for."""
        return doublings(self.asked, self.fitted)

    def __str__(self) -> str:
        return f"fitted on {self.fitted} {self.thing}{'s' * (self.fitted != 1)}, asked for {self.asked}"


def beyond(scenario: Scenario) -> Beyond | None:
    """A job's size beyond the runs that its profile was fitted on; None if it is within. An older profile counts as one of one worker.

    On fitted hosts, twice the workers are within, because so many have been compared with real runs, unless links are free, or a table
    says how steps grow.
    """
    known = scenario.cluster.provenance
    if known is None:
        return None
    counted = scenario.computing_hosts if scenario.cluster.serving else scenario.hosts  # a table has those of workers
    hosts = Beyond("host", known.hosts or 1, len(set(counted)))
    workers = Beyond("worker", known.workers or 1, scenario.workers)
    if hosts.doublings == 0 and workers.doublings <= (0 if known.growth or free_links(scenario) else log2(TRIED)):
        return None
    return max(hosts, workers, key=lambda one: one.doublings)


def only_batch(scenario: Scenario) -> int | None:
    """The batch at which computing was measured, if it was at one alone."""
    cluster, workload = scenario.cluster, scenario.workload
    if cluster.costs_of(workload) is not None:
        known = cluster.provenance.batches.get(workload.name) if cluster.provenance else None
        return known[0] if known and known[0] == known[1] else None
    batches = {step.batch for step in measured_steps.used(scenario)}
    return batches.pop() if len(batches) == 1 else None


def free_links(scenario: Scenario) -> bool:
    """Whether messages between the hosts of a profile take no time, because what was fitted did not tell."""
    link = scenario.network
    return bool(
        scenario.cluster.provenance
        and len(set(scenario.hosts)) > 1
        and link.occupancy_s(1.0) == link.latency_s == link.overhead_s == 0
    )


def nominal(scenario: Scenario) -> list[str]:
    """Those of a job of which nothing was measured, which its interval says as well."""
    return [] if scenario.cluster.provenance or scenario.cluster.costs else _of_costs(scenario)


def notes(scenario: Scenario) -> list[str]:
    """Caveats about the evidence for costs and links, where it is weaker than a user may think."""
    return _of_costs(scenario) + _of_pairs(scenario) + _of_evaluation(scenario)


def _of_costs(scenario: Scenario) -> list[str]:
    cluster, name = scenario.cluster, scenario.workload.name
    if scenario.on_named_gpus and scenario.workload.is_nominal:
        return [named_gpus.note(scenario)]
    found = ["links are free: the fitted runs do not separate messages from work"] if free_links(scenario) else []
    if name not in cluster.costs:
        return [*found, _of_none(scenario)]
    if cluster.provenance and cluster.costs_of(scenario.workload) is None:
        other = cluster.provenance.models[name].parameters
        said = f"of another model of {other:,} parameters (this one has {scenario.workload.parameters:,})"
        return [*found, f"the profile's costs of {name} are {said}; those of this one are nominal"]
    return found + (_unlike(scenario, cluster.provenance) if cluster.provenance else [])


def _of_pairs(scenario: Scenario) -> list[str]:
    """Runs that differ by what one pair of repeats says, which is an interval wider than that of no repeats, or of three."""
    known, name = scenario.cluster.provenance, scenario.workload.name
    if known is None or name not in known.paired or scenario.cluster.costs_of(scenario.workload) is None:
        return []
    times = exp(interval.of_normal(scenario.costs.error))
    return [
        f"one pair of repeats tells how runs of {name} differ: a factor {times:.2g} either way; record a third and fit again"
    ]


def _of_evaluation(scenario: Scenario) -> list[str]:
    """An evaluation of which neither a fitted run nor the costs that were given say what it takes."""
    known = scenario.cluster.costs_of(scenario.workload) or scenario.workload.costs
    if not scenario.test_size or known.evaluated or not scenario.costs.evaluated:
        return []
    took = f"{scenario.costs.evaluate(scenario.test_size) * 1e3:.3g} ms"
    return [
        f"evaluation was not measured: {scenario.test_size} samples are taken to need {took}, a third of computing them"
    ]


def _of_none(scenario: Scenario) -> str:
    """Where costs come from that no profile has."""
    cluster, steps, name = scenario.cluster, scenario.workload.step, scenario.workload.name
    if "costs" in scenario.workload.model_fields_set:
        return f"the costs that {name} gives are taken as exact; costs.error says how far off they may be"
    said = measured_steps.note(scenario) if steps else ""
    memory = named_gpus.note_on_unnamed(scenario)
    if cluster.provenance is None and not cluster.costs:
        all_else = f"{said}; all but computing is nominal" if steps else "compute times are nominal"
        return f"{all_else}; {workload_text.calibrated(scenario.workload)} before you trust them{memory}"
    known = ", ".join(cluster.costs) or "nothing"
    return said + memory if said else f"the profile knows the costs of {known}; those of {name} are nominal{memory}"


def plain(law: str) -> str:
    """A law as a user called it, without a factor, and no longer than a line takes."""
    return law.partition("*")[0][:LONGEST_LAW]


def unlike_sleeps(scenario: Scenario) -> bool:
    """Whether ranks sleep by a law that no run slept by that its profile was fitted on."""
    known = scenario.cluster.provenance
    if known is None or scenario.stragglers.mean <= 0:
        return False
    return not known.slept or bool(known.laws and plain(scenario.stragglers_name) not in known.laws)


def _unlike(scenario: Scenario, known: Provenance) -> list[str]:
    """In what this job is unlike all runs that were fitted."""
    found = []
    if scenario.workload.name not in known.models:
        found.append("the profile does not say which model its costs are of (an older version wrote it): fit again")
    if far := beyond(scenario):
        found.append(f"{far}: {far.doublings:.2g} doubling{'s' * (far.doublings != 1)} beyond")
    elif scenario.workload.name not in known.repeated:
        found.append("no run that was fitted was repeated")
    if unlike_sleeps(scenario):
        law, fitted = plain(scenario.stragglers_name), ", ".join(known.laws)
        those = f"those of the runs that were fitted were of {fitted}" if known.slept else "no fitted run slept"
        found.append(f"sleeps are of {law}; {those}: the interval contains caches that are cold after a sleep")
    if scenario.cluster.crowded(scenario.hosts[scenario.servers :]) and not known.crowded:
        found.append("no fitted run had more workers than cores: the interval may be too narrow")
    return found
