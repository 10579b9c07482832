"""What a user should know about an answer besides its numbers."""

from __future__ import annotations

from sim import bottleneck
from sim.cluster import Provenance
from sim.outcome import Outcome
from sim.scenario import Scenario
from sim.traces import Trace

REAL = ("mpi", "horovod", "tensorflow")  # worlds whose times were measured


def notes(scenario: Scenario, outcome: Outcome, world: str, trace: Trace | None = None) -> list[str]:
    """What to add to an answer, a line each; none if there is nothing to say."""
    by_arrival = scenario.protocol.arrival_order_matters
    found = _of_arrivals(scenario, trace) if by_arrival and scenario.served and trace is not None else []
    if outcome.ran_out:
        worker_steps = len(outcome.step_s) * scenario.rounds * max(1, scenario.workers)
        often = f"{outcome.ran_out} times" if by_arrival else f"in {outcome.ran_out / worker_steps:.0%} of their steps"
        found.append(f"workers ran out of data before the time limit {often}: a larger --batch would use it")
    if world in REAL:
        return found
    if scenario.cluster.provenance is None and not scenario.cluster.costs:
        found.append(
            "compute times are nominal; calibrate (real.run --trace, then calibration.fit) before you trust them"
        )
    elif scenario.workload.name not in scenario.cluster.costs:
        known = ", ".join(scenario.cluster.costs)
        found.append(
            f"the profile knows the costs of {known or 'nothing'}; those of {scenario.workload.name} are nominal"
        )
    elif scenario.cluster.provenance:
        found += _beyond_the_fit(scenario, scenario.cluster.provenance)
    return found


def _beyond_the_fit(scenario: Scenario, known: Provenance) -> list[str]:
    """In what this job is unlike all runs that were fitted."""
    found = []
    if scenario.stragglers.mean > 0 and not known.slept:
        found.append("no run that was fitted slept")
    if scenario.cluster.crowded(scenario.hosts[scenario.servers :]) and not known.crowded:
        found.append("no run that was fitted had more workers than cores")
    return [f"{' and '.join(found)}: the interval may be too narrow"] if found else []


def _of_arrivals(scenario: Scenario, trace: Trace) -> list[str]:
    """How stale gradients were, and what the job waits for; of its first replication."""
    stale = bottleneck.staleness(trace)
    shares = ", ".join(f"{count}: {(stale == count).mean():.0%}" for count in range(min(6, stale.max() + 1)))
    said = [f"staleness of gradients, in updates: mean {stale.mean():.2f}; {shares}"]
    return [*said, bottleneck.warning(bottleneck.utilisation(trace, scenario))]
