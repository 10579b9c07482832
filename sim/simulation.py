"""A scenario's answer: replications of its protocol's text, by the engine or by the event world, which says the same."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING

from sim import needs
from sim.answers import candidates, growth
from sim.base.errors import WrongSetting
from sim.base.ranges import MOST_REPLICATIONS, check, check_integer, check_kind
from sim.options import WORLDS

if TYPE_CHECKING:
    from sim.answers.outcome import Outcome
    from sim.answers.result import Result
    from sim.job.scenario import Scenario

REPLICATIONS = 20
TRY_STEPS, TRY_S = 10, 2.0


def simulate(
    scenario: Scenario,
    world: str = "auto",
    replications: int | None = None,
    *,
    first: int = 0,
    want_trace: bool = False,
    within_s: float = math.inf,
    done: Callable[[int], object] = lambda runs: None,
) -> Result:
    """Simulate replications of a scenario.

    Args:
        world: auto, event or engine, which give the same to 1e-9 s but where the engine takes a ring as a whole (sim.language.engine).
            auto is the engine where it is compiled and understands the text, and else the event world. The engine records nothing.
        replications: runs, each with random numbers of its own; REPLICATIONS if None.
        first: the number of the first replication. Equal numbers have equal random numbers.
        want_trace: record all activities of the first replication.
        within_s: seconds after which no replication begins and the first ends early.
        done: called with the number of replications that have just ended.

    Returns:
        Arrays of shape (replications, steps), and what they come to.

    Raises:
        WrongSetting: an argument is out of range, the world asked for cannot run the scenario, or the job needs too much memory or time.
        RunFailed: the ranks wait for one another for ever, or do what no world can run.
    """
    from sim.job.scenario import Scenario

    check_kind("scenario", scenario, Scenario, "a Scenario(protocol, workload, ...)")
    check_kind("done", done, Callable, "a function of the number of runs that have ended")
    check_asked(world, replications, within_s)
    check_integer("first", first, 0)
    from sim.base.deadline import ended_after

    longest_s = max(needs.patience_s(within_s), 2 * within_s)
    too_long = f"no answer after {longest_s:,.0f} seconds of the processor: the least takes longer; --within SECONDS waits for it"
    one = partial(_ran, world=world, first=first, want_trace=want_trace, done=done)
    with ended_after(longest_s, too_long):
        if not candidates.unknown(scenario):
            return one(scenario, replications, within_s)
        if want_trace:
            candidates.refuse(scenario, "a trace")
        return candidates.mixed(scenario, one, replications, within_s)


def check_asked(world: str, replications: int | None, within_s: float) -> None:
    """Refuse arguments of `simulate` by which no scenario can be simulated.

    Raises:
        WrongSetting: naming the one.
    """
    if world not in WORLDS:
        raise WrongSetting("--world", world, ", ".join(WORLDS))
    if replications is not None:
        check_integer("--replications", replications, 1, MOST_REPLICATIONS)
    check("--within", within_s, 0, math.inf, "seconds")


def try_out(scenario: Scenario) -> None:
    """Run the first steps of a user's own protocol in the event world, before it is run for real.

    Raises:
        RunFailed: its texts wait for one another for ever, or do what no world can run.
    """
    from sim.job.scenario import LATER
    from sim.protocols import is_ours
    from sim.runs.replications import Replications

    if not is_ours(scenario.protocol):
        few = replace(scenario, steps=min(scenario.steps, TRY_STEPS), warmup=min(scenario.warmup, 1), cluster=LATER)
        Replications(few, "event").outcome(0, TRY_S)


def _ran(
    scenario: Scenario,
    replications: int | None,
    within_s: float,
    *,
    world: str,
    first: int,
    want_trace: bool,
    done: Callable[[int], object],
) -> Result:
    """As many replications as there is time for, and at least the first steps of one."""
    from sim.answers import quantities, shares
    from sim.answers.outcome import join
    from sim.answers.result import Result
    from sim.protocols import is_ours
    from sim.runs.replications import Replications

    if world == "engine" and want_trace:
        raise WrongSetting("--world", "engine", "auto or event, which records what ranks do")
    start_s, count = time.monotonic(), replications or REPLICATIONS
    runs, trace = Replications(scenario, "event" if want_trace else world), None
    if want_trace:
        outcome, trace = runs.traced(first, within_s)
    else:
        outcome = runs.outcome(first, within_s)
    done(1)
    took_s = time.monotonic() - start_s
    whole = len(outcome.step_s[0]) == scenario.steps and outcome.warmup == scenario.warmup
    # Jobs that say what unknown numbers do; none beside a single run, whose interval has bounds instead.
    ends = quantities.at_ends(scenario, shares.mean_step_s(outcome)) if whole and count > 1 else {}
    few = quantities.few_steps(scenario.steps)
    share = (scenario.warmup + few) / (scenario.warmup + scenario.steps)  # of a run's time, of each at an end
    bounded = (1 + share * sum(map(len, ends.values()))) * took_s >= within_s
    if not bounded:
        speeds = {key: [Replications(job, world).outcome(first).throughput()[0] for job in ends[key]] for key in ends}
        middle = float(outcome.first_steps(few).throughput()[0])
        off = {key: quantities.off(middle, map(float, speeds[key])) for key in ends}
        outcome = replace(outcome, ends={key: apart for key, apart in off.items() if apart is not None})
    alike = is_ours(scenario.protocol) and scenario.draws.are_alike  # further runs would be the first again
    outcomes, further = [outcome], repeat(outcome) if alike else runs.outcomes(range(first + 1, first + count))
    took_s = 0.0 if alike else took_s
    while whole and len(outcomes) < count and time.monotonic() - start_s + took_s < within_s:
        outcomes.append(next(further))
        done(1)

    def smaller(job: Scenario) -> Outcome:
        return Replications(job, world).outcome(first, within_s)

    joined = replace(join(outcomes), staleness=None if trace is not None else runs.staleness(first))
    outcome = growth.of_table(scenario, joined, smaller)
    wall_s = time.monotonic() - start_s
    return Result(scenario, runs.world, count, outcome, wall_s, first, trace, bounded=bounded and bool(ends))
