"""The numbers of a job that are not known exactly: each a distribution with a source, and the job where it has another value.

Each is normal, in logarithms, of what it is times. `put` makes the job where one of them is so many standard deviations from its median.
Every run of the answer has all numbers at their medians, however many runs there are and whatever the random seed. What one of them does
to a step is seen at its 5 % and 95 % quantiles, in a run with the first run's random numbers. Drawn anew in each run instead, a number
that is known badly would move the answer with the number of runs, and with it all that is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from math import exp, log, log1p
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

from sim.answers import shares, sources
from sim.answers.ignorance import CORE
from sim.answers.sources import BY_NAME, COMPUTING, CORES, INNER_LINKS, LINKS, SLEEPS, SUMMING
from sim.base.errors import WrongSetting
from sim.base.interval import of_normal
from sim.job import variants
from sim.language.library import NCCL, prior
from sim.language.moves import named
from sim.model.sizes import ITEM_BYTES
from sim.platform import named_links
from sim.platform.named_links import LINK, Spread

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sim.job.scenario import Scenario
    from sim.platform.cluster import Link

END = of_normal(1.0)  # standard deviations from the median to an end
BACKWARD = 2 / 3  # of computing (sim.model.nominal.TRAINING)
ALONE = 0.1  # how likely rings are alone
TWICE = log(2) / END  # standard deviation of the logarithm of messages that may take twice as long, or half
SEEN = 2  # messages of a step that come after sleeps between polls: parameters, and gradients
WORK, CONTENTION, AFTER_SLEEPS, BATCH = "all work", "busy cores", "work after sleeps", "another batch"
BETWEEN, WITHIN, RATE, LATENCY, MESSAGES = "links by name", "inner links by name", "rate", "latency", "all of messages"
OVERSLEPT = "sleeps that last too long"


class Quantity(NamedTuple):
    """A number of a job that is not known exactly.

    Args:
        key: which of the job's it is.
        number: COMPUTING, LINKS and the others of sim.answers.sources.
        source: of what is known of it, as text.
        times: times(z) is how many times as long all that it is of takes, z standard deviations from its median; None if it is seconds
            that are added.
        put: put(job, z) is the job where it is z standard deviations from its median; a step takes longer where z is positive
            (an algorithm may take less).
        bound: of a step of so many seconds, the logarithms by which it takes longer and shorter at the ends, by the share that the number
            has of it; what is hidden counts where it may show. For single runs, and where it is too little to be simulated.
        cause: which other jobs have it too, so that it is the same in both; empty if it is drawn anew in each run.
        sides: at which it has an end: 1 where a step takes longer, -1 where it takes less.
    """

    key: str
    number: str
    source: str
    times: Callable[[float], float] | None
    put: Callable[[Scenario, float], Scenario]
    bound: Callable[[float], tuple[float, float]]
    cause: str = ""
    sides: tuple[int, ...] = (1, -1)


def of(scenario: Scenario) -> list[Quantity]:
    """All of a job."""
    found = (_of_work, _of_cores, _of_resuming, _of_batch, _of_names, _of_algorithm)
    of_links = (_of_measured_links, _of_fitted_links, _of_sleeps)
    return [quantity for kind in (*found, *of_links) for quantity in kind(scenario)]


def _of_work(scenario: Scenario) -> Iterator[Quantity]:
    """Computing: the error of its costs, or of a nominal core."""
    known = Spread(0.0, scenario.costs.error)
    cause = f"{WORK} of {sources.kind(scenario)}"
    if not known.deviation:
        if not sources.nothing_measured(scenario) or scenario.on_named_gpus or scenario.workload.step:
            return
        known, cause = CORE, f"{scenario.workload.name} on {sources.machines(scenario)}"

    times = partial(_as_long, known.deviation)

    def put(job: Scenario, z: float) -> Scenario:
        if job.costs.resume_s:  # seconds after a sleep have an error of their own
            resume_s = job.costs.resume_s / times(z)
            job = variants.with_costs(job, job.costs.model_copy(update={"resume_s": resume_s}))
        return variants.as_fast(job, 1 / times(z))

    def bound(step_s: float) -> tuple[float, float]:
        part = shares.of_computing(scenario, step_s)
        return _moved(part, times(END)), -_moved(part, times(-END))

    yield Quantity(WORK, COMPUTING, sources.of_costs(scenario), times, put, bound, cause)


def _of_cores(scenario: Scenario) -> Iterator[Quantity]:
    """The error of how much busy cores slow one another down. All together never work twice as fast."""
    error = max((host.contention_error for host in scenario.machines), default=0.0)
    if not error:
        return

    def put(job: Scenario, z: float) -> Scenario:
        hosts = []
        for host in job.cluster.hosts:
            times = exp(z * host.contention_error)
            contention = max(-0.5 / host.cores, (1 + host.contention) * times - 1)
            hosts.append(host.model_copy(update={"contention": contention}))
        return job.on(hosts=tuple(hosts))

    cause = f"{CONTENTION} of {sources.machines(scenario)}"
    yield Quantity(CONTENTION, CORES, sources.of_costs(scenario), None, put, lambda _: (END * error,) * 2, cause)


def _of_resuming(scenario: Scenario) -> Iterator[Quantity]:
    """The error of the seconds that work takes more after an induced sleep."""
    costs, error_s = scenario.costs, scenario.costs.resume_error_s
    if not (error_s and scenario.slowed):
        return

    def put(job: Scenario, z: float) -> Scenario:
        resume_s = max(0.0, costs.resume_s + z * error_s)
        return variants.with_costs(job, job.costs.model_copy(update={"resume_s": resume_s}))

    def bound(step_s: float) -> tuple[float, float]:
        off = END * error_s / step_s
        return log1p(off), log1p(off)

    cause = f"{AFTER_SLEEPS} of {sources.machines(scenario)}"
    yield Quantity(AFTER_SLEEPS, SLEEPS, sources.of_costs(scenario), None, put, bound, cause)


def _of_batch(scenario: Scenario) -> Iterator[Quantity]:
    """What one measured batch leaves unknown of another: a larger one takes no less than it, and a smaller one no more."""
    known, batch, costs = sources.only_batch(scenario), scenario.micro_batch, scenario.costs
    if known is None or known == batch or any(hasattr(scenario.protocol, name) for name in shares.TIMES):
        return
    there_s, here_s = float(costs.compute(known)), float(costs.compute(batch))
    if not (there_s > 0 and here_s > 0 and there_s != here_s):
        return
    most = there_s / here_s
    side = 1 if most > 1 else -1

    def times(z: float) -> float:
        return most ** min(1.0, max(0.0, side * z / END))  # none of this number's values is beyond its end

    def put(job: Scenario, z: float) -> Scenario:
        return variants.with_costs(job, job.costs.with_computing(times(z)))

    def bound(step_s: float) -> tuple[float, float]:
        off = _moved(shares.of_computing(scenario, step_s), most)
        return max(0.0, off), max(0.0, -off)

    source = f"by rule: in proportion to batch {known}, the only one that was measured"
    cause = f"computing of {scenario.workload.name} at batch {batch}"
    yield Quantity(BATCH, COMPUTING, source, times, put, bound, cause, (side,))


def _of_names(scenario: Scenario) -> Iterator[Quantity]:
    """Links that are known by name alone: the network, and the link within a host that several ranks share."""
    between, within = sources.known_by_name(scenario)
    if between:
        yield _by_name(scenario, BETWEEN, LINKS, scenario.network, LINK)
    if within:
        known = named_links.within(scenario.cluster.local)
        yield _by_name(scenario, WITHIN, INNER_LINKS, scenario.local, known)


def _by_name(scenario: Scenario, key: str, number: str, link: Link, known: Spread) -> Quantity:
    """A link by name. Nothing is faster than the wire."""
    at = named_links.median(link, known)

    def times(z: float) -> float:
        if link.named:
            return max(1.0, exp(known.mean + z * known.deviation)) / at
        return known.at(1) ** max(0.0, z / END)

    def put(job: Scenario, z: float) -> Scenario:
        return variants.with_links(job, times(z), within=number == INNER_LINKS)

    cause = f"{'links within' if number == INNER_LINKS else 'links of'} {sources.usual_machine(scenario)}"
    bound = _of_messages(scenario, times)
    source = sources.of_links(scenario, apart=number == LINKS)
    return Quantity(key, number, source, times, put, bound, cause, (1, -1) if times(-END) < 1 else (1,))


def _of_algorithm(scenario: Scenario) -> Iterator[Quantity]:
    """Where links are known by name alone, the algorithm that a library takes for `auto`: that, or the likeliest other one."""
    between, _ = sources.known_by_name(scenario)
    if getattr(scenario.protocol, "algorithm", None) != "auto" or not (between and scenario.summed):
        return
    size, library = scenario.summed_items, scenario.sum_library
    mine = named(scenario.algorithm("auto"), scenario.hosts[scenario.servers :], size)
    able = prior(library, ITEM_BYTES * size, scenario.apart)
    other = max((name for name in able if name != mine), key=lambda name: able[name], default="ring")
    if other == mine and library != NCCL:  # whose rings are alone where nobody lets it take trees
        return
    beyond = NormalDist().inv_cdf(1 - able[other] if other != mine else 1 - ALONE)

    def put(job: Scenario, z: float) -> Scenario:
        changed = replace(job.protocol, algorithm=other)
        return replace(job, protocol=changed) if z > beyond else job

    bound = _of_messages(scenario, partial(_as_long, TWICE))
    cause = f"{SUMMING} on {sources.machines(scenario)}"
    yield Quantity(SUMMING, SUMMING, BY_NAME, None, put, bound, cause, (1,))


def _of_measured_links(scenario: Scenario) -> Iterator[Quantity]:
    """The spread of a link's rate and latency from one measurement to another."""
    link, apart = sources.passed(scenario)
    if link.spread_by_hosts:
        return
    number, source = LINKS if apart else INNER_LINKS, sources.of_links(scenario, apart)
    pieces = scenario.servers if scenario.served else scenario.ranks
    bytes_s = scenario.workload.message_bytes / max(1, pieces) / link.bandwidth_bytes_per_s
    whole_s = bytes_s + link.latency_s + 2 * link.overhead_s + link.gap_s
    spreads = (RATE, link.bandwidth_spread, bytes_s), (LATENCY, link.latency_spread, link.latency_s)
    for key, spread, taken_s in spreads:
        if not (spread and taken_s > 0):
            continue

        def put(job: Scenario, z: float, key: str = key, spread: float = spread) -> Scenario:
            changed = {"times" if key == RATE else "latency": exp(spread * z)}
            return variants.with_links(job, within=not apart, **changed)

        bound = _of_messages(scenario, partial(_as_long, spread * taken_s / whole_s))
        yield Quantity(f"{key} of the link", number, source, None, put, bound)


