"""A profile from torch.profiler's traces of one run: what ranks computed in each step, what NCCL took, and how much of that was hidden."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np

from calibration import checks, profiles, seating, torch_messages
from calibration.importers import logged_steps, steps
from calibration.importers.about import About
from calibration.importers.torch_events import MOST_RANKS, SOURCE
from calibration.importers.torch_profiler import read
from calibration.profiles import Source
from calibration.torch_messages import Run, Summed
from sim.base.errors import WrongSetting
from sim.base.ranges import check_integer
from sim.model import workload as workloads
from sim.model.sizes import ITEM_BYTES
from sim.model.workload import Workload
from sim.platform.cluster import Cluster, Link
from sim.platform.other_sizes import told
from sim.recording.traces import Trace

ENDINGS = (".json", ".json.gz")
HIDDEN = 0.05  # of the library's time: if computing hides more, gradients may be reduced during back-propagation
IDLE = 0.01  # of a step, from which it is said that nothing runs
ALGORITHM = "algorithm=ring"


class Recorded(NamedTuple):
    """The traces of one run.

    Args:
        called: its first file.
        about: what they do not say.
    """

    run: Run
    called: str
    about: About
    trained: Workload
    gradients: Summed

    @property
    def hidden(self) -> float:
        """The share of the library's time that computing hides."""
        ranks = self.run.ranks
        whole_s = sum(one.library_s.sum() for one in ranks)
        return sum(one.hidden_s.sum() for one in ranks) / whole_s if whole_s > 0 else 0.0

    def trace(self, protocol: str, link: Link | None) -> Trace:
        """The steps as the trace of a run of that protocol, on a link if it is known."""
        told_of = _told_of(self, protocol, link)
        ranks, measured = self.run.ranks, self.about.link is None or bool(self.about.tested)
        compute_s = np.column_stack([one.compute_s for one in ranks])
        length_s = np.maximum(np.median([one.length_s for one in ranks], axis=0), compute_s.max(axis=1))
        # Ranks without a trace are taken to be like the others, at other moments.
        logged = logged_steps.of_all(steps.Steps(length_s, compute_s, None, len(ranks)), self.run.world)
        return steps.trace_of(logged, told_of, self.called, measured)


def recorded(paths: Sequence[str], about: About) -> Recorded:
    """The run that traces of some ranks, or of all, are of.

    Args:
        paths: files, one a rank, or folders of them.

    Raises:
        WrongSetting: no such traces, of several runs, of another workload, or of collectives other than allreduce.
    """
    run, trained = run_of(paths, about.ranks), workloads.read(about.workload)
    return Recorded(run, Path(paths[0]).name, about, trained, torch_messages.summed(run, trained))


def of_runs(runs: Sequence[Recorded], name: str, each: int | None = None) -> Cluster:
    """The cluster that runs of one model are of, on the link that was given, or that NCCL's calls took.

    Args:
        each: ranks of a host; one if None.

    Raises:
        WrongSetting: no batch, or runs of several numbers of ranks without a link.
        RunFailed: numbers to which no costs fit.
    """
    first, called = runs[0], ", ".join(one.called for one in runs)
    link, protocol = first.about.link, protocol_of(runs)
    with checks.fitting(called):
        taken = link or torch_messages.link_of(runs)
    fitted = None if link else taken
    notes = [tuple(_notes(one, _told_of(one, protocol, taken), fitted)) for one in runs]
    sources = [Source(one.called, one.trace(protocol, taken), of) for one, of in zip(runs, notes, strict=True)]
    made = profiles.make(sources, name, network=taken, item_bytes=first.gradients.item_bytes)
    made = seating.seated(made, each, first.run.ranks[0].device)
    measured, apart = fitted is not None, (each or 1) < max(one.run.world for one in runs)
    return made.known(links_measured=measured and apart, local_measured=measured and not apart)


def protocol_of(runs: Sequence[Recorded]) -> str:
    """The protocol that runs were of: as given, or `ddp` where computing hides messages."""
    return runs[0].about.protocol or ("ddp" if max(one.hidden for one in runs) > HIDDEN else "allreduce")


