"""The limits of configurations: the cause without which a step would be shortest, simulated as in sim.run's --why."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sim.base.errors import WrongSetting
from sim.plans.candidates import EFFORTS
from sim.studies.why import LEAST, without_causes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sim.job.scenario import Scenario
    from sim.plans.candidates import Candidate
    from sim.plans.simulating import Simulating

TWICE = "twice as fast"


def find(best: list[Candidate], simulating: Simulating) -> None:
    """Say of each what limits it, as far as there is time to know."""
    shorter = {(place, name): job for place, one in enumerate(best) for name, job in _jobs(one, simulating)}
    speeds = simulating.speeds(shorter)
    for place, one in enumerate(best):
        known = {name: speeds.get((place, name)) for _, name in shorter if _ == place}
        if all(known.values()):
            one.limits = _said({name: speed or 0.0 for name, speed in known.items()})


def _jobs(one: Candidate, simulating: Simulating) -> Iterator[tuple[str, Scenario]]:
    """A few steps of the job, as it is ("") and without each cause."""
    few = EFFORTS[1]
    scenario = replace(simulating.room.scenario(one.configuration), steps=few.steps, warmup=few.warmup)
    yield "", scenario
    try:
        yield from without_causes(scenario)
    except WrongSetting:  # a job that cannot be without it
        return


def _said(speeds: dict[str, float]) -> str:
    """The cause with the largest gain, and the gain; of computing with half of it."""
    base = speeds.pop("")
    gains = {name: speed / base - 1 for name, speed in speeds.items()}
    name = max(gains, key=gains.__getitem__)
    if gains[name] < LEAST:
        return "nothing by itself"
    how = TWICE if name.endswith(TWICE) else "without"
    return f"{name.removeprefix('without ').removesuffix(TWICE).strip()} ({gains[name]:+.0%} {how})"
