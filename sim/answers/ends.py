"""What is not known of a job's numbers, put into the job: each at either end of what it may be, simulated beside the answer.

Every run of the answer has all numbers at their medians, however many runs there are and whatever the random seed. What one of them does
to a step is seen at its 5 % and 95 % quantiles, in a run with the first run's random numbers. Drawn anew in each run instead, a number
that is known badly would move the answer with the number of runs, and with it all that is compared.
"""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING

from sim.answers import quantities
from sim.base.errors import WrongSetting

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sim.answers.quantities import Quantity
    from sim.job.scenario import Scenario

LEAST = 0.01  # of a step: what can move it by less is bounded, and not simulated


def of(scenario: Scenario, step_s: float) -> dict[str, list[Scenario]]:
    """By key of each quantity that counts, the job at its ends.

    Args:
        step_s: seconds of a step of the answer.
    """
    found = {}
    for quantity in quantities.of(scenario):
        jobs = _jobs(scenario, quantity) if max(quantity.bound(step_s)) >= LEAST else []
        if jobs:
            found[quantity.key] = jobs
    return found


def _jobs(scenario: Scenario, quantity: Quantity) -> list[Scenario]:
    """None where an end is beyond what can be simulated."""
    try:
        return [quantity.put(scenario, side * quantities.END) for side in quantity.sides]
    except WrongSetting:
        return []


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
