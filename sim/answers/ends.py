"""What is not known of a job's costs: the job at either end of what a cost may be, simulated beside the answer.

Every run of the answer has such a cost at its median, however many runs there are and whatever the random seed. What the cost does to a
step is seen at its 5 % and 95 % quantiles, in a run with the first run's random numbers. Drawn anew in each run instead, a cost that is
known badly would move the answer with the number of runs, and with it all that is compared.
"""

from __future__ import annotations

from dataclasses import replace
from math import exp, log
from typing import TYPE_CHECKING, NamedTuple

from sim.answers import interval
from sim.job import variants

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sim.job.scenario import Scenario

WORK, CONTENTION, AFTER_SLEEPS = "all work", "busy cores", "work after sleeps"


class Ends(NamedTuple):
    """The job where a cost is at its two ends."""

    high: Scenario
    low: Scenario


def of(scenario: Scenario) -> dict[str, Ends]:
    """By cause, for each cost of which an error is known."""
    costs, found = scenario.costs, {}
    if costs.error:
        times = exp(interval.of_normal(costs.error))
        found[WORK] = Ends(variants.as_fast(scenario, 1 / times), variants.as_fast(scenario, times))
    if any(host.contention_error for host in scenario.machines):
        found[CONTENTION] = Ends(*(_with_contention(scenario, side) for side in (1, -1)))
    if costs.resume_error_s and scenario.slowed:
        off_s = interval.of_normal(costs.resume_error_s)
        longer = (costs.model_copy(update={"resume_s": costs.resume_s + side * off_s}) for side in (1, -1))
        found[AFTER_SLEEPS] = Ends(*(variants.with_costs(scenario, of) for of in longer))
    return found


def _with_contention(scenario: Scenario, side: int) -> Scenario:
    """All busy cores together never work twice as fast, however little they slow one another down."""
    hosts = []
    for host in scenario.cluster.hosts:
        times = exp(side * interval.of_normal(host.contention_error))
        contention = max(-0.5 / host.cores, (1 + host.contention) * times - 1)
        hosts.append(host.model_copy(update={"contention": contention}))
    return replace(scenario, cluster=scenario.cluster.model_copy(update={"hosts": tuple(hosts)}))


def off(middle: float, ends: Iterable[float]) -> tuple[float, float] | None:
    """Logarithms by which a step takes longer and shorter at the ends; None where nothing was done.

    Args:
        middle, ends: samples a second.

    >>> [round(one, 2) for one in off(100.0, (50.0, 150.0))]
    [0.69, 0.41]
    """
    speeds = [middle, *ends]
    if min(speeds) <= 0:
        return None
    faster = [log(one / middle) for one in speeds]
    return -min(faster), max(faster)
