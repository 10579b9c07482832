"""How far a prediction can be trusted: what its costs rest on, and whether an interval may be given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.job.header import measured
from sim.platform import named_gpus

if TYPE_CHECKING:
    from sim.job.scenario import Scenario
    from sim.platform.cluster import Provenance

TRIED = 2  # times the workers and hosts that were fitted: so many have been compared with real runs (experiments validate, testbed)

LONGEST_LAW = 60  # characters of a law in a note


def no_interval(scenario: Scenario, world: str) -> str | None:
    """Why nothing can be said of where one more run would fall; None if something can."""
    if measured(world):
        return None
    if scenario.on_named_gpus:
        return None
    if scenario.cluster.costs_of(scenario.workload) is None:
        return "how steps vary is nominal" if scenario.workload.step else "compute times are nominal"
    known = scenario.cluster.provenance
    if known is None:  # costs and their spread are the user's own
        return None
    repeated = scenario.workload.name in known.repeated
    return _beyond(scenario, known) or (None if repeated else "no fitted run was repeated")


def _beyond(scenario: Scenario, known: Provenance) -> str | None:
    """How the job is larger than the runs that were fitted, if it is too large to be compared with them."""
    times = 1 if free_links(scenario) else TRIED
    hosts = len(set(scenario.hosts))
    if known.workers is None or known.hosts is None:
        return "an older profile: fit again"
    if scenario.workers > times * known.workers:
        return f"fitted on {_counted(known.workers, 'worker')}, asked for {scenario.workers}"
    if hosts > (known.hosts if known.hosts == 1 else times * known.hosts):
        return f"fitted on {_counted(known.hosts, 'host')}, asked for {hosts}"
    return None


def free_links(scenario: Scenario) -> bool:
    """Whether messages between the hosts of a profile take no time, because what was fitted did not tell."""
    link = scenario.network
    return bool(
        scenario.cluster.provenance
        and len(set(scenario.hosts)) > 1
        and link.occupancy_s(1.0) == link.latency_s == link.overhead_s == 0
    )


def notes(scenario: Scenario) -> list[str]:
    """Caveats about the evidence behind costs and links, where there is less of it than a user may think."""
    cluster, name = scenario.cluster, scenario.workload.name
    if scenario.on_named_gpus:
        return [named_gpus.note(scenario)]
    found = ["links are free: the fitted runs do not separate messages from work"] if free_links(scenario) else []
    if cluster.provenance is None and not cluster.costs:
        nominal = "all but the step's times is nominal" if scenario.workload.step else "compute times are nominal"
        return [f"{nominal}; calibrate (real.run --trace, then calibration.fit) before you trust them"]
    if name not in cluster.costs:
        known = ", ".join(cluster.costs) or "nothing"
        return [*found, f"the profile knows the costs of {known}; those of {name} are nominal"]
    if cluster.provenance and cluster.costs_of(scenario.workload) is None:
        other = cluster.provenance.models[name].parameters
        said = f"of another model of {other:,} parameters (this one has {scenario.workload.parameters:,})"
        return [*found, f"the profile's costs of {name} are {said}; those of this one are nominal"]
    return found + (_unlike(scenario, cluster.provenance) if cluster.provenance else [])


def plain(law: str) -> str:
    """A law as a user called it, without a factor, and no longer than a line takes."""
    return law.partition("*")[0][:LONGEST_LAW]


def _unlike(scenario: Scenario, known: Provenance) -> list[str]:
    """In what this job is unlike all runs that were fitted."""
    found = []
    if scenario.workload.name not in known.models:
        found.append("the profile does not say which model its costs are of (an older version wrote it): fit again")
    new, law = [], plain(scenario.stragglers_name)
    if scenario.stragglers.mean > 0 and not known.slept:
        new.append("no run that was fitted slept")
    elif scenario.stragglers.mean > 0 and known.laws and law not in known.laws:
        found.append(f"sleeps are of {law}; those of the runs that were fitted were of {', '.join(known.laws)}")
    if scenario.cluster.crowded(scenario.hosts[scenario.servers :]) and not known.crowded:
        new.append("no run that was fitted had more workers than cores")
    if new:
        narrow = "" if no_interval(scenario, "event") else ": the interval may be too narrow"
        found.append(f"{' and '.join(new)}{narrow}")
    return found


def _counted(count: int, thing: str) -> str:
    return f"{count} {thing}{'s' * (count != 1)}"
