"""The costs of TensorFlow's own parameter servers, from runs of one worker with one server.

With one worker every wait is for some work. The phases of a step are therefore a chain of work on cores and, where worker and server
are on different hosts, of messages on the wire. Processor time beyond the length of the chain is that of other threads: background
work.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict

from calibration.estimators import lines
from calibration.evidence import factors
from calibration.evidence.seats import hosts_of
from sim.base.errors import WrongSetting
from sim.base.ranges import Seconds
from sim.job.replay import protocol_of
from sim.laws import Law
from sim.model.costs import Costs, Line
from sim.platform.cluster import Link
from sim.recording.traces import Trace

CHAIN = ("input", "receive", "compute", "send", "wait")  # of a worker's step; the server's work is in its waits
MESSAGES = 4  # of a step: request, parameters, gradient, acknowledgement; two of them carry the model
LEAST_FACTOR = 0.05  # of a step's phase, over its mean: one shorter than the clocks that time it has no length at all
LEAST_S = 1e-6  # of a phase


class Chain(NamedTuple):
    """One run: means over its steps, seconds.

    Args:
        phase_s: of each phase by name, and the server's `reduce` and `update`; the induced sleep is none of them.
        size_bytes: of a message that carries the model.
        batch: samples.
        processor_s: of all processes.
        compute_s: each step's computation, as measured, shape (steps,).
        around_s: what of each step is neither that nor the model's travels, its sleep aside, shape (steps,).
        wire_s: what of a step's phases is no core's.
        slept: share of the steps that an induced sleep came before.
    """

    phase_s: dict[str, float]
    size_bytes: int
    batch: int
    processor_s: float
    compute_s: np.ndarray
    around_s: np.ndarray
    wire_s: float = 0.0
    slept: float = 0.0

    @property
    def length_s(self) -> float:
        """Seconds of the chain on cores."""
        return max(self.phase_s["compute"], sum(self.phase_s[name] for name in CHAIN) - self.wire_s)

    @property
    def behind_s(self) -> float:
        """Processor seconds of a step that are not in the chain."""
        return max(0.0, self.processor_s - self.length_s)


class FurtherServer(BaseModel):
    """The cost of one more server for a step: further seconds, elapsed and of cores (real.servers.probe)."""

    model_config = ConfigDict(frozen=True, extra="ignore")
    serial_s: Seconds = 0.0
    processor_s: Seconds = 0.0


class Fitted(NamedTuple):
    """Costs of each workload, the links, and lines about the fit."""

    costs: dict[str, Costs]
    links: dict[str, Link]
    notes: list[str]


def is_of_servers(trace: Trace) -> bool:
    """Whether a trace is of TensorFlow's own servers."""
    return trace.header.foreign and trace.header.servers > 0


def travels(trace: Trace) -> bool:
    """Whether the model went from host to host."""
    return len(hosts_of(trace)) > 1


def way_of(trace: Trace) -> str:
    """The kind of update of its parameters (sim.protocols.base.Protocol.way)."""
    return protocol_of(trace.header).way


def fit(
    traces: list[Trace],
    names: list[str],
    cores: int,
    contention: float,
    further: FurtherServer,
    network: Link | None = None,
) -> Fitted:
    """Costs and links from runs of one worker and one server. Runs with induced sleeps give only the extra cost after a sleep.

    Args:
        contention: of the host's cores (sim.platform.cluster.Host), between the chain and the background work.
        further: the cost of one more server for a step, as probed.
        network: the probed link, needed if worker and server have a host each.

    Raises:
        WrongSetting: a run has more of them, protocols update differently, some runs are on one host and some on two, or on two
            without a probe.
    """
    _check(traces, names, network)
    chains, link = [chain_of(trace) for trace in traces], None
    if travels(traces[0]):
        link = _network(_awake(chains), network, further)
        beyond = [max(0.0, chain.size_bytes - link.burst_bytes) for chain in chains]  # of the model, there and back
        wire_s = [MESSAGES * link.latency_s + 2 * size / link.bandwidth_bytes_per_s for size in beyond]
        chains = [chain._replace(wire_s=one_s) for chain, one_s in zip(chains, wire_s, strict=True)]
    chains = [_slowed_less(chain, cores, contention) for chain in chains]
    carried = _carried(_awake(chains))
    called, link = ("network", link) if link else ("local", _local(carried, further))
    costs, notes = {}, [f"the {called} link fitted from {len(_awake(chains))} runs and a probe of one server more"]
    for workload in sorted({trace.header.workload for trace in traces}):
        mine = [chain for chain, trace in zip(chains, traces, strict=True) if trace.header.workload == workload]
        awake, slept = _awake(mine), [chain for chain in mine if chain.slept]
        costs[workload] = _costs(awake, link, carried).model_copy(update={"resume_s": _resume_s(awake, slept)})
        batches = ", ".join(str(batch) for batch in sorted({chain.batch for chain in awake}))
        notes.append(f"{workload}: a worker's chain fitted from {len(awake)} runs, batches {batches}")
        if slept:
            took = f"{costs[workload].resume_s * 1e3:.1f} ms more after a sleep"
            notes.append(f"{workload}: {took}, from {len(slept)} runs with sleeps")
    return Fitted(costs, {called: link}, notes)