def _of_fitted_links(scenario: Scenario) -> Iterator[Quantity]:
    """What fitted steps leave unknown of the seconds of messages."""
    link, apart = sources.passed(scenario)
    hosts = len(set(scenario.hosts))
    spread = link.spread_at(hosts)
    if not spread:
        return
    number, source = LINKS if apart else INNER_LINKS, sources.of_links(scenario, apart)
    times = partial(_as_long, spread)

    def put(job: Scenario, z: float) -> Scenario:
        return variants.with_links(job, times(z), times(z), times(z), within=not apart)

    cause = f"fitted links of {sources.machines(scenario)}"
    yield Quantity(MESSAGES, number, source, times, put, _of_messages(scenario, times), cause)


def _of_sleeps(scenario: Scenario) -> Iterator[Quantity]:
    """How long sleeps outlast what was asked: an induced one, and those before two messages are seen."""
    cluster = scenario.cluster
    spread, sleeps = cluster.oversleep_spread or 0.0, (scenario.stragglers.mean > 0) + SEEN * (cluster.poll_s > 0)
    if not (spread and sleeps and cluster.oversleep_s):
        return

    def put(job: Scenario, z: float) -> Scenario:
        return job.on(oversleep_s=job.cluster.oversleep_s * exp(spread * z))

    def bound(step_s: float) -> tuple[float, float]:
        off = END * sleeps * cluster.oversleep_s * spread / step_s
        return off, off

    yield Quantity(OVERSLEPT, SLEEPS, f"measured: the profile {cluster.name}", None, put, bound)


