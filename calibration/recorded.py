"""A profile from runs that `trainsim.Recorder` recorded: of DistributedDataParallel, or of loops whose messages nobody saw."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import fmean

import numpy as np

from calibration import checks, comparison, profiles, seating
from calibration.nccl_fits import ring_link
from calibration.profiles import Source
from sim.base.errors import WrongSetting
from sim.job import replay
from sim.job.header import Header
from sim.model.sizes import ITEM_BYTES
from sim.platform import catalogue
from sim.platform.cluster import Cluster, Link, Model
from sim.platform.gpu import Gpu
from sim.platform.other_sizes import told
from sim.protocols import settings_of
from sim.recording.recorded import WORLDS
from sim.recording.traces import Trace

CALL = "receive"  # the activity of an allreduce of a bucket


def are_recorded(sources: Sequence[Source]) -> bool:
    """Whether runs are those of trainsim.Recorder.

    Raises:
        WrongSetting: some are, and others are not.
    """
    found = [source.trace.header.world in WORLDS for source in sources]
    if any(found) and not all(found):
        other = sources[found.index(False)]
        raise WrongSetting("TRACE", other.name, "runs of trainsim.Recorder alone, or none of them")
    return any(found)


def profile(sources: list[Source], name: str, link: Link | None = None) -> Cluster:
    """The profile of the hosts that the runs were recorded on.

    Each rank's computing, input and updates are its costs. The link is that on which a ring takes as long as the allreduces that the
    largest run recorded; within the host if there was one, else between hosts.

    Args:
        link: between hosts, of runs on one.

    Raises:
        WrongSetting: see `profiles.make`; runs with different numbers of ranks on a host; a link beside one that the runs measured.
        RunFailed: numbers to which no costs fit.
    """
    largest = max((source.trace for source in sources), key=lambda trace: trace.header.ranks)
    head, called = largest.header, ", ".join(source.name for source in sources)
    hosts, each = len(dict(head.hosts)), max(Counter(name for name, _ in head.hosts).values())
    with checks.fitting(called):
        sums = [sums_of(source.trace) for source in sources if source.trace.header.ranks == head.ranks]
        found = ring_link(head.ranks, np.concatenate(sums, axis=1)) if head.ranks > 1 else None
    if link and hosts > 1:
        raise WrongSetting("--link", told(link), "no link beside that which the runs measured between their hosts")
    alone = [replace(one, trace=Trace(replace(one.trace.header, hosts=()), one.trace.rows)) for one in sources]
    alone[0] = replace(alone[0], notes=tuple(_notes(sources, largest, found)))  # on all of them
    made = profiles.make(alone, name, network=found or link, item_bytes=item_bytes(largest))
    gpu = catalogue.gpu_of(str(head.details.get("gpu", "")))
    made = seating.seated(made, each, str(head.details.get("gpu") or "a GPU") if head.gpus else "")
    if found and hosts == 1 and not head.gpus:
        made = made.model_copy(update={"local": made.local.model_copy(update={"by_port": True})})
    if link:
        made = made.model_copy(update={"network": link} | ({} if found else {"local": profiles.FREE}))
    models, elsewhere = _carried(made, [one.trace.header for one in sources], gpu)
    return made.known(
        *elsewhere,
        models=models,
        links_measured=bool(found) and hosts > 1,
        local_measured=bool(found) and hosts == 1,
        cores=dict(head.hosts)[head.hosts[0][0]] if hosts == 1 and not head.gpus else None,
    )


def _carried(made: Cluster, heads: Sequence[Header], gpu: Gpu | None) -> tuple[dict[str, Model], list[str]]:
    """The models as they may be asked of other hosts, and a note of each: by steps where their GPU is known, or else by operations."""
    assert made.provenance is not None  # `make` has made one
    models, notes = dict(made.provenance.models), []
    for name, costs in made.costs.items():
        head = next(head for head in heads if head.workload == name)
        described = head.model and {key: value for key, value in head.model.items() if value is not None}
        counted = [head.model["flops_per_sample"] for head in heads if head.model and "flops_per_sample" in head.model]
        if not described or "costs" in described:
            continue
        if counted:
            described["flops_per_sample"] = fmean(counted)
            by = "the peak rates of their GPUs"
        if gpu:
            said = {"gpu": gpu.name} | ({"precision": described["precision"]} if "precision" in described else {})
            update_s = float(costs.update(ITEM_BYTES * models[name].parameters))
            steps = sorted({head.batch for head in heads if head.workload == name})
            described["step"] = [{"time": float(costs.compute(b)) + update_s, "batch": b, **said} for b in steps]
            by = f"the ratio of rates to those of {gpu.name}, where it was measured"
        models[name] = models[name].model_copy(update={"described": described})
        if gpu or counted:
            notes.append(
                f"{name}: --workload PROFILE --cluster HOST asks it of other hosts: computing by {by}, and no wait for data"
            )
    return models, notes


def sums_of(trace: Trace) -> np.ndarray:
    """The sums of a run after its warm-up: how many calls each is, their bytes and the library's seconds, shape (3, sums).

    None of steps in which a rank has another number of calls. A call lasts at each rank until all have come, and the library works
    since the last one has: the shortest time of any rank is taken. Calls that overlap at any rank share the link, or wait for one
    another, and count together.
    """
    head = trace.header
    rows = trace.rows[(trace.rows["activity"] == CALL) & (trace.rows["step"] >= head.warmup)]
    rows = rows.sort_values(["step", "rank", "start_s"], kind="stable")
    several = rows.groupby(["step", "rank"]).size().unstack("rank")
    usual = several.mode().iloc[0].max() if len(several.columns) == head.ranks else 0
    whole = several.index[(several == usual).all(axis=1)]
    if not usual or whole.empty:
        return np.zeros((3, 0))
    kept = rows[rows["step"].isin(whole)]
    start_s, end_s, size = (
        kept[name].to_numpy(float).reshape(len(whole), head.ranks, -1) for name in ("start_s", "end_s", "bytes")
    )
    ended_s = np.maximum.accumulate(end_s, axis=2)
    begins = np.ones((len(whole), size.shape[2]), bool)
    begins[:, 1:] = (start_s[:, :, 1:] >= ended_s[:, :, :-1]).all(axis=1)
    first = np.flatnonzero(begins)  # of each group of calls, those of all steps one after another
    first_s, last_s = (of.transpose(1, 0, 2).reshape(head.ranks, -1) for of in (start_s, ended_s))
    calls = np.diff(first, append=begins.size)
    seconds = (last_s[:, first + calls - 1] - first_s[:, first]).min(axis=0)
    return np.stack([calls, np.add.reduceat(size[:, 0].ravel(), first), seconds])


def item_bytes(trace: Trace) -> float:
    """Bytes that a step's allreduces sum for each number of the model: 2 where gradients are compressed; 4 where nothing was seen."""
    rows = trace.rows[(trace.rows["activity"] == CALL) & (trace.rows["rank"] == 0)]
    rows = rows[rows["step"] >= trace.header.warmup]
    if rows.empty:
        return ITEM_BYTES
    moved = rows["bytes"].sum() / rows["step"].nunique()
    return float(moved / replay.workload_of(trace.header).parameters)


def _notes(sources: list[Source], largest: Trace, found: Link | None) -> Iterator[str]:
    head = largest.header
    listed = ", ".join(f"{name} {1e3 * each_s:.3g} ms" for name, each_s in comparison.activities_s(largest).items())
    yield f"{head.ranks} rank{'s' * (head.ranks > 1)} on {head.cluster}, in a step of each: {listed}"
    yield f"a ring takes as long as the allreduces on a link of {told(found)}" if found else "no allreduce was seen"
    for source in sources:
        yield from (f"{source.name}: {note}" for note in source.trace.header.details.get("notes", ()))
        if not source.trace.header.complete:
            yield f"{source.name}: cut short, or left before its loader had no more"
    settings = "".join(f" --set {one}" for one in settings_of(replay.protocol_of(head)))
    yield f"simulate with --protocol {head.protocol}{settings}"
