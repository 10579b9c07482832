"""The error of an answer: what its unknown numbers do to a step, and what is left besides, by size and from published steps."""

from __future__ import annotations

from math import exp, hypot, log, log1p
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sim.answers import growth, ignorance, quantities, shares, sources
from sim.answers.ignorance import HOST, LAW
from sim.answers.sources import HOSTS, MODEL, SLEEPS
from sim.base import interval
from sim.job import reading
from sim.model.sizes import ITEM_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sim.answers.outcome import Outcome
    from sim.answers.quantities import Quantity
    from sim.job.scenario import Scenario
    from sim.platform.cluster import Provenance

# What a rank reads after a sleep, from memory where caches held it before: parameters, gradient, what was received and what is sent, and
# two that an optimiser keeps; a core's part of a host's memory bandwidth is 5 to 20 GB/s.
COLD_COPIES = 6
MEMORY_BYTES_PER_S = 1e10


class Unknown(NamedTuple):
    """Something unknown about a job.

    Args:
        slower, faster: 90 % limits of the logarithm by which a step may take longer, and shorter.
        shared: by cause, the part of these two that another job with that cause has too: it cancels where jobs are compared.
        number: that is unknown: COMPUTING, LINKS and the others of sim.answers.sources.
        source: of what is known of it, as text.
    """

    slower: float
    faster: float
    shared: tuple[tuple[str, float, float], ...] = ()
    number: str = ""
    source: str = ""


def widened(pair: tuple[float, float], middle: float, unknown: list[Unknown]) -> tuple[float, float]:
    """An interval of throughputs widened by unknowns, which are independent of one another and of the runs.

    Args:
        pair: of runs alone; not finite if they are too few.
        middle: of the interval.
    """
    low, high = pair if np.isfinite(pair).all() else (middle, middle)
    slower = hypot(log(middle / low), *(one.slower for one in unknown))
    faster = hypot(log(high / middle), *(one.faster for one in unknown))
    return middle * exp(-slower), middle * exp(faster)


def unknowns(scenario: Scenario, outcome: Outcome) -> list[Unknown]:
    """All unknowns of a simulated job; of costs that are the user's own only the errors that they state themselves."""
    step_s = shares.mean_step_s(outcome)
    found = residuals(scenario, step_s, outcome.ends)
    for one, (slower, faster) in effects(scenario, outcome):
        shared = ((one.cause, slower, faster),) if one.cause else ()
        found.append(Unknown(slower, faster, shared, one.number, one.source))
    short = len(outcome.step_s) == 1 and not np.isfinite(outcome.interval()).all()
    return found or ([_of_law(scenario)] if short else [])


def effects(scenario: Scenario, outcome: Outcome) -> list[tuple[Quantity, tuple[float, float]]]:
    """Each quantity, and the logarithms by which a step takes longer and shorter at its ends; a bound where they were not simulated."""
    step_s = shares.mean_step_s(outcome)
    return [(one, outcome.ends.get(one.key) or one.bound(step_s)) for one in quantities.of(scenario)]


def residuals(scenario: Scenario, step_s: float, ends: Mapping[str, tuple[float, float]]) -> list[Unknown]:
    """What no number says that can be put into the job; steps take so many seconds on the average, however many were simulated.

    Args:
        ends: as of an outcome; without those of growth it is taken to be the same at the largest size of a table.
    """
    share = shares.of_messages(scenario, step_s)
    known = scenario.cluster.provenance
    if scenario.cluster.costs_of(scenario.workload) is not None:
        found = list(_of_profile(scenario, step_s, known, ends)) if known else []
    elif sources.nothing_measured(scenario):
        found = list(_unmeasured(scenario, step_s))
    else:
        found = []
    return [*found, *_rest_of_fit(scenario, share)]


