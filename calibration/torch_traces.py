"""A profile from torch.profiler's traces of one run: what ranks computed in each step, what NCCL took, and how much of that was hidden."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np

from calibration import checks, nccl_links, profiles, seating, torch_messages
from calibration.importers import logged_steps, steps
from calibration.importers.about import About
from calibration.importers.torch_events import MOST_RANKS, SOURCE
from calibration.importers.torch_profiler import read
from calibration.profiles import Source
from calibration.torch_messages import Run, Summed
from sim.answers import outcome
from sim.base.errors import WrongSetting
from sim.base.ranges import check_integer
from sim.job import replay
from sim.model import workload as workloads
from sim.model.sizes import ITEM_BYTES
from sim.model.workload import Workload
from sim.platform import catalogue
from sim.platform.cluster import Cluster, Link
from sim.platform.other_sizes import told
from sim.recording.traces import Trace
from sim.simulation import simulate

ENDINGS = (".json", ".json.gz")
HIDDEN = 0.05  # of the library's time: if computing hides more, gradients may be reduced during back-propagation
IDLE = 0.01  # of a step, from which it is said that nothing runs
WITHIN_S = 3.0  # to simulate the run again
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
        return _share(sum(one.hidden_s.sum() for one in ranks), sum(one.library_s.sum() for one in ranks))

    def trace(self, protocol: str, link: Link | None) -> Trace:
        """The steps as the trace of a run of that protocol, on a link if it is known."""
        told_of = _told_of(self, protocol, link)
        return steps.trace_of(
            _logged(self.run), told_of, self.called, measured=self.about.link is None or bool(self.about.tested)
        )


def recorded(paths: Sequence[str], about: About) -> Recorded:
    """The run that traces of some ranks, or of all, are of.

    Args:
        paths: files, one a rank, or folders of them.

    Raises:
        WrongSetting: no such traces, of several runs, of another workload, or of collectives other than allreduce.
    """
    run, trained = run_of(paths, about.ranks), workloads.read(about.workload)
    return Recorded(run, Path(paths[0]).name, about, trained, torch_messages.summed(run, trained))


def profile(paths: Sequence[str], name: str, about: About, each: int | None = None) -> Cluster:
    """The cluster that traces are of, on the link that NCCL's calls took; see `recorded` and `of_runs`."""
    return of_runs([recorded(paths, about)], name, each)


def of_runs(runs: Sequence[Recorded], name: str, each: int | None = None) -> Cluster:
    """The cluster that runs of one model are of, on the link that was given, or that NCCL's calls took.

    Args:
        each: ranks of a host; one if None.

    Raises:
        WrongSetting: no batch, or runs of several numbers of ranks without a link.
        RunFailed: numbers to which no costs fit.
    """
    first, called = runs[0], ", ".join(one.called for one in runs)
    with checks.fitting(called):
        measured = first.about.link is None
        link = first.about.link
        if measured:
            link = torch_messages.link_of([one.run for one in runs], first.trained, [one.gradients for one in runs])
    able = {protocol: _fitted(runs, protocol, link, name, each) for protocol in protocols_of(runs)}
    best = min(able, key=lambda one: abs(_off(*able[one]))) if len(able) > 1 else next(iter(able))
    made, traces = able[best]
    assert made.provenance is not None  # `make` has made one
    told_of = _told_of(first, best, link)
    notes = [note for one, trace in zip(runs, traces, strict=True) for note in _of_run(one, trace, made, told_of, link)]
    notes += [note for note in made.provenance.notes if not measured or not note.startswith("the link was given")]
    measured, apart = measured and link is not None, (each or 1) < max(one.run.world for one in runs)
    return made.known(
        notes=tuple(dict.fromkeys(notes)),
        links_measured=measured and apart,
        local_measured=measured and not apart,
    )


def _of_run(one: Recorded, trace: Trace, made: Cluster, told_of: About, link: Link | None) -> Iterator[str]:
    yield from _notes(one.run, one.hidden, told_of, link if one.about.link is None else None)
    yield from _of_messages(one.run, one.gradients)
    yield from one.about.batch_note(one.trained)
    yield from _again(made, trace, one.run) if one.run.world > 1 else ()


def protocols_of(runs: Sequence[Recorded]) -> tuple[str, ...]:
    """Those that runs may have been of: with some messages hidden, the one whose simulation is nearer to the traces is taken."""
    if runs[0].about.protocol:
        return (runs[0].about.protocol,)
    return ("ddp", "allreduce") if max(one.hidden for one in runs) > HIDDEN else ("allreduce",)


def _fitted(
    runs: Sequence[Recorded], protocol: str, link: Link | None, name: str, each: int | None
) -> tuple[Cluster, list[Trace]]:
    """The profile, and the steps as traces of runs of that protocol."""
    traces, item_bytes = [one.trace(protocol, link) for one in runs], runs[0].gradients.item_bytes
    sources = [Source(one.called, trace) for one, trace in zip(runs, traces, strict=True)]
    made = profiles.make(sources, name, network=link, item_bytes=item_bytes)
    return placed(made, runs[0].run.ranks[0].device, each), traces


def placed(made: Cluster, device: str, each: int | None) -> Cluster:
    """The profile with `each` of its ranks on a host, and a GPU for each; ranks without a device are on CPUs."""
    gpu = catalogue.gpu_of(device)
    made = seating.seated(made, each, nccl_links.inner_of(gpu))
    here = [host.model_copy(update={"gpus": host.slots, "gpu": gpu}) for host in made.hosts]
    return made.model_copy(update={"hosts": tuple(here)}) if device else made


