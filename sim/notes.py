"""What a user should know about an answer besides its numbers."""

from __future__ import annotations

from sim import bottleneck, trust
from sim.outcome import Outcome
from sim.scenario import Scenario
from sim.traces import Trace


def notes(scenario: Scenario, outcome: Outcome, world: str, trace: Trace | None = None) -> list[str]:
    """What to add to an answer, a line each; none if there is nothing to say."""
    by_arrival = scenario.protocol.arrival_order_matters
    found = _of_arrivals(scenario, trace) if by_arrival and scenario.served and trace is not None else []
    if outcome.ran_out:
        worker_steps = len(outcome.step_s) * scenario.rounds * max(1, scenario.workers)
        often = f"{outcome.ran_out} times" if by_arrival else f"in {outcome.ran_out / worker_steps:.0%} of their steps"
        found.append(f"workers ran out of data before the time limit {often}: a larger --batch would use it")
    return found if world in trust.REAL else found + _of_computing(scenario) + trust.notes(scenario)


def _of_computing(scenario: Scenario) -> list[str]:
    """Commands refuse such a job (Scenario.check_computing); a program may mean it, to time messages alone."""
    takes_time = scenario.costs.compute(scenario.batch) or scenario.costs.partition(scenario.batch)
    return [] if takes_time else ["computing takes no time: no costs of the workload are known"]


def _of_arrivals(scenario: Scenario, trace: Trace) -> list[str]:
    """How stale gradients were, and what the job waits for; of its first replication."""
    stale = bottleneck.staleness(trace)
    shares = ", ".join(f"{count}: {(stale == count).mean():.0%}" for count in range(min(6, stale.max() + 1)))
    said = [f"staleness of gradients, in updates: mean {stale.mean():.2f}; {shares}"]
    return [*said, bottleneck.warning(bottleneck.utilisation(trace, scenario))]