def _check(traces: list[Trace], names: list[str], network: Link | None) -> None:
    for trace, name in zip(traces, names, strict=True):
        header = trace.header
        _check_rows(trace, name)
        if (header.workers, header.servers) != (1, 1):
            given = f"{header.workers} workers, {header.servers} servers"
            raise WrongSetting(name, given, "runs of 1 worker and 1 server, of those with --runtime tensorflow")
        if travels(trace) != travels(traces[0]):
            given = "worker and server placed otherwise than in other runs"
            raise WrongSetting(name, given, "one host, or one for each, in all")
        if travels(trace) and network is None:
            raise WrongSetting("--probe", None, f"a probe of the link between hosts: {name} is of two hosts")
        alike = [other.rows for other in traces if other.header.workload == header.workload]
        if all((rows["activity"] == "sleep").any() for rows in alike):
            raise WrongSetting(name, "induced sleeps in every run", f"runs of {header.workload} without stragglers too")
    ways = sorted({way_of(trace) for trace in traces})
    if len(ways) > 1:
        raise WrongSetting("TRACE", " and ".join(ways), "one of the two: a profile has one cost of an update")


def _check_rows(trace: Trace, name: str) -> None:
    """All phases of a worker's step are there."""
    rows = trace.rows[trace.rows["step"] >= trace.header.warmup]
    servers = rows["rank"] < trace.header.servers
    for of, activities in ((~servers, CHAIN), (servers, ("reduce", "update"))):
        if missing := sorted(set(activities) - set(rows.loc[of, "activity"])):
            allowed = f"rows of {', '.join(activities)}"
            raise WrongSetting(name, f"no row of {missing[0]} after its warm-up", allowed)


def _awake(chains: list[Chain]) -> list[Chain]:
    return [chain for chain in chains if not chain.slept]


def chain_of(trace: Trace) -> Chain:
    """The means of one run's phases, after its warm-up."""
    header, rows = trace.header, trace.rows
    rows = rows[rows["step"] >= header.warmup].assign(seconds=lambda r: r["end_s"] - r["start_s"])
    mine, servers = rows[rows["rank"] == 1], rows[rows["rank"] == 0]
    table = mine[mine["activity"].isin(CHAIN)].pivot_table(
        index="step", columns="activity", values="seconds", aggfunc="sum"
    )
    kept = ~lines.stalled(table.sum(axis=1).to_numpy())
    phase_s = table[kept].mean().to_dict()
    for name in ("reduce", "update"):
        spent_s = servers.loc[servers["activity"] == name, "seconds"].to_numpy()
        phase_s[name] = float(spent_s[~lines.stalled(spent_s)].mean())
    processor_s = sum(header.cpu_s.values()) / np.count_nonzero(mine["activity"] == "compute")
    size_bytes = int(mine.loc[mine["activity"] == "send", "bytes"].iloc[0])
    slept = float(table.index[kept].isin(mine.loc[mine["activity"] == "sleep", "step"]).mean())
    compute_s, around_s = table["compute"].to_numpy()[kept], (table["input"] + table["wait"]).to_numpy()[kept]
    return Chain(phase_s, size_bytes, header.batch, processor_s, compute_s, around_s, slept=slept)


def _slowed_less(chain: Chain, cores: int, contention: float) -> Chain:
    """The chain as it would be without background work, at any moment of the step."""
    beside = min(cores - 1, chain.behind_s / (chain.length_s + chain.wire_s))
    by = 1 + contention * beside
    phase_s = {name: seconds / by for name, seconds in chain.phase_s.items()}
    return chain._replace(phase_s=phase_s, processor_s=chain.processor_s / by, wire_s=chain.wire_s / by)


def _carried(chains: list[Chain]) -> dict[str, float]:
    """Seconds for each byte of the model, of the phases in which it travels: the slopes over models of several sizes.

    With one size, the whole time of these phases is attributed to its bytes.
    """
    sizes = [c.size_bytes for c in chains]
    return {name: _line(sizes, [c.phase_s[name] for c in chains], steep=True).slope_s for name in ("receive", "send")}


