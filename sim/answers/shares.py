"""The parts of a step: computing, induced sleeps, and all else, which is messages, updates and waiting."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from sim.base import interval

if TYPE_CHECKING:
    from sim.answers.outcome import Outcome
    from sim.job.scenario import Scenario

TIMES = ("time_limit_s", "window_s")  # settings that fix the duration of a step's computing


def mean_step_s(outcome: Outcome) -> float:
    """Seconds of a step on the average, in the middle of the runs."""
    return interval.middle(outcome.step_s.mean(axis=1))


def computing_s(scenario: Scenario) -> float:
    """Seconds of a gradient at the median speed of the hosts; of a protocol with a limit that, and no less than a partition."""
    speeds = [scenario.machines[host].speed for host in scenario.hosts[scenario.servers :]] or [1.0]
    costs, batch, speed = scenario.costs, scenario.batch, median(speeds)
    limits_s = [getattr(scenario.protocol, name) for name in TIMES if hasattr(scenario.protocol, name)]
    if limits_s:
        partitions = getattr(scenario.protocol, "partitions", 1)
        return max(*limits_s, costs.partition(batch // partitions) / speed)
    return (costs.input(batch) + costs.compute(batch)) / speed


def of_computing(scenario: Scenario, step_s: float) -> float:
    """The share of a step of so many seconds that is computing, from 0 to 1."""
    return min(1.0, computing_s(scenario) / step_s) if step_s > 0 else 0.0


def of_messages(scenario: Scenario, step_s: float) -> float:
    """The share of a step of so many seconds that is neither computing nor an induced sleep."""
    if scenario.ranks < 2 or step_s <= 0:
        return 0.0
    return min(1.0, max(0.0, 1 - (computing_s(scenario) + scenario.stragglers.mean) / step_s))
