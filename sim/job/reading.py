"""Reading of minibatches: what a host reads a second, and how long its workers wait where they compute faster than that.

Minibatches are read while gradients are computed. A worker waits for the rest of the reading of its minibatch, which is its activity
`input`. In truth messages hide some of that wait, too: steps come out longer by what messages would hide, and never shorter.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from sim.job.variants import called
from sim.model.costs import Costs, Line

if TYPE_CHECKING:
    from sim.job.scenario import Scenario
    from sim.platform.cluster import Host


class Paces(NamedTuple):
    """A host's seconds for a minibatch of each of its workers.

    Args:
        workers: on it.
        read_s: until all are read.
        compute_s: until all are computed.
    """

    host: Host
    workers: int
    read_s: float
    compute_s: float


def with_waits(scenario: Scenario, costs: Costs) -> Costs:
    """Costs by which the slowest host takes as long for a minibatch as reading or computing, whichever is longer."""
    if costs.loading is not None:
        rest_s = float(costs.loading(scenario.batch)) - float(costs.compute(scenario.batch))
        costs = costs.model_copy(update={"input": Line(base_s=max(0.0, rest_s))})
    paces = _paces(scenario, costs)
    if not paces:
        return costs
    slowest_s = max(max(one.read_s, one.compute_s) for one in paces)
    least = min(scenario.machines[host].speed for host in scenario.computing_hosts)
    wait_s = slowest_s * least - float(costs.compute(scenario.batch))
    return costs.model_copy(update={"input": Line(base_s=wait_s)}) if wait_s > costs.input(scenario.batch) else costs


def least_s(scenario: Scenario) -> float:
    """Seconds in which the slowest host reads a minibatch of each of its workers; 0 if nothing says how fast."""
    return max((one.read_s for one in _paces(scenario, scenario.costs)), default=0.0)


def notes(scenario: Scenario) -> list[str]:
    """Where reading binds, in a line."""
    binding = [one for one in _paces(scenario, scenario.costs) if one.read_s > one.compute_s]
    if not binding:
        return []
    one = max(binding, key=lambda one: one.read_s / one.compute_s)
    taken = one.workers * scenario.batch / one.compute_s
    return [
        f"reading data binds: {called(one.host)} reads {scenario.workload.reading:,.0f} samples/s, and its workers would compute "
        f"{taken:,.0f}; waits that messages would hide count in full"
    ]


def _paces(scenario: Scenario, costs: Costs) -> list[Paces]:
    """Of each host with workers; none where nothing says how fast samples are read."""
    samples_per_s, compute_s = scenario.workload.reading, float(costs.compute(scenario.batch))
    if not (samples_per_s and compute_s):
        return []
    found = []
    for host, workers in Counter(scenario.computing_hosts).items():
        machine = scenario.machines[host]
        read_s = workers * scenario.batch / samples_per_s
        found.append(Paces(machine, workers, read_s, compute_s / machine.speed))
    return found
