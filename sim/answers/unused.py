"""The hosts and GPUs of a cluster on which a job has no rank."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from sim.base.errors import printable
from sim.platform.cluster import UNCOUNTED

if TYPE_CHECKING:
    from sim.job.scenario import Scenario

MOST_NAMES = 3


def notes(scenario: Scenario) -> list[str]:
    """What is idle, in a line; empty where every GPU and every host has a rank."""
    if scenario.cluster.provenance and sum(host.count for host in scenario.cluster.hosts) >= UNCOUNTED:
        return []
    hosts, workers = _hosts(scenario), scenario.workers
    gpus = sum(host.count * (host.gpus or 0) for host in scenario.cluster.hosts)
    used = {place for place in scenario.gpus[scenario.servers :] if place}
    idle = min(gpus - len(used), _room(scenario))
    if not used or idle <= 0:
        return [hosts] if hosts else []
    said = f"{workers} worker{'s' * (workers != 1)} on {gpus} GPUs: {idle} idle{', and ' * bool(hosts)}{hosts}"
    return [f"{said}; --workers {workers + idle} takes all GPUs"]


def _room(scenario: Scenario) -> int:
    """Ranks that there would be slots for."""
    return scenario.cluster.slots - (scenario.ranks if scenario.servers_on == "own" else scenario.workers)


def _hosts(scenario: Scenario) -> str:
    """The hosts without a rank, as text; empty if there are none."""
    used, first = set(scenario.hosts), 0
    idle: Counter[str] = Counter()
    for host in scenario.cluster.hosts:
        idle[host.name] += host.count - sum(index in used for index in range(first, first + host.count))
        first += host.count
    named = [f"{count} x {name}" if count > 1 else name for name, count in idle.items() if count]
    more = f" and {len(named) - MOST_NAMES} more" if len(named) > MOST_NAMES else ""
    listed = f"{', '.join(map(printable, named[:MOST_NAMES]))}{more}"
    return f"no rank on {idle.total()} of {first} hosts ({listed})" if named else ""
