"""A scenario's answer: the event world's, which the engine computes where that is faster."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple

from sim import needs
from sim.answers import candidates, growth
from sim.base.errors import RunFailed, WrongSetting
from sim.base.ranges import MOST_REPLICATIONS, check, check_integer, check_kind
from sim.protocols.in_language import InLanguage
from sim.worlds import WORLDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sim.answers.outcome import Outcome
    from sim.answers.result import Result
    from sim.engine.replications import Replications
    from sim.job.scenario import Scenario
    from sim.recording.traces import Trace

REPLICATIONS = 20
NO_ROOM = "more is on its way at once than the engine has room for"
TRY_STEPS, TRY_S = 10, 2.0
ON_ONE_HOST = "all on one host, where a message leaves when its receiver takes it: let one rank receive before it sends, or use me.exchange"


class _Asked(NamedTuple):
    """The arguments of `simulate`, without the scenario and the world."""

    replications: int | None
    first: int
    want_trace: bool
    within_s: float
    done: Callable[[int], object]


class _Ran(NamedTuple):
    """The number of replications asked for, the outcome of those within the time, and the trace of the first."""

    asked: int
    outcome: Outcome
    trace: Trace | None


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
        world: auto, event or engine, which give the same to 1e-9 s. auto is the event world, in whose place the engine simulates
            what it saves much time for, once it is compiled; the engine records nothing.
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
    with ended_after(longest_s, too_long):
        return _simulated(scenario, world, _Asked(replications, first, want_trace, within_s, done))


def _simulated(scenario: Scenario, world: str, asked: _Asked) -> Result:
    from sim.answers.result import Result

    if candidates.unknown(scenario):
        if asked.want_trace:
            candidates.refuse(scenario, "a trace")

        def one(job: Scenario, runs: int, seconds: float) -> Result:
            return _simulated(job, world, asked._replace(replications=runs, within_s=seconds))

        return candidates.mixed(scenario, one, asked.replications, asked.within_s)
    start_s = time.monotonic()
    ran = (_of_text if isinstance(scenario.protocol, InLanguage) else _ran)(scenario, world, asked)
    wall_s = time.monotonic() - start_s
    named = "engine" if world == "engine" and not ran.outcome.slow else "event"
    return Result(scenario, named, ran.asked, ran.outcome, wall_s, asked.first, ran.trace)


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

    Each rank has a host of its own, and then one host has all. There a message leaves when its receiver takes it, as long ones do over
    MPI, so that ranks that all send first wait for ever.

    Raises:
        RunFailed: its texts wait for one another for ever, or do what no world can run.
    """
    from sim import event
    from sim.job.scenario import LATER
    from sim.platform.cluster import one_host
    from sim.protocols import is_ours

    if is_ours(scenario.protocol):
        return
    few = replace(scenario, steps=min(scenario.steps, TRY_STEPS), warmup=min(scenario.warmup, 1), cluster=LATER)
    if isinstance(scenario.protocol, InLanguage):  # whose messages leave whether or not their receivers take them
        from sim.replications import Replications

        Replications(few, "event").outcome(0, TRY_S)
        return
    event.run(few, within_s=TRY_S, want_trace=False)
    try:
        event.run(replace(few, cluster=one_host(scenario.ranks)), within_s=TRY_S, want_trace=False)
    except RunFailed as error:
        raise RunFailed(f"{error}; {ON_ONE_HOST}") from error


def _of_text(scenario: Scenario, world: str, asked: _Asked) -> _Ran:
    """As many replications of a text of named vectors as there is time for, and at least the first steps of one."""
    from sim.answers.outcome import join
    from sim.replications import Replications

    if world == "engine" and asked.want_trace:
        raise WrongSetting("--world", "engine", "auto or event, which records what ranks do")
    start_s, within_s, first = time.monotonic(), asked.within_s, asked.first
    runs, count, trace = (
        Replications(scenario, "event" if asked.want_trace else world),
        asked.replications or REPLICATIONS,
        None,
    )
    runs.check_needs(within_s, asked.want_trace)
    if asked.want_trace:
        outcome, trace = runs.traced(first, within_s)
    else:
        outcome = runs.outcome(first, within_s)
    asked.done(1)
    took_s = time.monotonic() - start_s
    whole = len(outcome.step_s[0]) == scenario.steps and outcome.warmup == scenario.warmup
    ends = _of_ends(scenario, count, outcome) if whole else {}
    if (1 + sum(map(len, ends.values()))) * took_s < within_s:
        beside = {key: [Replications(job, world).outcome(first) for job in jobs] for key, jobs in ends.items()}
        outcome = _with_ends(outcome, beside)
    outcomes, further = [outcome], runs.outcomes(range(first + 1, first + count))
    while whole and len(outcomes) < count and time.monotonic() - start_s + took_s < within_s:
        outcomes.append(next(further))
        asked.done(1)

    def smaller(job: Scenario) -> Outcome:
        return Replications(job, world).outcome(first, within_s)

    joined = replace(join(outcomes), slow=outcome.slow, arrivals=None if trace is not None else runs.arrivals(first))
    return _Ran(count, growth.of_table(scenario, joined, smaller), trace)


def _of_ends(scenario: Scenario, asked: int, outcome: Outcome) -> dict[str, list[Scenario]]:
    """The jobs that say what unknown numbers do; none beside a single run, whose interval has bounds instead."""
    from sim.answers import ends, shares

    return ends.of(scenario, shares.mean_step_s(outcome)) if asked > 1 else {}