def _told_of(one: Recorded, protocol: str, link: Link | None) -> About:
    """What the user and the traces say of a run. Libraries of GPUs sum by rings, unless the user says otherwise."""
    said = {setting.partition("=")[0] for setting in one.about.settings}
    more = [ALGORITHM] * (protocol in ("ddp", "horovod", "allreduce"))
    if protocol == "ddp":  # gradients are summed one by one where no call says its bytes
        sizes = [call.bytes for call in one.run.calls() if one.run.sums(call) and call.bytes]
        more.append(f"bucket_mb={median(sizes) / 2**20:.6g}" if sizes else "bucket_mb=0")
    settings = (*one.about.settings, *(setting for setting in more if setting.partition("=")[0] not in said))
    return replace(one.about, protocol=protocol, settings=settings, link=link, item_bytes=one.gradients.item_bytes)


def _again_s(made: Cluster, trace: Trace) -> float:
    """Seconds of a step of the same job, simulated with the profile."""
    return float(simulate(replay.scenario_of(trace.header, made), replications=1, within_s=WITHIN_S).step_s.mean())


def _off(made: Cluster, traces: Sequence[Trace]) -> float:
    """Of the simulated steps, relative to those of the traces; the root of the mean square."""
    off = [_again_s(made, trace) / float(outcome.of_trace(trace).step_s.mean()) - 1 for trace in traces]
    return float(np.sqrt(np.mean(np.square(off))))


def _again(made: Cluster, trace: Trace, run: Run) -> list[str]:
    """How far the same job, simulated with the profile, is off, and how much of it is fitted."""
    job, again_s = replay.scenario_of(trace.header, made), _again_s(made, trace)
    traced_s = float(outcome.of_trace(trace).step_s.mean())
    left_s = job.costs.update(job.workload.message_bytes)
    busy_s = float(np.mean([one.length_s - one.idle_s for one in run.ranks]))
    said = f"simulated, such a step takes {again_s * 1e3:.4g} ms, {again_s / traced_s - 1:+.1%}"
    if left_s < IDLE * traced_s:
        return [f"{said}: how computing hides messages is modelled"]
    return [
        f"{said}, of which {left_s * 1e3:.4g} ms were fitted to the rest of a step; without these, computing and messages take "
        f"{(again_s - left_s) * 1e3:.4g} ms, and {busy_s * 1e3:.4g} ms in the trace"
    ]


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


def _logged(run: Run) -> steps.Steps:
    """The steps as a table. Ranks without a trace are taken to be like the others, at other moments."""
    compute_s = np.column_stack([one.compute_s for one in run.ranks])
    length_s = np.median([one.length_s for one in run.ranks], axis=0)
    known = steps.Steps(np.maximum(length_s, compute_s.max(axis=1)), compute_s, None, len(run.ranks))
    return logged_steps.of_all(known, run.world)


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0


def _notes(run: Run, hidden: float, said: About, link: Link | None) -> list[str]:
    def mean_ms(field: str) -> float:
        return float(np.mean([getattr(one, field)[1:] for one in run.ranks])) * 1e3

    notes = [
        f"{len(run.ranks)} of {run.world} rank{'s' * (run.world > 1)}, {len(run.ranks[0].steps)} steps of {mean_ms('length_s'):.4g} ms "
        "after the first: "
        f"computing {mean_ms('compute_s'):.4g} ms, collectives {mean_ms('library_s'):.4g} ms, {hidden:.0%} of them hidden by computing",
        *dict.fromkeys(note for one in run.ranks for note in one.notes),
        f"the first step, {np.mean([one.length_s[0] for one in run.ranks]) * 1e3:.4g} ms, is left out of the costs, as warm-up",
    ]
    device = run.ranks[0].device
    if mean_ms("idle_s") > IDLE * mean_ms("length_s"):
        what = f"nothing runs on {device}" if device else "no operator runs"
        notes.append(
            f"{mean_ms('idle_s'):.4g} ms of a step {what} (input, Python, launches): taken as update, the same for every batch"
        )
    if link:
        notes.append(f"a ring takes as long as the allreduces on a link of {told(link)}")
    if run.world > 1:
        settings = "".join(f" --set {one}" for one in said.settings)
        notes.append(f"simulate with --protocol {said.protocol}{settings}")
    if len(run.ranks) < run.world:
        notes.append("ranks without a trace are taken to be like the others; collectives include waiting for them")
    if device:
        notes.append(f"computing is of {device}, with copies and updates, which are kernels too")
    return notes


def _of_messages(run: Run, gradients: Summed) -> list[str]:
    """Of what the library moved, what is counted otherwise."""
    notes = []
    if run.world > 1 and (others := run.others_s()):
        listed = ", ".join(f"{name} {seconds * 1e3:.4g} ms" for name, seconds in others.items())
        notes.append(
            f"collectives that no protocol here makes: {listed} a step, taken as update, whatever the number of ranks"
        )
    if run.world > 1 and not any(run.sums(call) for call in run.calls()):
        notes.append("no allreduce in the traces: links are free")
    elif run.world > 1 and gradients.bytes is None:
        notes.append("the traces do not say the bytes of allreduces: taken as the workload's, in float32")
    if gradients.item_bytes != ITEM_BYTES:
        notes.append(
            f"gradients are summed in {gradients.item_bytes:.3g} bytes a number, and not 4: costs.item_bytes of the profile"
        )
    return notes
