"""A profile from torch.profiler's traces of one run: what ranks computed in each step, what NCCL took, and how much of that was hidden."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from calibration import checks, profiles
from calibration.importers import steps
from calibration.importers.about import About
from calibration.importers.torch_events import MOST_RANKS, SOURCE
from calibration.importers.torch_profiler import Call, Ranked, read
from calibration.nccl_fits import ring_link
from calibration.profiles import Source
from sim.answers import outcome
from sim.base.errors import WrongSetting
from sim.base.ranges import check_integer
from sim.job import replay
from sim.model import workload as workloads
from sim.model.workload import ITEM_BYTES, Workload
from sim.platform.cluster import Cluster, Link
from sim.platform.other_sizes import told
from sim.recording.traces import Trace
from sim.simulation import simulate

ENDINGS = (".json", ".json.gz")
HIDDEN = (
    0.2  # of the library's time: if computing hides more, gradients are taken to be reduced during back-propagation
)
OTHERS = 0.05  # share of a step's bytes that may be no gradients: metrics, buffers
NARROW = (1.0, 0.5)  # of the workload's bytes: gradients as float32, or in two bytes
WITHIN_S = 3.0  # to simulate the run again


class Run(NamedTuple):
    """The ranks of one run, in order, and how many there were in all."""

    ranks: list[Ranked]
    world: int


def profile(paths: Sequence[str], name: str, about: About, ranks: int | None = None) -> Cluster:
    """The cluster that traces of some ranks, or of all, are of: each rank on a host of its own, on the link that NCCL's calls took.

    Args:
        paths: files, one a rank, or a folder of them.
        ranks: of the run, where the traces do not say.

    Raises:
        WrongSetting: no such traces, of several runs, of another workload, or of collectives other than allreduce.
        RunFailed: numbers to which no costs fit.
    """
    run = _run(_files(paths), ranks)
    trained = workloads.read(about.workload)
    moved = _moved_bytes(run, trained)
    with checks.fitting(Path(paths[0]).name):
        link = about.link or (_link(run, trained, moved) if run.world > 1 else None)
    hidden = _share(sum(one.hidden_s.sum() for one in run.ranks), sum(one.library_s.sum() for one in run.ranks))
    protocol = about.protocol or ("horovod" if hidden > HIDDEN else "allreduce")
    told_of = replace(about, protocol=protocol, link=link)
    trace = steps.trace_of(_logged(run), told_of, Path(paths[0]).name, measured=about.link is None)
    made = profiles.make([Source(Path(paths[0]).name, trace)], name, network=link)
    assert made.provenance is not None  # `make` has made one
    again_s = _again_s(trace, made) if run.world > 1 else None
    notes = (
        *_notes(run, hidden, protocol, link if about.link is None else None),
        *_again(again_s, trace),
        *_kept(made.provenance.notes),
    )
    known = {"notes": notes, "links_measured": about.link is None and link is not None}
    return made.model_copy(update={"provenance": made.provenance.model_copy(update=known)})


def _again_s(trace: Trace, made: Cluster) -> float:
    """Seconds of a step of the same job, simulated with the profile."""
    job = replay.scenario_of(trace.header, made)
    return float(simulate(job, replications=1, within_s=WITHIN_S).step_s.mean())


def _again(again_s: float | None, trace: Trace) -> list[str]:
    if again_s is None:
        return []
    traced_s = float(outcome.of_trace(trace).step_s.mean())
    return [
        f"simulated, such a step takes {again_s * 1e3:.4g} ms, {again_s / traced_s - 1:+.1%}: how computing hides messages is modelled"
    ]


def _kept(notes: tuple[str, ...]) -> list[str]:
    return [note for note in notes if not note.startswith("the link was given")]


def _files(paths: Sequence[str]) -> list[Path]:
    """The files, of folders those that may be traces."""
    found = []
    for path in map(Path, paths):
        inside = sorted(one for one in path.iterdir() if one.name.endswith(ENDINGS)) if path.is_dir() else [path]
        if not inside:
            raise WrongSetting(SOURCE, str(path), f"a folder with traces, {' or '.join(ENDINGS)}")
        found += inside
    return found


def _run(files: list[Path], ranks: int | None) -> Run:
    """All traces as those of one run.

    Raises:
        WrongSetting: a rank that is there twice, or traces of other steps, or of other numbers of ranks.
    """
    found = [read(path) for path in files]
    if ranks is not None:
        check_integer("--ranks", ranks, 1, MOST_RANKS)
    said = {one.world for one in found if one.world is not None} | ({ranks} if ranks else set())
    groups = {call.group for one in found for calls in one.calls for call in calls if call.group}
    said = said or ({max(groups)} if groups else set())
    world = said.pop() if len(said) == 1 else len(found)
    if said:
        raise WrongSetting("--ranks", f"{world} and {said.pop()}", "one number: traces of one run")
    if len(found) > world:
        raise WrongSetting(SOURCE, f"{len(found)} traces", f"at most {world}, one of each rank")
    numbers = [one.rank for one in found if one.rank is not None]
    if len(set(numbers)) < len(numbers) or (numbers and (len(numbers) < len(found) or max(numbers) >= world)):
        raise WrongSetting(
            f"{SOURCE}: ranks", ", ".join(map(str, numbers)), f"each once, below {world}, in every trace"
        )
    if len({one.steps for one in found}) > 1:
        given = "; ".join(f"{one.steps[0]} to {one.steps[-1]}" for one in found[:4])
        raise WrongSetting(f"{SOURCE}: steps", given, "the same in every trace")
    return Run(sorted(found, key=lambda one: one.rank or 0), world)


def _moved_bytes(run: Run, trained: Workload) -> float | None:
    """Bytes that a step's allreduces sum; None if the traces do not say.

    Raises:
        WrongSetting: collectives of another kind, or bytes of another workload.
    """
    calls = [call for one in run.ranks for of_step in one.calls for call in of_step]
    others = sorted({call.collective for call in calls} & {"all_gather", "reduce_scatter"})
    if others and not any(call.collective == "all_reduce" for call in calls):
        raise WrongSetting(
            f"{SOURCE}: collectives", ", ".join(others), "data-parallel training, which allreduces gradients"
        )
    summed = [call.bytes for call in calls if call.collective == "all_reduce"]
    if not summed or None in summed:
        return None
    moved = sum(size for size in summed if size) / sum(len(one.steps) for one in run.ranks)
    whole = trained.parameters * ITEM_BYTES
    if not any(abs(moved - whole * share) <= OTHERS * whole * share for share in NARROW):
        allowed = f"a workload of {moved / ITEM_BYTES:,.0f} float32 parameters, which a step of the trace reduces"
        raise WrongSetting("--workload", f"{trained.name}, of {trained.parameters:,}", allowed)
    return moved


def _link(run: Run, trained: Workload, moved: float | None) -> Link | None:
    """The link with which a ring takes as long as NCCL's calls; None where there are none.

    A call lasts at each rank until all have come; the shortest at any rank is what it takes.
    """
    sizes, seconds = [], []
    for at in range(len(run.ranks[0].steps)):
        of_ranks = [[call for call in one.calls[at] if call.collective == "all_reduce"] for one in run.ranks]
        if len({len(calls) for calls in of_ranks}) > 1:
            of_ranks = of_ranks[:1]
        for together in zip(*of_ranks, strict=True):
            size = _bytes(together[0], trained, moved, len(of_ranks[0]))
            shortest_s = min(call.seconds for call in together)
            if shortest_s > 0:
                sizes.append(size)
                seconds.append(shortest_s)
    if not sizes:
        return None
    levels = np.unique(sizes)
    medians = np.array(
        [np.median([s for s, size in zip(seconds, sizes, strict=True) if size == level]) for level in levels]
    )
    return ring_link(run.world, levels, medians)


def _bytes(call: Call, trained: Workload, moved: float | None, calls: int) -> float:
    """The bytes of a call, as the simulator counts them: gradients are float32."""
    whole = trained.parameters * ITEM_BYTES
    return whole / calls if call.bytes is None or not moved else call.bytes * whole / moved


def _logged(run: Run) -> steps.Steps:
    """The steps as a table. Ranks without a trace are taken to be like the others, at other moments."""
    known = [one.compute_s for one in run.ranks]
    compute_s = np.column_stack([np.roll(known[rank % len(known)], rank // len(known)) for rank in range(run.world)])
    length_s = np.median([one.length_s for one in run.ranks], axis=0)
    return steps.Steps(np.maximum(length_s, compute_s.max(axis=1)), compute_s, None, run.world)


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0


def _notes(run: Run, hidden: float, protocol: str, link: Link | None) -> list[str]:
    def mean_ms(field: str) -> float:
        return float(np.mean([getattr(one, field) for one in run.ranks])) * 1e3

    notes = [
        f"{len(run.ranks)} of {run.world} rank{'s' * (run.world > 1)}, {len(run.ranks[0].steps)} steps of {mean_ms('length_s'):.4g} ms: "
        f"computing {mean_ms('compute_s'):.4g} ms, collectives {mean_ms('library_s'):.4g} ms, {hidden:.0%} of them hidden by computing"
    ]
    if link:
        notes.append(f"a ring takes as long as the allreduces on a link of {told(link)}")
    if run.world > 1:
        notes.append(
            f"simulate with --protocol {protocol}{' --set algorithm=ring' * bool(link)}, each rank on a host of its own"
        )
    if len(run.ranks) < run.world:
        notes.append("ranks without a trace are taken to be like the others; collectives include waiting for them")
    if device := run.ranks[0].device:
        notes.append(f"computing is of {device}, with copies and updates, which are kernels too")
    return notes
