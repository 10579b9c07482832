"""A profile from runs that `trainsim.Recorder` recorded: of DistributedDataParallel, or of loops whose messages nobody saw."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import ceil, log2
from typing import TYPE_CHECKING

import numpy as np

from calibration import checks, comparison, nccl_fits, nccl_links, profiles, seating
from calibration.profiles import Source
from sim import catalogue
from sim.base.errors import WrongSetting
from sim.job import replay
from sim.model.sizes import ITEM_BYTES
from sim.platform.cluster import Cluster, Link
from sim.platform.other_sizes import told
from sim.recording.recorded import WORLDS
from sim.recording.traces import Trace

if TYPE_CHECKING:
    import pandas as pd

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
        found = link_of([source.trace for source in sources if source.trace.header.ranks == head.ranks])
    if link and hosts > 1:
        raise WrongSetting("--link", told(link), "no link beside that which the runs measured between their hosts")
    alone = [replace(one, trace=Trace(replace(one.trace.header, hosts=()), one.trace.rows)) for one in sources]
    made = profiles.make(alone, name, network=found or link, item_bytes=item_bytes(largest))
    gpu = catalogue.gpu_of(str(head.details.get("gpu", "")))
    made = seating.seated(made, each, nccl_links.inner_of(gpu))
    if head.gpus:
        here = [host.model_copy(update={"gpus": host.slots, "gpu": gpu}) for host in made.hosts]
        made = made.model_copy(update={"hosts": tuple(here)})
    if link:
        made = made.model_copy(update={"network": link} | ({} if found else {"local": profiles.FREE}))
    assert made.provenance is not None  # `make` has made one
    notes = (*_notes(sources, largest, found, link), *map(str, _left(made.provenance.notes)))
    known = {"notes": notes, "links_measured": bool(found) and hosts > 1, "local_measured": bool(found) and hosts == 1}
    return made.model_copy(update={"provenance": made.provenance.model_copy(update=known)})


def calls(trace: Trace) -> pd.DataFrame:
    """The allreduces after warm-up that all ranks recorded: bytes, and seconds at the rank that took least.

    A call lasts at each rank until all have come; at the last to come it lasts as long as the library takes. One that is ready before
    the rank's last one has ended begins then.
    """
    rows = trace.rows[(trace.rows["activity"] == CALL) & (trace.rows["step"] >= trace.header.warmup)]
    rows = rows.sort_values(["rank", "step", "start_s"], kind="stable")
    of_step = rows.groupby(["rank", "step"])
    before_s = of_step["end_s"].cummax().groupby([rows["rank"], rows["step"]]).shift(fill_value=0.0)
    seconds = rows["end_s"] - rows["start_s"].clip(lower=before_s)
    rows = rows.assign(seconds=seconds, call=of_step.cumcount())
    found = rows.groupby(["step", "call"]).agg(
        bytes=("bytes", "first"), seconds=("seconds", "min"), ranks=("rank", "size")
    )
    return found[(found["ranks"] == trace.header.ranks) & (found["seconds"] > 0)]


def link_of(traces: Sequence[Trace]) -> Link | None:
    """The link on which a ring takes as long as the allreduces, by the median of each size; None where there are none.

    The protocol that simulates them negotiates before each, along a tree and back (sim.verbs.fusion). PyTorch does not. What a call
    takes besides its bytes is shared out among the rounds of both.

    Args:
        traces: of equally many ranks.
    """
    ranks, tables = traces[0].header.ranks, [table for trace in traces if len(table := calls(trace))]
    if ranks < 2 or not tables:
        return None
    sizes = np.concatenate([table["bytes"].to_numpy(float) for table in tables])
    seconds = np.concatenate([table["seconds"].to_numpy(float) for table in tables])
    levels = np.unique(sizes)
    found = nccl_fits.ring_link(ranks, levels, np.array([np.median(seconds[sizes == level]) for level in levels]))
    rounds, told = 2 * (ranks - 1), 2 * ceil(log2(ranks))
    return found and found.model_copy(update={"latency_s": found.latency_s * rounds / (rounds + told)})


def item_bytes(trace: Trace) -> float:
    """Bytes that a step's allreduces sum for each number of the model: 2 where gradients are compressed; 4 where nothing was seen."""
    rows = trace.rows[(trace.rows["activity"] == CALL) & (trace.rows["rank"] == 0)]
    rows = rows[rows["step"] >= trace.header.warmup]
    if rows.empty:
        return ITEM_BYTES
    moved = rows["bytes"].sum() / rows["step"].nunique()
    return float(moved / replay.workload_of(trace.header).parameters)


def _left(notes: Sequence[str]) -> list[str]:
    """Notes of a fit without those on a link that was given to it: here it was measured."""
    return [note for note in notes if not note.startswith(("the link was given", "links, cores and oversleep"))]


def _notes(sources: list[Source], largest: Trace, found: Link | None, link: Link | None) -> list[str]:
    head = largest.header
    seconds = comparison.activities_s(largest)
    listed = ", ".join(f"{name} {1e3 * each_s:.3g} ms" for name, each_s in seconds.items())
    notes = [f"{head.ranks} rank{'s' * (head.ranks > 1)} on {head.cluster}, in a step of each: {listed}"]
    if found:
        notes.append(f"a ring takes as long as the allreduces on a link of {told(found)}")
    if link:
        notes.append(f"the link between hosts was given, not measured: {told(link)}")
    elif not found:
        notes.append("no allreduce was seen")
    notes += [f"{source.name}: {note}" for source in sources for note in source.trace.header.details.get("notes", ())]
    notes += [f"{source.name}: cut short" for source in sources if not source.trace.header.complete]
    settings = "".join(
        f" --set {name}={head.settings[name]}"
        for name in ("algorithm", "fusion_bytes", "cycle_s")
        if name in head.settings
    )
    notes.append(f"simulate with --protocol {head.protocol}{settings}")
    return notes