def _local(carried: dict[str, float], further: FurtherServer) -> Link:
    """The link between processes of a host; a byte costs as much as in a push."""
    return Link(latency_s=0, bandwidth_bytes_per_s=1 / max(carried["send"], 1e-14), **_ends(further))


def _ends(further: FurtherServer) -> dict[str, float]:
    """A server more costs its four messages' overheads one after another, and the background work of their eight ends."""
    background_s = max(0.0, further.processor_s - further.serial_s) / (2 * MESSAGES)
    return {"overhead_s": further.serial_s / MESSAGES, "background_s": background_s}


def _network(chains: list[Chain], probed: Link, further: FurtherServer) -> Link:
    """The link between hosts: the probed one, without rendezvous, because gRPC has none; with gRPC's bandwidth if that is less.

    Pushes of models of several sizes tell, whose work at the ends the wire hides. A small model's is not all hidden, so what they
    tell is the most that gRPC can have: more than the link that was probed is none.
    """
    own = {"eager_bytes": None, "fair": True}
    sizes, push_s = np.array([c.size_bytes for c in chains], float), np.array([c.phase_s["send"] for c in chains])
    if len(np.unique(sizes)) > 1:
        slope_s, base_s = map(float, np.polyfit(sizes, push_s, 1, w=1 / push_s))
        if slope_s > 1 / probed.bandwidth_bytes_per_s:
            burst_bytes = max(0.0, (probed.latency_s - base_s) / slope_s)
            own |= {"bandwidth_bytes_per_s": 1 / slope_s, "burst_bytes": burst_bytes}
    return probed.model_copy(update=own | _ends(further))


def _costs(chains: list[Chain], link: Link, carried: dict[str, float]) -> Costs:
    """The costs of one workload: the part of its chain that is not the link's; further time of its phases is charged before them."""
    size_bytes, batches = chains[0].size_bytes, [c.batch for c in chains]
    take_up_s_per_byte = max(0.0, carried["receive"] - carried["send"])
    copied_s = 0.0 if chains[0].wire_s else 2 * link.occupancy_s(size_bytes)
    messages_s = MESSAGES * link.overhead_s + copied_s + take_up_s_per_byte * size_bytes
    known_s = [messages_s + c.phase_s["compute"] + c.phase_s["reduce"] + c.phase_s["update"] for c in chains]
    input_s = [max(0.0, c.length_s - known) for c, known in zip(chains, known_s, strict=True)]
    behind_s = [max(0.0, c.behind_s - 2 * MESSAGES * link.background_s) for c in chains]
    return Costs(
        input=_line(batches, input_s),
        compute=_line(batches, [c.phase_s["compute"] for c in chains]),
        background=_line(batches, behind_s),
        take_up=Line(slope_s=take_up_s_per_byte),
        reduce=Line(slope_s=float(np.mean([c.phase_s["reduce"] for c in chains])) / size_bytes),
        update=Line(base_s=float(np.mean([c.phase_s["update"] for c in chains]))),
        noise=_noise([c.compute_s for c in chains]),
        input_noise=_noise([c.around_s for c in chains]),
        run=factors.law(_drift(chains)),
    )


def _resume_s(awake: list[Chain], slept: list[Chain]) -> float:
    """The excess of a step after a sleep over one of the same batch in runs that never sleep; the mean over the runs that sleep."""
    if not slept:
        return 0.0
    usual = _line([chain.batch for chain in awake], [chain.length_s for chain in awake])
    more_s = [(chain.length_s - float(usual(chain.batch))) / chain.slept for chain in slept]
    return max(0.0, float(np.mean(more_s)))


def _noise(runs: list[np.ndarray]) -> Law:
    """The variation of a part of each run's steps around its mean."""
    return factors.law(np.concatenate([np.maximum(LEAST_FACTOR, seconds / seconds.mean()) for seconds in runs]))


def _drift(chains: list[Chain]) -> np.ndarray:
    """The length of each run's chain, over the mean of runs with its batch."""
    kinds = {batch: np.mean([c.length_s for c in chains if c.batch == batch]) for batch in {c.batch for c in chains}}
    return np.array([c.length_s / kinds[c.batch] for c in chains])


def _line(amounts: list[int], seconds: list[float], steep: bool = False) -> Line:
    """Base and slope, both 0 or more. With one amount everything is base, or slope. Means are fitted, because a mean step is predicted."""
    if len(set(amounts)) == 1 and not steep:
        return Line(base_s=float(np.mean(seconds)))
    base_s, slope_s = lines.line(np.asarray(amounts, float), np.maximum(seconds, LEAST_S))
    return Line(base_s=base_s, slope_s=slope_s)
