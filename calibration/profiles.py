"""The profile: a sim.platform.cluster.Cluster with the costs that were learned and where they come from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from pydantic import ValidationError

from calibration import checks, collectives, servers
from calibration.costs import Learned, learn
from calibration.estimators import contentions, polling, residuals
from calibration.estimators import latency as messages
from calibration.estimators.contentions import Contention
from calibration.evidence.seats import Placement, hosts_of, of_traces
from calibration.evidence.work_rows import measured
from calibration.probes import Probe
from sim.base.errors import RunFailed, WrongSetting, from_validation
from sim.base.files import write_text
from sim.job import replay
from sim.model.costs import Line
from sim.model.sizes import ITEM_BYTES
from sim.platform.cluster import ASSUMED, FREE, UNCOUNTED, Cluster, Host, Link, Model, Provenance
from sim.recording.pauses import SETS_THE_PACE
from sim.recording.traces import Trace

DIGITS = 6


@dataclass(frozen=True)
class Source:
    """A trace, what to call it, and how a log was read as one."""

    name: str
    trace: Trace
    notes: tuple[str, ...] = ()


def make(
    sources: list[Source],
    name: str,
    probe: Probe | None = None,
    shared_cores: int | None = None,
    network: Link | None = None,
    item_bytes: float = ITEM_BYTES,
) -> Cluster:
    """The profile of the cluster that the traces were recorded on.

    Real runs record the hosts of their ranks. Ranks of other traces are put on the one machine that was probed, or without a probe
    each on a host of its own.

    Args:
        shared_cores: of the one machine that all hosts are on, if they are namespaces or containers. Runs on the machine itself are
            then used for contention between busy cores alone.
        network: the link between hosts, if it was not probed.
        item_bytes: of a number of the gradients, as ranks sum them.

    Raises:
        WrongSetting: there are no traces; one is incomplete, of an impossible job, or without computation after its warm-up; or cores
            are shared and there is only one host.
        RunFailed: no costs fit the numbers.
    """
    if not sources:
        raise WrongSetting("TRACE", None, "at least one trace")
    for source in sources:
        checks.check(source.trace, source.name)
    with checks.fitting(", ".join(source.name for source in sources)):
        apart = sources if shared_cores is None else _of_several_hosts(sources, shared_cores)
        place = of_traces([s.trace for s in sources], probe.cores if probe else None)
        used, theirs = sources, [s for s in sources if servers.is_of_servers(s.trace)]
        summed = [s for s in sources if collectives.is_of_a_library(s.trace)] if shared_cores is None else []
        if theirs:
            found = _of_servers(theirs, [s.trace for s in sources if s not in theirs], place.cores[0], probe)
        elif summed and len(place.names) == 1:
            theirs, found = summed, _of_a_library(summed, [s.trace for s in sources], place)
        else:
            used = theirs = apart
            place = of_traces([s.trace for s in apart], shared_cores=shared_cores) if shared_cores else place
            found = _of_protocols(apart, place, probe, [s.trace for s in sources if s not in apart], network)
        fields = found.fields
        if probe:
            fields |= {"oversleep_s": probe.oversleep_s, "oversleep_spread": probe.oversleep_spread}
        fields["costs"] = {w: of.model_copy(update={"item_bytes": item_bytes}) for w, of in fields["costs"].items()}
        if shared_cores is not None:
            # The most ranks of any run on a host, which the shared cores do not tell.
            seats = [Counter(name for name, _ in s.trace.header.hosts) for s in apart]
            slots = [max(each[host.name] for each in seats) or host.slots for host in fields["hosts"]]
            hosts = [host.model_copy(update={"slots": n}) for host, n in zip(fields["hosts"], slots, strict=True)]
            fields |= {"shared_cores": shared_cores, "hosts": tuple(hosts)}
        about = _provenance(used, found.notes, probe, network, found.linked)
        made, traces = Cluster(name=name, provenance=about, **fields), [s.trace for s in theirs]
        if theirs is apart and probe and probe.network:
            made = messages.known(made, traces)
        return residuals.known(_paced(made, traces), theirs)


class _Found(NamedTuple):
    """What runs determined: fields of a cluster, and lines about them; `linked` if the link between hosts is among them."""

    fields: dict[str, Any]
    notes: list[str]
    linked: bool = False


def _of_several_hosts(sources: list[Source], shared_cores: int) -> list[Source]:
    """The runs of hosts that share a machine's cores.

    Raises:
        WrongSetting: no such number, or no such run.
    """
    if shared_cores < 1:
        raise WrongSetting("--shared-cores", shared_cores, "an integer from 1")
    found = [s for s in sources if len(hosts_of(s.trace)) > 1]
    if not found:
        raise WrongSetting("--shared-cores", shared_cores, "no such option for runs that had one host")
    return found


def _of_protocols(
    sources: list[Source], place: Placement, probe: Probe | None, beside: list[Trace], network: Link | None
) -> _Found:
    """What runs of protocols' own texts determine; runs `beside`, on one machine, tell how much busy cores slow each other."""
    traces = [s.trace for s in sources]
    place = _looking(place, [*traces, *beside], probe)
    contention = switching = contentions.NONE
    if beside:
        contention = contentions.fit(beside, _looking(of_traces(beside), beside, probe))
    elif not place.gpus:  # what GPUs compute says nothing of cores
        contention = contentions.fit(traces, place)
    if place.gpus:
        switching = contentions.fit(traces, place, "switching")
    learned, said = _learned(sources, place, contention, switching)
    if place.poll_s:
        said.append(f"a poll of a waiting rank takes {place.poll_s * 1e6:.0f} us of a core")
    if place.gpus:
        said.append(f"ranks that compute on one GPU at once: {_said('switching', switching)}")
    links = {"network": FREE} if _communication_in_update(sources) else {"network": network or ASSUMED}
    if probe and not _communication_in_update(sources):
        links = probe.links(place.poll_s > 0) | ({"network": network} if network else {})
    hosts = _hosts(place, [x.speeds for x in learned.values()], contention, switching)
    costs = {w: x.costs for w, x in learned.items()}
    return _Found({"hosts": hosts, "poll_s": place.poll_s, "costs": costs, **links}, said)


