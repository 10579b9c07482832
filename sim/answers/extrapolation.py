"""The error of answers for jobs beyond the measurements: by size, by links that are known by name, by nominal computing."""

from __future__ import annotations

from math import exp, hypot, log, log1p
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sim.answers import ignorance, interval, trust
from sim.answers.ends import AFTER_SLEEPS, CONTENTION, WORK
from sim.answers.ignorance import CORE, HOST, LAW, LINK, LOCAL, UNCHANGED, Spread
from sim.model.sparse_rows import ITEM_BYTES
from sim.platform import named_gpus, named_links

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from sim.answers.outcome import Outcome
    from sim.job.scenario import Scenario
    from sim.platform.cluster import Link, Provenance

NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
BACKWARD = 2 / 3  # of computing (sim.model.nominal.TRAINING)
SEEN = 2  # messages of a step that come after sleeps between polls: parameters, and gradients
# What a rank reads after a sleep, from memory where caches held it before: parameters, gradient, what was received and what is sent, and
# two that an optimiser keeps; a core's part of a host's memory bandwidth is 5 to 20 GB/s.
COLD_COPIES = 6
MEMORY_BYTES_PER_S = 1e10
TIMES = ("time_limit_s", "window_s")  # settings that fix the duration of a step's computing
COMPUTING, LINKS, INNER_LINKS, HOSTS = "computing", "links between hosts", "links within hosts", "hosts that GPUs share"
CORES, SLEEPS, MODEL = "busy cores", "sleeps, and work after them", "errors of the simulator"
BY_NAME = "by name"  # the source of links
OF_CAUSE = {WORK: COMPUTING, CONTENTION: CORES, AFTER_SLEEPS: SLEEPS}


class Unknown(NamedTuple):
    """Something unknown about a job.

    Args:
        slower, faster: 90 % limits of the logarithm by which a step may take longer, and shorter.
        said: as text; empty if another note has it.
        shared: by cause, the part of these two that another job with that cause has too: it cancels where jobs are compared.
        number: that is unknown: COMPUTING, LINKS and the others above.
        source: of what is known of it, as text.
    """

    slower: float
    faster: float
    said: str = ""
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
    return [*besides_costs(scenario, outcome), *of_costs(scenario, outcome)]


def besides_costs(scenario: Scenario, outcome: Outcome) -> list[Unknown]:
    """Those that are not simulated."""
    step_s = mean_step_s(outcome)
    short = len(outcome.step_s) == 1 and not np.isfinite(outcome.interval()).all()
    return of_step(scenario, step_s) or ([_of_law(scenario, 0.0, _messages(scenario, step_s))] if short else [])


def of_costs(scenario: Scenario, outcome: Outcome, share: float = 1.0) -> list[Unknown]:
    """The errors of costs, as far as they move a step when they are simulated.

    Args:
        share: of a step that is work, where they were not.
    """
    ends = dict(outcome.ends)
    if scenario.costs.error and WORK not in ends:
        times = exp(interval.of_normal(scenario.costs.error))
        ends[WORK] = log(1 - share + share * times), -log(1 - share + share / times)
    return [
        Unknown(
            slower,
            faster,
            "",
            ((f"{cause} of {kind(scenario) if cause == WORK else _machines(scenario)}", slower, faster),),
            OF_CAUSE[cause],
            source_of_costs(scenario),
        )
        for cause, (slower, faster) in ends.items()
    ]


def of_step(scenario: Scenario, step_s: float) -> list[Unknown]:
    """The same of a job whose steps take so many seconds on the average, however many were simulated."""
    share = _messages(scenario, step_s)
    known = scenario.cluster.provenance
    if scenario.cluster.costs_of(scenario.workload) is not None:
        found = list(_of_profile(scenario, step_s, known, share)) if known else []
    elif "costs" in scenario.workload.model_fields_set:
        found = []
    else:
        found = list(_unmeasured(scenario, step_s, share))
    return [*found, *_of_batch(scenario, step_s), *_of_measurements(scenario, step_s, share)]


def mean_step_s(outcome: Outcome) -> float:
    """Seconds of a step on the average, in the middle of the runs."""
    return interval.middle(outcome.step_s.mean(axis=1))


def share_of_messages(scenario: Scenario, outcome: Outcome) -> float:
    """The share of a step that is neither computing nor an induced sleep: messages, updates and waiting."""
    return _messages(scenario, mean_step_s(outcome))


def _messages(scenario: Scenario, step_s: float) -> float:
    alone = scenario.ranks < 2
    busy_s = computing_s(scenario) + scenario.stragglers.mean
    return 0.0 if alone or step_s <= 0 else min(1.0, max(0.0, 1 - busy_s / step_s))


def share_of_computing(scenario: Scenario, outcome: Outcome) -> float:
    """The share of a step that is computing."""
    step_s = mean_step_s(outcome)
    return min(1.0, computing_s(scenario) / step_s) if step_s > 0 else 0.0


