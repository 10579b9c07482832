"""A scenario's answer, from the world that can give it: the vector world where it is exact, else the event world."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple

from sim import candidates, needs
from sim.base.errors import RunFailed, WrongSetting
from sim.base.ranges import MOST_REPLICATIONS, check, check_integer
from sim.worlds import WORLDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sim.answers.ends import Ends
    from sim.answers.outcome import Outcome
    from sim.answers.result import Result
    from sim.engine.replications import Replications
    from sim.job.scenario import Scenario
    from sim.recording.horovod_timeline import Timeline
    from sim.recording.traces import Trace

REPLICATIONS = {"vector": 20, "event": 10}  # the event world takes longer
TOGETHER = 2**15  # ranks of all runs in arrays at once; larger arrays leave the cache and gain nothing
FIRST_FEW = 2**12  # so many ranks of all runs take little longer than those of one run
TRY_STEPS, TRY_S = 10, 2.0
ON_ONE_HOST = "all on one host, where a message leaves when its receiver takes it: let one rank receive before it sends, or use me.exchange"


class _Asked(NamedTuple):
    """The arguments of `simulate` that both worlds take."""

    replications: int | None
    first: int
    want_trace: bool
    timeline: Timeline | None
    within_s: float
    done: Callable[[int], object]


class _Ran(NamedTuple):
    """A world's result for a scenario: the requested replications, the outcome of those within the time, and the first's trace."""

    world: str
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
    timeline: Timeline | None = None,
    within_s: float = math.inf,
    done: Callable[[int], object] = lambda runs: None,
) -> Result:
    """Simulate replications of a scenario.

    Args:
        world: auto, event or vector. auto is the vector world where its answer is exact and not slower, and the event world for the
            whole answer where the vector world refuses or fails.
        replications: runs, each with random numbers of its own; as many as are usual in the world if None (20 or 10).
        first: the number of the first replication. Equal numbers have equal random numbers.
        want_trace: record all activities of the first replication, as the event world does.
        timeline: records the first replication as Horovod's timeline would, as the event world does.
        within_s: seconds after which no replication begins and the first ends early.
        done: called with the number of replications that have just ended.

    Returns:
        Arrays of shape (replications, steps), and what they come to.

    Raises:
        WrongSetting: an argument is out of range, the world asked for cannot run the scenario, or the job needs too much memory or time.
        RunFailed: the ranks wait for one another for ever, or do what no world can run.
    """
    from sim.job.scenario import Scenario

    if not isinstance(scenario, Scenario):
        raise WrongSetting("scenario", scenario, "a Scenario(protocol, workload, ...)")
    check_asked(world, replications, within_s)
    check_integer("first", first, 0)
    if timeline is not None:
        from sim.recording.horovod_timeline import check as check_timeline

        check_timeline(timeline)
    from sim.protocols.time_limit import ended_after

    longest_s = max(needs.patience_s(within_s), 2 * within_s)
    too_long = f"no answer after {longest_s:,.0f} seconds of the processor: the least takes longer; --within SECONDS waits for it"
    with ended_after(longest_s, too_long):
        return _simulated(scenario, world, _Asked(replications, first, want_trace, timeline, within_s, done))


def _simulated(scenario: Scenario, world: str, asked: _Asked) -> Result:
    from sim.answers.result import Result

    if candidates.unknown(scenario):
        if asked.want_trace or asked.timeline:
            candidates.refuse(scenario, "a trace")

        def one(job: Scenario, runs: int, seconds: float) -> Result:
            return _simulated(job, world, asked._replace(replications=runs, within_s=seconds))

        return candidates.mixed(scenario, one, asked.replications, asked.within_s)
    start_s = time.monotonic()
    ran = _ran(scenario, world, asked)
    wall_s = time.monotonic() - start_s
    return Result(scenario, ran.world, ran.asked, ran.outcome, wall_s, asked.first, ran.trace)


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


def _ran(scenario: Scenario, world: str, asked: _Asked) -> _Ran:
    from sim import vector

    start_s = time.monotonic()
    if world == "vector" or (world == "auto" and _suits_the_vector_world(scenario, asked.within_s)):
        try:
            return _by_vector(scenario, asked)
        except (vector.Refused, RunFailed):
            if world == "vector":
                raise
    left_s = max(0.0, asked.within_s - (time.monotonic() - start_s))
    return _by_event(scenario, asked._replace(within_s=left_s), world == "auto")


def _suits_the_vector_world(scenario: Scenario, within_s: float) -> bool:
    """Whether it can run the scenario, as far as that is known before, and is not slower than the event world or too slow."""
    from sim import vector

    if vector.refusal(scenario) or needs.faster_by_events(scenario):
        return False
    here = needs.of(scenario, "vector")
    if here.bytes <= needs.most_bytes() and here.seconds <= within_s:
        return True
    there = needs.of(scenario, "event", within_s)
    return there.bytes > needs.most_bytes() or here.seconds <= there.seconds


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
    event.run(few, within_s=TRY_S, want_trace=False)
    try:
        event.run(replace(few, cluster=one_host(scenario.ranks)), within_s=TRY_S, want_trace=False)
    except RunFailed as error:
        raise RunFailed(f"{error}; {ON_ONE_HOST}") from error


def _of_ends(scenario: Scenario, asked: int) -> dict[str, Ends]:
    """The jobs that say what unknown costs do; none beside a single run, whose interval has a bound instead."""
    from sim.answers import ends

    return ends.of(scenario) if asked > 1 else {}


def _with_ends(outcome: Outcome, runs: dict[str, list[Outcome]]) -> Outcome:
    """An outcome and what single runs of the jobs at the ends come to, beside its first run."""
    from sim.answers import ends

    middle, found = float(outcome.throughput()[0]), {}
    for cause, several in runs.items():
        apart = ends.off(middle, [float(one.throughput()[0]) for one in several])
        if apart is not None:
            found[cause] = apart
    return replace(outcome, ends=found)


def _by_vector(scenario: Scenario, asked_for: _Asked) -> _Ran:
    from sim import event, vector
    from sim.answers.ends import WORK
    from sim.answers.outcome import join, some

    replications, first, want_trace, timeline, within_s, done = asked_for
    asked, start_s = replications or REPLICATIONS["vector"], time.monotonic()
    one = needs.check(scenario, "vector", within_s)
    if want_trace or timeline:
        needs.check(scenario, "event", traced=want_trace)
    together = max(1, min(TOGETHER // scenario.ranks, int(needs.most_bytes() / one.bytes)))
    first_few = together if within_s == math.inf else max(1, FIRST_FEW // scenario.ranks)
    begun = min(asked, together, first_few)  # of which the time tells how many more there is time for
    ends = _of_ends(scenario, asked)
    by_speed = ends.pop(WORK, ())  # as rows of the same arrays
    outcome = vector.run(scenario, begun, first, within_s, by_speed)
    runs = {WORK: [some(outcome, slice(begun + place, begun + place + 1)) for place in range(len(by_speed))]}
    runs |= {cause: [vector.run(job, 1, first, within_s) for job in jobs] for cause, jobs in ends.items()}
    outcomes = [_with_ends(some(outcome, slice(begun)), {cause: of for cause, of in runs.items() if of})]
    took_s = time.monotonic() - start_s
    done(begun)
    most = int(min(asked, begun * within_s / took_s))
    for next_one in range(begun, most, together):
        outcomes.append(vector.run(scenario, min(together, most - next_one), first + next_one))
        done(len(outcomes[-1].step_s))
    trace = None
    if want_trace or timeline:  # which the event world alone records
        _, trace = event.run(scenario, first, timeline, want_trace=want_trace)
    return _Ran("vector", asked, join(outcomes), trace)


def _further(scenario: Scenario, numbers: range, replications: Replications | None) -> Iterator[Outcome]:
    """Further replications, by the engine if it has the scenario."""
    from sim import event
    from sim.engine.choose import engine

    outcomes = engine.outcomes(replications, numbers) if replications and numbers else repeat(None)
    for number, outcome in zip(numbers, outcomes, strict=False):
        yield event.run(scenario, number, want_trace=False)[0] if outcome is None else outcome


def _for_the_first(scenario: Scenario, asked: _Asked) -> Replications | None:
    """The engine's replications, where the event world would take much longer for the first of them.

    Raises:
        RunFailed: a user's own text makes a mistake in its first steps, which the event world names.
    """
    from sim import event
    from sim.engine.choose import engine
    from sim.protocols import is_ours

    once_s, step_s = needs.once_and_step_s(scenario, "event", 1)
    found = engine.replications(scenario) if engine.suits(once_s + scenario.rounds * step_s, 0.0) else None
    if found is not None and not is_ours(scenario.protocol):
        event.run(scenario, asked.first, within_s=0.0, want_trace=False)
    return found


def _run(job: Scenario, number: int, by_engine: bool) -> Outcome:
    """One run of a job that differs from the one asked for."""
    from sim import event
    from sim.engine.choose import engine

    replications = engine.replications(job) if by_engine else None
    found = engine.outcome(replications, number) if replications else None
    return event.run(job, number, want_trace=False)[0] if found is None else found


def _by_event(scenario: Scenario, asked_for: _Asked, by_engine: bool = False) -> _Ran:
    """All replications by the event world, or by the engine where that saves much."""
    from sim import event
    from sim.answers.outcome import join
    from sim.engine.choose import engine

    replications, first, want_trace, timeline, within_s, done = asked_for
    asked, start_s = replications or REPLICATIONS["event"], time.monotonic()
    needs.check(scenario, "event", within_s, traced=want_trace)
    fast = _for_the_first(scenario, asked_for) if by_engine else None
    found = engine.run(fast, first, timeline, within_s, want_trace) if fast else None
    outcome, trace = found or event.run(scenario, first, timeline, within_s, want_trace)
    outcomes = [outcome]
    done(1)
    took_s = time.monotonic() - start_s
    whole = len(outcome.step_s[0]) == scenario.steps and outcome.warmup == scenario.warmup
    ends = _of_ends(scenario, asked)
    if whole and ends and (1 + 2 * len(ends)) * took_s < within_s:
        runs = {cause: [_run(job, first, fast is not None) for job in jobs] for cause, jobs in ends.items()}
        outcomes = [_with_ends(outcome, runs)]
    suits = by_engine and whole and engine.suits(took_s * (asked - 1), within_s - took_s)
    fast = fast or (engine.replications(scenario) if suits else None)
    further = _further(scenario, range(first + 1, first + asked), fast)
    while whole and len(outcomes) < asked and time.monotonic() - start_s + took_s < within_s:
        outcomes.append(next(further))
        done(1)
    slow = engine.refused if suits and fast is None else ""
    return _Ran("event", asked, replace(join(outcomes), slow=slow), trace)
