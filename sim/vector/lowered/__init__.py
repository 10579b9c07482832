"""Many steps by compiled loops, one after another (sim.vector.compiled): what texts do is found out once, and not for each of them."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from sim.answers.outcome import Outcome
from sim.job.scenario import Scenario
from sim.randomness import BLOCK
from sim.vector.lowered.cycles import CycleSteps
from sim.vector.lowered.hub import HubSteps
from sim.vector.lowered.plan import NotLowered, Plan, PlannedWorld
from sim.vector.lowered.sums import SumSteps
from sim.vector.world import outcome_of

KINDS = (HubSteps, SumSteps, CycleSteps)


def outcome(
    scenario: Scenario, replications: Sequence[int], together: int, within_s: float, also: Sequence[Scenario] = ()
) -> Outcome:
    """All steps of a scenario.

    Args:
        scenario: the job, of a protocol of ours.
        replications: their numbers.
        together: steps that are planned at once.
        within_s: after so many seconds the run ends with those at hand, once warm-up is over.
        also: see `sim.vector.run`.

    Raises:
        NotLowered: no loop does what its ranks do.
        Refused, Unsettled, TooMany: as of arrays.
    """
    world = PlannedWorld(scenario, replications, rounds=range(1), also=also)
    until_s = time.monotonic() + within_s
    if not world.can_be_lowered:
        raise NotLowered
    rounds, warmup, step, over = scenario.rounds, scenario.warmup, 0, False
    end_s, samples = np.zeros((rounds + 1, len(replications))), np.empty((rounds, len(replications)), int)
    idle_s, ran_out, loops = np.zeros((len(replications), scenario.ranks)), 0, None
    while step < rounds and not over:
        steps = range(step, min(rounds, step + together, (step // BLOCK + 1) * BLOCK))
        plan = Plan(world, steps)
        loops = loops or loops_of(world, plan)
        waited_s = loops.play(plan, step, end_s[1 + step : 1 + steps.stop])
        samples[step : steps.stop], ran_out, step = plan.samples, ran_out + plan.ran_out, steps.stop
        over = step > warmup and time.monotonic() > until_s
        idle_s += waited_s[0] + waited_s[2 if over or step == rounds else 1]
    return outcome_of(end_s[: step + 1].T, samples[:step].T, idle_s, ran_out, warmup)


def loops_of(world: PlannedWorld, plan: Plan) -> HubSteps | SumSteps | CycleSteps:
    """The loops that do what ranks do in these steps.

    Raises:
        NotLowered: there are none.
    """
    found = next((kind for kind in KINDS if kind.suits(plan)), None)
    if found is None:
        raise NotLowered
    return found(world, plan)