def computing_s(scenario: Scenario) -> float:
    """Seconds of a gradient at the median speed of the hosts; of a protocol with a limit that, and no less than a partition."""
    speeds = [scenario.machines[host].speed for host in scenario.hosts[scenario.servers :]] or [1.0]
    costs, batch, speed = scenario.costs, scenario.batch, median(speeds)
    limits_s = [getattr(scenario.protocol, name) for name in TIMES if hasattr(scenario.protocol, name)]
    if limits_s:
        partitions = getattr(scenario.protocol, "partitions", 1)
        return max(*limits_s, costs.partition(batch // partitions) / speed)
    return (costs.input(batch) + costs.compute(batch)) / speed


def _of_profile(scenario: Scenario, step_s: float, known: Provenance, share: float) -> Iterator[Unknown]:
    """The unknowns of a job whose model was fitted."""
    beyond = trust.beyond(scenario)
    if beyond:
        doublings = beyond.doublings
        free = trust.free_links(scenario)
        deviation = hypot(LAW.deviation(doublings, share), UNCHANGED * doublings * free)
        times = exp(interval.of_normal(deviation))
        said = f"{beyond}: {_counted(doublings)} beyond; the interval is wider by a factor {times:.2g}"
        off = (
            "steps of published runs changed: links are free here" if free else "predictions of published runs were off"
        )
        yield _of_law(scenario, doublings, share, f"{said}, as {off}", UNCHANGED * doublings * free)
    elif scenario.workload.name not in known.repeated:
        said = (
            "no run that was fitted was repeated: the interval is that by which predictions of published runs were off"
        )
        yield _of_law(scenario, 0.0, share, said)
    if trust.unlike_sleeps(scenario):
        cold_s = COLD_COPIES * ITEM_BYTES * scenario.workload.parameters / MEMORY_BYTES_PER_S
        slower = log1p(cold_s / step_s)
        cold = (("caches after a sleep", slower, 0.0),)  # trust says which sleeps
        yield Unknown(slower, 0.0, "", cold, SLEEPS, "assumed: caches that are cold after a sleep")
    if (known.workers or 1) == 1:
        yield from _of_shared_hosts(scenario, step_s, share)
    if not known.links_measured and len(set(scenario.hosts)) > 1 and not trust.free_links(scenario):
        yield _of_link(scenario, step_s, share)


def _unmeasured(scenario: Scenario, step_s: float, share: float) -> Iterator[Unknown]:
    """The unknowns of a job of which nothing was measured, or one process alone."""
    hosts = len(set(scenario.hosts))
    if not scenario.on_named_gpus and not scenario.workload.step:
        slower, faster = (abs(log(share + (1 - share) * CORE.at(side))) for side in (1, -1))
        said = f"nominal computing is within a factor {CORE.at(1):.0f}, nine times in ten"
        cause = f"{scenario.workload.name} on {_machines(scenario)}"
        yield Unknown(slower, faster, said, ((cause, slower, faster),), COMPUTING, source_of_costs(scenario))
    yield from _of_shared_hosts(scenario, step_s, share)
    known = scenario.cluster.provenance
    if hosts > 1 and known and known.links_measured:
        said = (
            "links were measured, and no training: the interval is that by which predictions of published runs were off"
        )
        yield _of_law(scenario, ignorance.doublings(hosts, known.hosts or 1), share, said)
        return
    if hosts > 1:
        yield _of_link(scenario, step_s, share)
    yield _of_law(scenario, 0.0, share)  # no fit is extended here, and links of 2 to 16 hosts say how far a name is off


def _of_batch(scenario: Scenario, step_s: float) -> Iterator[Unknown]:
    """What one measured batch leaves unknown of another: a larger one takes no less than it, and a smaller one no more."""
    known, batch = trust.only_batch(scenario), scenario.batch
    if known is None or known == batch or step_s <= 0 or any(hasattr(scenario.protocol, name) for name in TIMES):
        return
    there_s, here_s = (float(scenario.costs.compute(samples)) for samples in (known, batch))
    part, times = min(1.0, computing_s(scenario) / step_s), there_s / here_s
    off = log(1 - part + part * times)
    least = "as little" if batch > known else "as long"
    said = f"computing was measured at batch {known} alone: at {batch} it is taken in proportion, and may take {least} as there"
    cause = f"computing of {scenario.workload.name} at batch {batch}"
    slower, faster = max(0.0, off), max(0.0, -off)
    source = f"by rule: in proportion to batch {known}, the only one that was measured"
    yield Unknown(slower, faster, said, ((cause, slower, faster),), COMPUTING, source)


def _of_measurements(scenario: Scenario, step_s: float, share: float) -> list[Unknown]:
    """The unknowns of measured links and sleeps: the spread between measurements, or of a fit. Empty if that was not measured."""
    messages = interval.of_normal(_spread_of_messages(scenario))
    sleeps, rest = interval.of_normal(_spread_of_sleeps(scenario, step_s)), _rest_of_fit(scenario, share)
    if not (messages or sleeps or rest):
        return []
    slower = hypot(log(_longer(scenario, step_s, share, exp(messages))), sleeps, rest)
    faster = hypot(log(1 - share + share * exp(-messages)), sleeps, rest)
    hosts, times = len(set(scenario.hosts)), f"{exp(messages):.2g}"
    said = f"from one measurement of the link to another messages take {times} times as long: the interval contains it"
    shared: tuple[tuple[str, float, float], ...] = ()
    if _link_of(scenario).spread_by_hosts:
        said = (
            f"fitted steps tell the time of messages on {hosts} hosts within a factor {times}: the interval contains it"
        )
        shared = ((f"fitted links of {_machines(scenario)}", slower, faster),)
    said = said if max(slower, faster) > LAW.step else ""
    _, number = max((messages * share, _links(scenario)), (sleeps, SLEEPS), (rest, MODEL))
    return [Unknown(slower, faster, said, shared, number, source_of_links(scenario, hosts > 1))]


def _rest_of_fit(scenario: Scenario, share: float) -> float:
    """90 % limit of the error of fitted steps besides that of computing, which costs have: steps are off as a whole."""
    if not _link_of(scenario).spread_by_hosts:
        return 0.0
    return interval.of_normal(scenario.costs.error) * (1 - (1 - share) ** 2) ** 0.5


def _spread_of_messages(scenario: Scenario) -> float:
    """Standard deviation of the logarithm of a message's seconds, of a message as long as the job's."""
    link = _link_of(scenario)
    if link.spread_by_hosts:
        return link.spread_at(len(set(scenario.hosts)))
    pieces = scenario.servers if scenario.served else scenario.ranks
    bytes_s = scenario.workload.message_bytes / max(1, pieces) / link.bandwidth_bytes_per_s
    whole_s = bytes_s + link.latency_s + 2 * link.overhead_s + link.gap_s
    varied_s = hypot(bytes_s * (link.bandwidth_spread or 0.0), link.latency_s * (link.latency_spread or 0.0))
    return varied_s / whole_s if whole_s > 0 else 0.0


def _link_of(scenario: Scenario) -> Link:
    """The link that most of a job's messages pass."""
    return scenario.local if len(set(scenario.hosts)) < 2 else scenario.network


def _spread_of_sleeps(scenario: Scenario, step_s: float) -> float:
    """Standard deviation of a step by how long sleeps outlast what was asked: an induced one, and those before two messages are seen."""
    cluster = scenario.cluster
    sleeps = (scenario.stragglers.mean > 0) + SEEN * (cluster.poll_s > 0)
    return sleeps * cluster.oversleep_s * (cluster.oversleep_spread or 0.0) / step_s


def _longer(scenario: Scenario, step_s: float, share: float, times: float) -> float:
    """The factor on a step's length if messages take so many times as long.

    Messages hidden by back-propagation show when they take longer than it.
    """
    longer = 1 - share + share * times
    if scenario.protocol.overlaps:
        sent_s = 2 * ITEM_BYTES * scenario.workload.parameters / _link_of(scenario).bandwidth_bytes_per_s
        longer = max(longer, (1 - BACKWARD) * (1 - share) + times * sent_s / step_s)
    return longer


def _of_shared_hosts(scenario: Scenario, step_s: float, share: float) -> Iterator[Unknown]:
    """The unknowns of GPUs that share a host, of which the step of one alone is known: the host, and its links by name."""
    hosts = set(scenario.hosts)
    if len(hosts) == len(scenario.hosts) or not all(scenario.machines[host].gpus for host in hosts):
        return
    slower, faster = log(HOST.at(1)), -log(HOST.at(-1))
    said = f"GPUs of a host share its memory and input: their step is {HOST.at(-1):.2g} to {HOST.at(1):.2g} times that of one alone"
    cause = f"hosts of {_machines(scenario)}"
    yield Unknown(slower, faster, said, ((cause, slower, faster),), HOSTS, "published steps of GPUs alone and together")
    measured = scenario.cluster.provenance and scenario.cluster.provenance.local_measured
    if len(hosts) == 1 and not measured:
        yield _of_link(scenario, step_s, share)


class _Named(NamedTuple):
    """A link that nobody measured: at which rate it stands, and by which factors a byte may take less and longer."""

    number: str
    said: str
    bytes_per_s: float
    median: float
    least: float
    most: float


def _of_link(scenario: Scenario, step_s: float, share: float) -> Unknown:
    """Links by name, of which messages wait for the slowest."""
    links = sorted(_by_name(scenario), key=lambda link: link.bytes_per_s)
    times = [links[0].bytes_per_s / link.bytes_per_s for link in links]  # as long as messages take, by each link
    longer = max(each * link.most for each, link in zip(times, links, strict=True))
    shorter = max(links[0].least, *times[1:]) if times[1:] else links[0].least
    slower, faster = log(_longer(scenario, step_s, share, longer)), -log(1 - share + share * shorter)
    said = links[0].said if max(slower, faster) > LAW.step else ""
    shared = ((f"links of {_machines(scenario)}", slower, faster),)
    return Unknown(slower, faster, said, shared, links[0].number, BY_NAME)


def _by_name(scenario: Scenario) -> Iterator[_Named]:
    """The network, or the link within a host that several ranks share. Nothing is faster than the wire."""
    cluster, hosts = scenario.cluster, len(set(scenario.hosts))
    shared = len(scenario.hosts) > hosts and not (cluster.provenance and cluster.provenance.local_measured)
    if hosts > 1:
        yield _named(LINKS, "links", scenario.network, LINK)
    if hosts == 1 or (shared and cluster.local.named and scenario.summed):
        yield _named(INNER_LINKS, "links within the host", scenario.local, LOCAL)


def _named(number: str, which: str, link: Link, known: Spread) -> _Named:
    at, least, most = named_links.median(link, known), max(1.0, known.at(-1)), known.at(1)
    said = f"{which} are known by name alone: a byte may take {most:.0f} times as long as they say"
    if link.named:
        said = (
            f"{which} are known by name alone: a byte is taken to need {at:.2g} times as long as they say, and may need"
        )
        said += f" {least:.2g} to {most:.0f} times"
    return _Named(number, said, link.bandwidth_bytes_per_s, at, least / at if link.named else 1.0, most / at)


def _of_law(scenario: Scenario, doublings: float, share: float, said: str = "", unchanged: float = 0.0) -> Unknown:
    """By the law of ignorance, and a deviation by which steps may have changed because links are free."""
    half = interval.of_normal(hypot(LAW.deviation(doublings, share), unchanged))
    way = f"messages of {scenario.protocol}"  # another protocol's are unknown by themselves
    causes = way, f"{way}, by doublings", "steps by doublings", "free links"
    common = [*map(interval.of_normal, (*LAW.common(doublings, share), unchanged))]
    own = max(0.0, half**2 - sum(one**2 for one in common)) ** 0.5  # another link changes nothing of that
    parts = zip((*causes, f"steps of {job(scenario)}"), (*common, own), strict=True)
    shared = tuple((cause, one, one) for cause, one in parts)
    return Unknown(half, half, said, shared, MODEL, "errors on published steps")


def source_of_costs(scenario: Scenario) -> str:
    """The source of what is known of computing, as text."""
    cluster, workload = scenario.cluster, scenario.workload
    if cluster.costs_of(workload) is not None:
        return f"fitted: the profile {cluster.name}"
    if workload.step:
        carried = bool(scenario.costs.error)
        return "a step measured on another GPU, by the ratio of published rates" if carried else "a measured step"
    if scenario.on_named_gpus and workload.is_nominal:
        return "by name: published rates"
    return "given" if "costs" in workload.model_fields_set else "assumed: a nominal core"


def source_of_links(scenario: Scenario, apart: bool) -> str:
    """The same of the links between hosts, or within them."""
    known = scenario.cluster.provenance
    if known and (known.links_measured if apart else known.local_measured):
        return f"measured: the profile {scenario.cluster.name}"
    return BY_NAME


def _links(scenario: Scenario) -> str:
    return LINKS if len(set(scenario.hosts)) > 1 else INNER_LINKS


def job(scenario: Scenario) -> Hashable:
    """Which job it is, on whatever links and with whatever stragglers."""
    asked = repr(scenario.protocol), scenario.workers, scenario.servers, scenario.batch
    return scenario.workload.name, scenario.cluster.name if scenario.cluster.provenance else _machines(scenario), *asked


def kind(scenario: Scenario) -> Hashable:
    """Jobs of one kind are off their profile by the same factor; of GPUs known by name, those of one model on one GPU."""
    if scenario.on_named_gpus:
        return scenario.workload.name, *sorted({gpu.name for gpu in named_gpus.gpus(scenario) if gpu})
    return job(scenario)


def _machines(scenario: Scenario) -> str:
    return ", ".join(host.name for host in scenario.cluster.hosts)


def _counted(doublings: float) -> str:
    """The number as text, "three doublings"; "1.6 doublings" in between."""
    whole = round(doublings)
    if abs(doublings - whole) < 0.05:
        number = NUMBERS[whole] if whole < len(NUMBERS) else str(whole)
        return f"{number} doubling{'s' * (whole != 1)}"
    return f"{doublings:.1f} doublings"
