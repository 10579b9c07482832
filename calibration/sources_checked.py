"""What a profile predicts of each source that a fit takes, beside what the source measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from calibration import comparison, fit, nccl_links, timelines, torch_traces
from calibration.comparison import Checked
from calibration.importers import nccl_tests
from calibration.importers.about import About
from calibration.scaling import profiled, replay, table
from calibration.sources import NCCL, PROFILES, SCALING, STEPS, TIMELINE, TORCH, Named, groups
from calibration.torch_traces import Recorded
from sim.base.errors import WrongSetting
from sim.base.progress import each
from sim.model import workload as workloads
from sim.platform.cluster import Cluster
from sim.recording.recorded import WORLDS
from sim.recording.traces import Trace

Of = Callable[[Named], "About"]


def found(
    profile: Cluster, named: Sequence[Named], of: Of, gpus_per_host: int | None = None
) -> tuple[list[Checked], list[str]]:
    """Every job of all sources beside its prediction, and notes.

    Args:
        of: what is known of a source besides it.
        gpus_per_host: of nccl-tests that do not list their ranks.

    Raises:
        WrongSetting: a file that cannot be read, or a run that the profile's cluster cannot have.
    """
    runs = _runs(profile, named, of)
    jobs = each(comparison.jobs(runs), "simulating", label=lambda job: job[0][0])
    checked = [comparison.checked(profile, job) for job in jobs]
    for one in each([one for one in named if one.kind in (SCALING, NCCL)], "simulating", label=str):
        if one.kind == SCALING:
            checked += _of_table(profile, one.path, of(one))
        else:
            checked += _of_tests(profile, one, of(one).ranks, gpus_per_host)
    told = [(name, trace.header.details["notes"]) for name, trace in runs if trace.header.world in WORLDS]
    return checked, [f"{name}: {note}" for name, notes in told for note in notes]


def recorded(named: Sequence[Named], of: Of) -> list[tuple[Named, Recorded]]:
    """The runs of timelines and of torch.profiler's traces, with the source of each, or its first."""
    found = [(one, timelines.recorded(one.path, of(one))) for one in named if one.kind == TIMELINE]
    together = groups(named, TORCH)
    return found + [(one[0], torch_traces.recorded([rank.path for rank in one], of(one[0]))) for one in together]


def _runs(profile: Cluster, named: Sequence[Named], of: Of) -> list[tuple[str, Trace]]:
    """The sources that are runs, by what they are called."""
    runs = []
    for one in named:
        if one.kind not in PROFILES:
            about = _as_fitted(of(one), profile) if one.kind == STEPS else of(one)
            sources = fit.read(one.path, one.kind, about)
            runs += [(source.name if len(sources) > 1 else one.path, source.trace) for source in sources]
    for one, run in recorded(named, lambda one: _as_fitted(of(one), profile)):
        runs.append((str(one), run.trace(torch_traces.protocol_of([run]), None)))
    return runs


def _as_fitted(about: About, profile: Cluster) -> About:
    """What is known of a log, with the protocol of the runs that the profile was fitted on where nobody says another."""
    known = profile.provenance
    if about.protocol or known is None or not known.protocol:
        return about
    given = {one.partition("=")[0] for one in about.settings}
    kept = [one for one in known.settings if one.partition("=")[0] not in given]
    return replace(about, protocol=known.protocol, settings=(*kept, *about.settings))


def _of_table(profile: Cluster, path: str, about: About) -> list[Checked]:
    """The rows of a table of scaling."""
    model, about = workloads.read(about.workload), _as_fitted(about, profile)
    if profile.costs_of(model) is None:
        raise comparison.unknown(profile, model, "--workload")
    rows = replay.some_of(table.read(path))
    if not rows.size:
        allowed = f"rows of at most {replay.MOST_RANKS} GPUs, of equal minibatches"
        raise WrongSetting(f"{path}: rows", "none that is simulated", allowed)
    protocol = about.protocol or profiled.PROTOCOLS[0]
    settings = about.settings or profiled.settings_of(protocol)
    jobs = replay.jobs(profile, model, protocol, settings, rows)
    names = [
        f"{Path(path).name}: {hosts:.0f} x {most:.0f}, batch {batch:.0f}"
        for hosts, most, batch in zip(rows.hosts, rows.most, rows.batch, strict=True)
    ]
    return [comparison.of_step(*one) for one in zip(names, jobs, rows.step_s.tolist(), strict=True)]


def _of_tests(profile: Cluster, one: Named, ranks: int | None, gpus_per_host: int | None) -> list[Checked]:
    """Allreduces of nccl-tests, those of one text and one number of ranks together: seconds of all sizes that are simulated."""
    checked = []
    for test in nccl_tests.read(one.path, ranks, gpus_per_host):
        if test.collective != "all_reduce":
            continue
        measured_s, predicted_s = nccl_links.seconds_of(profile, test, nccl_links.sum_s_per_byte(test))
        if len(measured_s):
            name = f"{Path(one.path).name}: {len(test.hosts)} ranks"
            whole_s, again_s = float(measured_s.sum()), float(predicted_s.sum())
            checked.append(Checked((name,), whole_s, again_s, again_s / whole_s - 1, None, None))
    if not checked:
        allowed = f"all_reduce of at most {nccl_links.MOST_RANKS} ranks"
        raise WrongSetting(f"{one.path}: collectives", "none that is simulated", allowed)
    return checked
