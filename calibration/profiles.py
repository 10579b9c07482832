"""The profile: a sim.platform.cluster.Cluster with the costs that were learned and where they come from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

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
from sim.model.sizes import ITEM_BYTES
from sim.platform.cluster import ASSUMED, FREE, UNCOUNTED, Cluster, Host, Link, Model, Provenance
from sim.platform.other_sizes import told
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
    adapted: Callable[[Cluster], Cluster] = lambda made: made,
) -> Cluster:
    """The profile of the cluster that the traces were recorded on.

    Real runs record the hosts of their ranks. Ranks of other traces are put on the one machine that was probed, or without a probe
    each on a host of its own.

    Args:
        shared_cores: of the one machine that all hosts are on, if they are namespaces or containers. Runs on the machine itself are
            then used for contention between busy cores alone.
        network: the link between hosts, if it was not probed.
        item_bytes: of a number of the gradients, as ranks sum them.
        adapted: what else the caller knows of the costs; the errors of the profile are judged with it.

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
        return _made(sources, name, probe, shared_cores, network, item_bytes, adapted)


def _made(
    sources: list[Source],
    name: str,
    probe: Probe | None,
    shared_cores: int | None,
    network: Link | None,
    item_bytes: float,
    adapted: Callable[[Cluster], Cluster],
) -> Cluster:
    """The profile of sound runs, by what they are of."""
    if shared_cores is not None:
        return _of_one_machine(sources, name, probe, shared_cores)
    traces = [s.trace for s in sources]
    place = of_traces(traces, probe.cores if probe else None)
    if any(servers.is_of_servers(trace) for trace in traces):
        theirs = [source for source in sources if servers.is_of_servers(source.trace)]
        return residuals.known(_of_servers(sources, name, place, probe), theirs)
    if len(place.names) == 1 and any(collectives.is_of_a_library(trace) for trace in traces):
        theirs = [source for source in sources if collectives.is_of_a_library(source.trace)]
        return residuals.known(_of_a_library(sources, name, place, probe), theirs)
    made = _of_protocols(sources, name, place, probe, network=network)
    costs = {name: of.model_copy(update={"item_bytes": item_bytes}) for name, of in made.costs.items()}
    return residuals.known(adapted(made.model_copy(update={"costs": costs})), sources)


def _of_one_machine(sources: list[Source], name: str, probe: Probe | None, shared_cores: int) -> Cluster:
    """The profile of hosts that share a machine's cores."""
    if shared_cores < 1:
        raise WrongSetting("--shared-cores", shared_cores, "an integer from 1")
    theirs = [s for s in sources if len(hosts_of(s.trace)) > 1]
    if not theirs:
        raise WrongSetting("--shared-cores", shared_cores, "no such option for runs that had one host")
    traces, beside = [s.trace for s in theirs], [s for s in sources if s not in theirs]
    if any(servers.is_of_servers(trace) for trace in traces):
        place = of_traces([s.trace for s in sources], probe.cores if probe else None)
        made = _of_servers(sources, name, place, probe)
    else:
        place = of_traces(traces, shared_cores=shared_cores)
        made = _of_protocols(theirs, name, place, probe, [s.trace for s in beside])
    hosts = tuple(host.model_copy(update={"slots": _sat_on(host, traces)}) for host in made.hosts)
    return residuals.known(made.model_copy(update={"shared_cores": shared_cores, "hosts": hosts}), theirs)


def _sat_on(host: Host, traces: list[Trace]) -> int | None:
    """The largest number of ranks on a host, because the cores that all hosts share do not give it."""
    return max([name for name, _ in trace.header.hosts].count(host.name) for trace in traces) or host.slots


def _of_protocols(
    sources: list[Source],
    name: str,
    place: Placement,
    probe: Probe | None,
    beside: Sequence[Trace] = (),
    network: Link | None = None,
) -> Cluster:
    """The profile for protocols' own texts; runs `beside`, on one machine, tell how much busy cores slow each other."""
    traces = [s.trace for s in sources]
    place = _looking(place, [*traces, *beside], probe)
    apart = _looking(of_traces(beside), beside, probe) if beside else None
    contention = contentions.fit(list(beside), apart) if apart else contentions.NONE
    switching = contentions.of_gpus(traces, place) if place.gpus else contentions.NONE
    if not (apart or place.gpus):  # what GPUs compute says nothing of cores
        contention = contentions.fit(traces, place)
    workloads = sorted({trace.header.workload for trace in traces})
    learned = {w: _learn(w, sources, place, contention.value, switching.value) for w in workloads}
    said = [f"{w}: {note}" for w, x in learned.items() for note in x.notes]
    if place.poll_s:
        said.append(f"a poll of a waiting rank takes {place.poll_s * 1e6:.0f} us of a core")
    if place.gpus:
        known = f"1 + it known to within {switching.error:.0%}, standard deviation"
        said.append(f"ranks that compute on one GPU at once: switching {switching.value:.2f} ({known})")
    made = Cluster(
        name=name,
        hosts=_hosts(place, [x.speeds for x in learned.values()], contention, switching),
        oversleep_s=probe.oversleep_s if probe else 0.0,
        oversleep_spread=probe.oversleep_spread if probe else None,
        poll_s=place.poll_s,
        costs={w: x.costs for w, x in learned.items()},
        provenance=_provenance(sources, said, probe, network),
        **_links(sources, probe, place.poll_s > 0, network),
    )
    return messages.known(made, traces) if probe and probe.network else made