def _of_servers(theirs: list[Source], others: list[Trace], cores: int, probe: Probe | None) -> _Found:
    """What runs of TensorFlow's own servers determine; others, on one machine, tell how much busy cores slow each other."""
    contention = contentions.fit(others, _looking(of_traces(others), others, probe)) if others else contentions.NONE
    place = of_traces([s.trace for s in theirs], probe.cores if probe else None)
    further, links = servers.FurtherServer(), dict[str, Link]()
    if probe:  # gRPC does not poll, and the time of polls is not in these links
        further, links = probe.further_server.get(servers.way_of(theirs[0].trace), further), probe.links(polls=True)
    network = links.get("library", links.get("network"))
    fitted = servers.fit([s.trace for s in theirs], [s.name for s in theirs], cores, contention.value, further, network)
    said = "contention of cores taken as none"
    if others:
        said = f"{_said('contention', contention)}, from {len(others)} other runs"
    hosts = _hosts(place, [np.ones(len(place.names))], contention)
    fields = {"hosts": hosts, "costs": fitted.costs, **fitted.links}
    return _Found(fields, [*fitted.notes, said], "network" in fitted.links)


def _of_a_library(theirs: list[Source], traces: list[Trace], place: Placement) -> _Found:
    """What runs of a library that sums determine on one machine. All runs tell how much busy cores slow one another."""
    contention = contentions.fit(traces, place)
    fitted = collectives.fit([s.trace for s in theirs], [s.name for s in theirs], place.cores[0], contention.value)
    learned, notes = _learned(theirs, place, contention)
    without = f"{len(traces) - len(theirs)} of them without the library"
    said = f"{_said('contention', contention)}, from {len(traces)} runs, {without}"
    fields = {
        "hosts": _hosts(place, [x.speeds for x in learned.values()], contention),
        "costs": {w: x.costs.model_copy(update=fitted.of_calls) for w, x in learned.items()},
        "local": fitted.local,
    }
    return _Found(fields, [*fitted.notes, *notes, said])


def _looking(place: Placement, traces: Sequence[Trace], probe: Probe | None) -> Placement:
    """The placement with the processor time of polls, if runs determine it."""
    oversleep_s, link = (probe.oversleep_s, probe.network) if probe else (0.0, None)
    poll_s = polling.poll_s([t for t in traces if polling.tells(t)], oversleep_s, link.overhead_s if link else 0.0)
    return replace(place, poll_s=poll_s, oversleep_s=oversleep_s)


def _learned(
    sources: list[Source], place: Placement, contention: Contention, switching: Contention = contentions.NONE
) -> tuple[dict[str, Learned], list[str]]:
    """Costs and speeds by workload, and lines about them."""
    found = {}
    for workload in sorted({s.trace.header.workload for s in sources}):
        mine = [s for s in sources if s.trace.header.workload == workload]
        rows = measured([s.trace for s in mine], place, contention.value, switching.value)
        found[workload] = learn(rows, list(place.of_rank))
    return found, [f"{workload}: {note}" for workload, of in found.items() for note in of.notes]


def _said(what: str, known: Contention) -> str:
    return f"{what} {known.value:.2f} (1 + it known to within {known.error:.0%}, standard deviation)"