def _with_ends(outcome: Outcome, runs: dict[str, list[Outcome]]) -> Outcome:
    """An outcome and what single runs of the jobs at the ends come to, beside its first run."""
    from sim.answers import ends

    middle, found = float(outcome.throughput()[0]), {}
    for key, several in runs.items():
        apart = ends.off(middle, [float(one.throughput()[0]) for one in several])
        if apart is not None:
            found[key] = apart
    return replace(outcome, ends=found)


def _engines(scenario: Scenario, world: str, asked: _Asked) -> tuple[Replications | None, str]:
    """The engine's replications, if it simulates all of them; or None where the event world is to begin, and what the engine lacks.

    Raises:
        WrongSetting: the engine is asked for and cannot; or the job needs too much memory or time.
        RunFailed: a user's own text makes a mistake in its first steps, which the event world names.
    """
    from sim.engine.choose import engine
    from sim.event.world import run  # here, so that the first run's time has no loading in it
    from sim.protocols import is_ours

    found, refused = None, ""
    if world == "engine" and asked.want_trace:
        raise WrongSetting("--world", "engine", "auto or event, which records what ranks do")
    if world == "engine":
        needs.check(scenario, "engine", asked.within_s)
        found = engine.demanded(scenario)
    elif world == "auto" and not asked.want_trace:
        once_s, step_s = needs.once_and_step_s(scenario, "event")
        is_long = needs.of(scenario, "event", asked.within_s).seconds > needs.patience_s(asked.within_s)
        if is_long:  # the event world would refuse it, so that compiling the engine may stand before the answer
            needs.check(scenario, "engine", asked.within_s)
        left_s = (once_s + scenario.rounds * step_s) * (asked.replications or REPLICATIONS)
        if engine.suits(left_s, math.inf if is_long else 0.0):
            needs.check(scenario, "engine", asked.within_s)
            found = engine.replications(scenario)
            refused = engine.refused
    if found is None:
        needs.check(scenario, "event", asked.within_s, traced=asked.want_trace)
    elif not is_ours(scenario.protocol):
        run(scenario, asked.first, within_s=0.0, want_trace=False)
    return found, refused


def _one(
    job: Scenario, number: int, by: Replications | None, asked: _Asked | None = None
) -> tuple[Outcome, Trace | None]:
    """One run of a job, by the engine if it has it; whole and without a record if nothing else is asked."""
    from sim import event
    from sim.engine.choose import engine

    within_s, want_trace = (asked.within_s, asked.want_trace) if asked else (math.inf, False)
    found = engine.outcome(by, number, within_s) if by else None
    if found is not None:
        return found, None
    outcome, trace = event.run(job, number, within_s, want_trace=want_trace)
    return (replace(outcome, slow=NO_ROOM) if by else outcome), trace


def _further(scenario: Scenario, numbers: range, by: Replications | None) -> Iterator[Outcome]:
    """Further replications, by the engine if it has the scenario."""
    from sim.engine.choose import engine

    outcomes = engine.outcomes(by, numbers) if by and numbers else repeat(None)
    for number, outcome in zip(numbers, outcomes, strict=False):
        yield outcome or replace(_one(scenario, number, None)[0], slow=NO_ROOM if by else "")


def _ran(scenario: Scenario, world: str, asked_for: _Asked) -> _Ran:
    """As many replications as there is time for, and at least the first steps of one."""
    from sim.answers.outcome import join
    from sim.engine.choose import engine
    from sim.protocols import is_ours

    begun_s = time.monotonic()
    asked = asked_for.replications or REPLICATIONS
    fast, refused = _engines(scenario, world, asked_for)
    start_s, spent_s = time.monotonic(), time.process_time()
    first, within_s, done = asked_for.first, max(0.0, asked_for.within_s - (start_s - begun_s)), asked_for.done
    outcome, trace = _one(scenario, first, fast, asked_for._replace(within_s=within_s))
    outcomes = [outcome]
    done(1)
    took_s, core_s = time.monotonic() - start_s, time.process_time() - spent_s
    whole = len(outcome.step_s[0]) == scenario.steps and outcome.warmup == scenario.warmup
    ends = _of_ends(scenario, asked, outcome) if whole else {}
    beside = sum(map(len, ends.values()))
    if (1 + beside) * took_s >= within_s:
        ends, beside = {}, 0
    undecided = world == "auto" and whole and not (fast or refused)
    if undecided and engine.suits(core_s * (asked - 1 + beside), within_s - took_s):
        fast = engine.replications(scenario)
        refused = engine.refused
    if ends:
        runs = {
            key: [_one(job, first, engine.replications(job) if fast else None)[0] for job in jobs]
            for key, jobs in ends.items()
        }
        outcomes = [_with_ends(outcome, runs)]
    alike = is_ours(scenario.protocol) and scenario.draws.are_alike  # further runs would be the first again
    further = repeat(outcomes[0]) if alike else _further(scenario, range(first + 1, first + asked), fast)
    took_s = 0.0 if alike else took_s
    while whole and len(outcomes) < asked and time.monotonic() - start_s + took_s < within_s:
        outcomes.append(next(further))
        done(1)
    if fast is None:
        engine.spent(time.process_time() - spent_s)
    slow = refused or next((one.slow for one in outcomes if one.slow), "")

    def smaller(job: Scenario) -> Outcome:
        limited = asked_for._replace(within_s=within_s, want_trace=False)
        return _one(job, first, engine.replications(job) if fast else None, limited)[0]

    return _Ran(asked, growth.of_table(scenario, replace(join(outcomes), slow=slow), smaller), trace)