def _of_profile(
    scenario: Scenario, step_s: float, known: Provenance, ends: Mapping[str, tuple[float, float]]
) -> Iterator[Unknown]:
    """The unknowns of a job whose model was fitted."""
    beyond = sources.beyond(scenario)
    if told := growth.told(scenario):
        slower, faster = ends.get(growth.BEYOND) or told[1:]
        # another protocol's growth is unknown by itself
        shared = ((f"steps of {scenario.protocol}, by doublings", slower, faster),)
        yield Unknown(slower, faster, shared, MODEL, "how the steps of the fitted table grew")
    elif beyond:
        doublings = beyond.doublings
        free = sources.free_links(scenario)
        yield _of_law(scenario, doublings, LAW.unchanged * doublings * free)
    elif scenario.workload.name not in known.repeated:
        # traces were of this size; runs differ either way
        found = _of_law(scenario)
        yield found._replace(faster=max(found.faster, interval.of_normal(LAW.step)))
    if sources.unlike_sleeps(scenario):
        cold_s = COLD_COPIES * ITEM_BYTES * scenario.workload.parameters / MEMORY_BYTES_PER_S
        slower = log1p(cold_s / step_s)
        cold = (("caches after a sleep", slower, 0.0),)  # trust says which sleeps
        yield Unknown(slower, 0.0, cold, SLEEPS, "assumed: caches that are cold after a sleep")
    if (known.workers or 1) == 1:
        yield from _of_shared_hosts(scenario, step_s)


def _unmeasured(scenario: Scenario, step_s: float) -> Iterator[Unknown]:
    """Of a job of which nothing was measured, or one process alone."""
    hosts, known = len(set(scenario.hosts)), scenario.cluster.provenance
    yield from _of_shared_hosts(scenario, step_s)
    if hosts > 1 and known and known.links_measured:
        yield _of_law(scenario, ignorance.doublings(hosts, known.hosts or 1))
    else:  # no fit is extended: what links and hosts make of other sizes has spreads of its own
        yield _of_law(scenario)


def _rest_of_fit(scenario: Scenario, share: float) -> Iterator[Unknown]:
    """The error of fitted steps besides that of computing, which costs have: steps are off as a whole."""
    link, apart = sources.passed(scenario)
    rest = interval.of_normal(scenario.costs.error) * (1 - (1 - share) ** 2) ** 0.5
    if link.spread_by_hosts and scenario.costs.error:  # however long steps are, their unknowns are the same ones
        cause = f"fitted steps of {sources.machines(scenario)}"
        yield Unknown(rest, rest, ((cause, rest, rest),), MODEL, sources.of_links(scenario, apart))


def _of_shared_hosts(scenario: Scenario, step_s: float) -> Iterator[Unknown]:
    """GPUs that share a host, of which the step of one alone is known; nothing makes a step shorter than the reading of its samples."""
    if not sources.gpus_together(scenario):
        return
    slower, faster, read_s = log(HOST.at(1)), -log(HOST.at(-1)), reading.least_s(scenario)
    if read_s:
        faster = min(faster, max(0.0, log(step_s / read_s)))
    cause = f"hosts of {sources.machines(scenario)}"
    yield Unknown(slower, faster, ((cause, slower, faster),), HOSTS, "published steps of GPUs alone and together")


def _of_law(scenario: Scenario, doublings: float | None = None, unchanged: float = 0.0) -> Unknown:
    """By the law of ignorance, and a deviation by which steps may have changed because links are free.

    Args:
        doublings: beyond the measured sizes; None of a job of one of these.
    """
    grown, whole = LAW.common(doublings), LAW.deviation(doublings)
    own = max(0.0, whole**2 - grown**2) ** 0.5  # of this job alone
    # another protocol's growth is unknown by itself
    parts = (f"steps of {scenario.protocol}, by doublings", grown), (f"steps of {sources.job(scenario)}", own)
    shared = [(cause, interval.of_normal(one), interval.of_normal(LAW.faster * one)) for cause, one in parts]
    free = interval.of_normal(unchanged)
    shared.append(("free links", free, free))
    _, slower, faster = zip(*shared, strict=True)
    return Unknown(hypot(*slower), hypot(*faster), tuple(shared), MODEL, "errors on published steps")