def _hosts(
    place: Placement, speeds: list[np.ndarray], contention: Contention, switching: Contention = contentions.NONE
) -> tuple[Host, ...]:
    """The hosts that the ranks sat on, as fast as the workloads say on average."""
    speed = np.exp(np.mean(np.log(speeds), axis=0))
    slowed = {"contention": contention.value, "contention_error": contention.error}
    slowed |= {"gpus": place.gpus, "switching": switching.value} if place.gpus else {}
    if len(place.names) == 1:
        return (Host(name="localhost", cores=place.cores[0], slots=UNCOUNTED, **slowed),)
    if (speed == 1).all() and not place.shared and set(place.cores) == {1}:
        return (Host(count=len(speed)),)
    return tuple(
        Host(name=name, cores=cores, slots=max(cores, place.of_rank.count(i)), speed=float(speed[i]), **slowed)
        for i, (name, cores) in enumerate(zip(place.names, place.cores, strict=True))
    )


def _paced(made: Cluster, traces: Sequence[Trace]) -> Cluster:
    """The profile where processes that load beside computing set the pace, so that faster computing waits longer for them.

    Ranks that sum gradients go on together. The one whose minibatch comes last has waited for nothing else, and the others' loaders have
    worked on while they waited for it. Its wait is therefore that of all.
    """
    costs, notes = dict(made.costs), list[str]()
    for name, of in made.costs.items():
        runs = [trace for trace in traces if trace.header.workload == name]
        workers = sorted({trace.header.details.get("loader_workers") or 0 for trace in runs})
        if not runs or not workers[0]:
            continue
        times, batch = fmean(map(_last_over_mean, runs)), max(trace.header.batch for trace in runs)
        input_s, compute_s = times * float(of.input(batch)), float(of.compute(batch))
        if input_s < SETS_THE_PACE * (input_s + compute_s):
            continue
        parts = {part: times * getattr(of.input, part) + getattr(of.compute, part) for part in ("base_s", "slope_s")}
        costs[name] = of.model_copy(update={"loading": Line(**parts)})
        beside = f"loaders of {' or '.join(map(str, workers))} workers set the pace, whatever computing takes"
        notes.append(f"{name}: {beside}: {1e3 * (input_s + compute_s):.4g} ms for a batch of {batch}")
    return made.model_copy(update={"costs": costs}).known(*notes)


def _last_over_mean(trace: Trace) -> float:
    """The longest waiting for a step's data of any rank, over that of all ranks; 1 where nothing waits."""
    rows = trace.rows[(trace.rows["activity"] == "input") & (trace.rows["step"] >= trace.header.warmup)]
    of_step = (rows["end_s"] - rows["start_s"]).groupby(rows["step"])
    mean_s = of_step.mean().mean()
    return float(of_step.max().mean() / mean_s) if mean_s > 0 else 1.0


def _communication_in_update(sources: list[Source]) -> bool:
    return any(s.trace.header.communication_in_update for s in sources)


def _provenance(
    sources: list[Source], said: list[str], probe: Probe | None, network: Link | None, linked: bool
) -> Provenance:
    """The profile's origin; `linked` if the runs themselves determined the link between hosts."""
    notes, free = [*(note for source in sources for note in source.notes), *said], _communication_in_update(sources)
    if free:
        notes.append("links are free: imported logs do not separate communication from work")
    elif not (probe or network):
        notes.append("links, cores and oversleep assumed, because there was no probe: one rank a host, 10 Gbit/s")
    return Provenance(
        traces=tuple(s.name for s in sources),
        made=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        notes=tuple(dict.fromkeys(notes)),
        models=_models(sources),
        links_measured=linked or bool(probe and probe.network) or free,
        engines=tuple(sorted({engine for s in sources if (engine := s.trace.header.engine)})),
    )


def _models(sources: list[Source]) -> dict[str, Model]:
    """The fitted workloads by name.

    Raises:
        WrongSetting: two models have one name, or a workload cannot be found.
    """
    found: dict[str, Model] = {}
    for source in sorted(sources, key=lambda one: -one.trace.header.ranks):  # the largest run of a model says its batch
        with replay.said_of(source.name):
            model = Model.fitted(replay.workload_of(source.trace.header), source.trace.header.batch)
        name = source.trace.header.workload
        if not found.setdefault(name, model).same(model):
            given = f"two models called {name}, of {found[name].parameters:,} and {model.parameters:,} parameters"
            raise WrongSetting(source.name, given, "one model of a name: costs are kept by it")
    return found


def write(profile: Cluster, path: str) -> None:
    """Write the profile whole, as TOML that sim.platform.cluster.read reads.

    Raises:
        WrongSetting: a folder that cannot be written.
        RunFailed: it would hold what no cluster has.
    """
    import tomli_w

    table = _rounded(profile.model_dump(by_alias=True, exclude_none=True))
    try:
        Cluster.model_validate(table)
    except ValidationError as error:
        raise RunFailed(f"no profile fits: {from_validation('found', error)}") from error
    write_text(path, tomli_w.dumps(table))


def _rounded(value):
    """Floats with as many digits as a measurement has."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    return [_rounded(item) for item in value] if isinstance(value, (list, tuple)) else value