def _of_messages(scenario: Scenario, times: Callable[[float], float]) -> Callable[[float], tuple[float, float]]:
    """The bound where messages take so many times as long at either end; hidden by back-propagation they show when they are longer."""

    def bound(step_s: float) -> tuple[float, float]:
        part, most = shares.of_messages(scenario, step_s), times(END)
        longer = 1 - part + part * most
        if scenario.protocol.overlaps:
            link, _ = sources.passed(scenario)
            sent_s = 2 * ITEM_BYTES * scenario.workload.parameters / link.bandwidth_bytes_per_s
            longer = max(longer, (1 - BACKWARD) * (1 - part) + most * sent_s / step_s)
        return log(longer), -_moved(part, times(-END))

    return bound


def _as_long(deviation: float, z: float) -> float:
    """Times as long, z standard deviations from the median, which is 1."""
    return exp(z * deviation)


def _moved(part: float, times: float) -> float:
    """The logarithm of a step of which a part takes so many times as long."""
    return log(1 - part + part * times)


LEAST_MOVED = 0.01  # of a step: what can move it by less is bounded, and not simulated
FEW = 20  # steps that are enough beside the same ones of the answer, whose sleeps and noise they share; of long jobs a quarter


def few_steps(steps: int) -> int:
    """So many of the steps are simulated with a quantity at an end."""
    return max(min(steps, FEW), steps // 4)


def at_ends(scenario: Scenario, step_s: float) -> dict[str, list[Scenario]]:
    """By key of each quantity that counts, the first steps of the job at its ends, unless one of these is beyond what can be simulated.

    Args:
        step_s: seconds of a step of the answer.
    """
    found, job = {}, replace(scenario, steps=few_steps(scenario.steps))
    for quantity in of(scenario):
        if max(quantity.bound(step_s)) >= LEAST_MOVED:
            with suppress(WrongSetting):
                found[quantity.key] = [quantity.put(job, side * END) for side in quantity.sides]
    return found


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