def _told_of(one: Recorded, protocol: str, link: Link | None) -> About:
    """What the user and the traces say of a run. Libraries of GPUs sum by rings, unless the user says otherwise."""
    said = {setting.partition("=")[0] for setting in one.about.settings}
    more = [ALGORITHM] * (protocol in ("ddp", "horovod", "allreduce"))
    if protocol == "ddp":  # gradients are summed one by one where no call says its bytes
        sizes = [call.bytes for call in one.run.calls() if one.run.sums(call) and call.bytes]
        more.append(f"bucket_mb={median(sizes) / 2**20:.6g}" if sizes else "bucket_mb=0")
    settings = (*one.about.settings, *(setting for setting in more if setting.partition("=")[0] not in said))
    return replace(one.about, protocol=protocol, settings=settings, link=link, item_bytes=one.gradients.item_bytes)


def _files(paths: Sequence[str]) -> list[Path]:
    """The files, of folders those that may be traces."""
    found = []
    for path in map(Path, paths):
        inside = sorted(one for one in path.iterdir() if one.name.endswith(ENDINGS)) if path.is_dir() else [path]
        if not inside:
            raise WrongSetting(SOURCE, str(path), f"a folder with traces, {' or '.join(ENDINGS)}")
        found += inside
    return found


def run_of(paths: Sequence[str], ranks: int | None) -> Run:
    """All traces as those of one run, of files or folders.

    Raises:
        WrongSetting: a rank that is there twice, or traces of other steps, or of other numbers of ranks.
    """
    files = _files(paths)
    found = [read(path) for path in files]
    if ranks is not None:
        check_integer("--ranks", ranks, 1, MOST_RANKS)
    said = {one.world for one in found if one.world is not None} | ({ranks} if ranks else set())
    groups = {call.group for one in found for calls in one.calls for call in calls if call.group}
    said = said or ({max(groups)} if groups else set())
    if not said and len(found) == 1 and (found[0].rank or found[0].library_s.any()):
        raise WrongSetting("--ranks", None, f"a number: {files[0]} does not say of how many ranks it is")
    world = said.pop() if len(said) == 1 else len(found)
    if said:
        raise WrongSetting("--ranks", " and ".join(map(str, sorted(said))), "one number: traces of one run")
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


def _notes(one: Recorded, told_of: About, link: Link | None) -> Iterator[str]:
    """How a run was read, and what is counted otherwise, in lines.

    Args:
        link: that its calls took, if it was not given.
    """
    run, device = one.run, one.run.ranks[0].device

    def mean_ms(field: str) -> float:
        return float(np.mean([getattr(of_rank, field)[1:] for of_rank in run.ranks])) * 1e3

    yield (
        f"{len(run.ranks)} of {run.world} rank{'s' * (run.world > 1)}, {len(run.ranks[0].steps)} steps of {mean_ms('length_s'):.4g} ms "
        "after the first: "
        f"computing {mean_ms('compute_s'):.4g} ms, collectives {mean_ms('library_s'):.4g} ms, {one.hidden:.0%} of them hidden by computing"
    )
    yield from (note for of_rank in run.ranks for note in of_rank.notes)
    if mean_ms("idle_s") > IDLE * mean_ms("length_s"):
        what = f"nothing runs on {device}" if device else "no operator runs"
        yield f"{mean_ms('idle_s'):.4g} ms of a step {what} (input, Python, launches): taken as update, the same for every batch"
    if link:
        yield f"a ring takes as long as the allreduces on a link of {told(link)}"
    if run.world > 1:
        yield f"simulate with --protocol {told_of.protocol}{''.join(f' --set {said}' for said in told_of.settings)}"
        yield from _of_messages(run, one.gradients)
    if len(run.ranks) < run.world:
        yield "ranks without a trace are taken to be like the others; collectives include waiting for them"
    if one.gradients.item_bytes != ITEM_BYTES:
        yield f"gradients are summed in {one.gradients.item_bytes:.3g} bytes a number, and not 4: costs.item_bytes of the profile"
    yield from one.about.batch_note(one.trained)


def _of_messages(run: Run, gradients: Summed) -> Iterator[str]:
    """Of what the library moved, what is counted otherwise."""
    if others := run.others_s():
        listed = ", ".join(f"{name} {seconds * 1e3:.4g} ms" for name, seconds in others.items())
        yield f"collectives that no protocol here makes: {listed} a step, taken as update, whatever the number of ranks"
    if not any(run.sums(call) for call in run.calls()):
        yield "no allreduce in the traces: links are free"
    elif gradients.bytes is None:
        yield "the traces do not say the bytes of allreduces: taken as the workload's, in float32"