def _of_servers(sources: list[Source], name: str, place: Placement, probe: Probe | None) -> Cluster:
    """The profile for TensorFlow's own servers; other runs, on one machine, tell how much busy cores slow each other."""
    theirs = [s for s in sources if servers.is_of_servers(s.trace)]
    ours = [s.trace for s in sources if not servers.is_of_servers(s.trace)]
    contention = contentions.fit(ours, _looking(of_traces(ours), ours, probe)) if ours else contentions.NONE
    their_place = of_traces([s.trace for s in theirs], probe.cores if probe else None)
    way = servers.way_of(theirs[0].trace)
    further = probe.further_server.get(way, servers.FurtherServer()) if probe else servers.FurtherServer()
    links = probe.links(polls=True) if probe else {}  # gRPC does not poll, and the time of polls is not in these
    network = links.get("library", links.get("network"))
    named = [s.name for s in theirs]
    fitted = servers.fit([s.trace for s in theirs], named, place.cores[0], contention.value, further, network)
    said = f"{_said(contention)}, from {len(ours)} other runs" if ours else "contention of cores taken as none"
    return Cluster(
        name=name,
        hosts=_hosts(their_place, [np.ones(len(their_place.names))], contention),
        oversleep_s=probe.oversleep_s if probe else 0.0,
        oversleep_spread=probe.oversleep_spread if probe else None,
        costs=fitted.costs,
        provenance=_provenance(sources, [*fitted.notes, said], probe, linked="network" in fitted.links),
        **fitted.links,
    )


def _of_a_library(sources: list[Source], name: str, place: Placement, probe: Probe | None) -> Cluster:
    """The profile of one machine for a library that sums. All runs determine how much busy cores slow one another."""
    theirs = [s for s in sources if collectives.is_of_a_library(s.trace)]
    contention = contentions.fit([s.trace for s in sources], place)
    fitted = collectives.fit([s.trace for s in theirs], [s.name for s in theirs], place.cores[0], contention.value)
    learned = {w: _learn(w, theirs, place, contention.value) for w in sorted({s.trace.header.workload for s in theirs})}
    said = f"{_said(contention)}, from {len(sources)} runs, {len(sources) - len(theirs)} of them without the library"
    notes = [f"{w}: {note}" for w, x in learned.items() for note in x.notes]
    return Cluster(
        name=name,
        hosts=_hosts(place, [x.speeds for x in learned.values()], contention),
        oversleep_s=probe.oversleep_s if probe else 0.0,
        oversleep_spread=probe.oversleep_spread if probe else None,
        costs={w: x.costs.model_copy(update=fitted.of_calls) for w, x in learned.items()},
        local=fitted.local,
        provenance=_provenance(sources, [*fitted.notes, *notes, said], probe),
    )


def _looking(place: Placement, traces: Sequence[Trace], probe: Probe | None) -> Placement:
    """The placement with the processor time of polls, if runs determine it."""
    oversleep_s, link = (probe.oversleep_s, probe.network) if probe else (0.0, None)
    poll_s = polling.poll_s([t for t in traces if polling.tells(t)], oversleep_s, link.overhead_s if link else 0.0)
    return replace(place, poll_s=poll_s, oversleep_s=oversleep_s)


def _learn(
    workload: str, sources: list[Source], place: Placement, contention: float, switching: float = 0.0
) -> Learned:
    mine = [s for s in sources if s.trace.header.workload == workload]
    rows = measured([s.trace for s in mine], [s.name for s in mine], place, contention, switching)
    return learn(rows, list(place.of_rank))


def _said(contention: Contention) -> str:
    return f"contention {contention.value:.2f} (1 + it known to within {contention.error:.0%}, standard deviation)"


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
        Host(
            name=name,
            cores=cores,
            slots=max(cores, place.of_rank.count(i)),
            speed=float(speed[i]),
            **slowed,
        )
        for i, (name, cores) in enumerate(zip(place.names, place.cores, strict=True))
    )


def _links(sources: list[Source], probe: Probe | None, polls: bool, network: Link | None) -> dict[str, Link]:
    if _communication_in_update(sources):
        return {"network": FREE}
    found = probe.links(polls) if probe else {"network": ASSUMED}
    return found | {"network": network} if network else found


def _communication_in_update(sources: list[Source]) -> bool:
    return any(s.trace.header.communication_in_update for s in sources)


def _provenance(
    sources: list[Source], said: list[str], probe: Probe | None, network: Link | None = None, linked: bool = False
) -> Provenance:
    """The profile's origin; `linked` if the runs themselves determined the link between hosts."""
    notes = [*(note for source in sources for note in source.notes), *said]
    if _communication_in_update(sources):
        notes.append("links are free: imported logs do not separate communication from work")
    elif network:
        notes.append(f"the link was given, not measured: {told(network)}")
    elif not probe:
        notes.append("links, cores and oversleep assumed, because there was no probe: one rank a host, 10 Gbit/s")
    elif not linked:
        notes.append(probe.varied)
    made = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    names = tuple(s.name for s in sources)
    linked = linked or bool(probe and probe.network) or _communication_in_update(sources)
    engines = tuple(sorted({engine for s in sources if (engine := s.trace.header.engine)}))
    if len(engines) > 1:
        notes.append(f"runs of {' and '.join(engines)} were fitted together: costs are of neither alone")
    return Provenance(
        traces=names,
        made=made,
        notes=tuple(notes),
        models=_models(sources),
        links_measured=linked,
        engines=engines,
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
