"""A profile from Horovod's own timeline of a run: rank 0's computing between reductions, and the cost of a reduction."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np

from calibration import algorithms, checks
from calibration.estimators import lines
from calibration.evidence import factors
from calibration.importers.about import About
from calibration.importers.horovod_timeline import Reduction, Timeline, read
from calibration.profiles import FREE
from calibration.seating import OPTION
from calibration.timeline_costs import Learned, computed_s, item_bytes, learned, step_s
from sim import protocols
from sim.base.errors import WrongSetting
from sim.job.scenario import Scenario
from sim.model import workload as workloads
from sim.model.costs import Costs, Line
from sim.model.sizes import ITEM_BYTES
from sim.model.workload import Workload
from sim.platform.cluster import ASSUMED, LOCAL, UNCOUNTED, Candidate, Cluster, Host, Link, Model, Provenance

CORES = 2  # cores of each rank: one computes, and Horovod's thread has the other
MOST = 10**6  # ranks, and samples of a batch
PROTOCOL, SETTINGS = "horovod", ("algorithm=ring",)
STEPS, WITHIN_S, MOST_PLAYED = 20, 3.0, 256  # to simulate the run again, of so many ranks at most
OTHERS = 0.01  # share of a step's bytes that may be averaged metrics, and no gradients


def profile(
    path: str, name: str, workload: str, ranks: int | None = None, batch: int | None = None, each: int | None = None
) -> Cluster:
    """The cluster that a timeline is of, with hosts for its ranks, and for as many more as may be asked for.

    The first step is left out: ranks connect in it.

    Args:
        workload: whose gradients it reduced: a name, or a TOML file.
        ranks: of the run; as many as marked the first negotiations if None.
        batch: samples of each rank and step; the workload's if None.
        each: ranks of a host; one if None.

    Raises:
        WrongSetting: no timeline, or too short; one of another workload; ranks or a batch that cannot be.
        RunFailed: numbers to which no costs fit.
    """
    with checks.fitting(Path(path).name):
        return _profile(path, name, workload, ranks, batch, each)


def _profile(path: str, name: str, workload: str, ranks: int | None, batch: int | None, each: int | None) -> Cluster:
    trained, timeline = workloads.read(workload), read(path)
    ranks, each = _placed(timeline, ranks, batch, each)
    about = About(batch=batch)
    batch = about.batch_of(trained)
    reductions, kept, seconds, whole_s, going = _steps(timeline, trained, path)
    found = learned(kept, ranks, each)
    notes = (*_notes(kept, batch, going), *_left_out(timeline, reductions), *about.batch_note(trained))
    made = Cluster(
        name=name,
        hosts=(Host(name="rank" if each == 1 else "host", count=UNCOUNTED, cores=CORES * each, slots=each),),
        **_links(found.links["ring"], ranks, each),
        costs={trained.name: _costs(kept, found, seconds[going], batch)},
        provenance=_provenance(path, trained, batch, found, (ranks, each), notes),
    )
    return _checked(made, trained, ranks, batch, float(np.mean(whole_s[going])))


class Steps(NamedTuple):
    """The steps of a timeline.

    Args:
        reductions, kept: of all whole steps, and without the first.
        seconds, whole_s: of computing, and of whole steps; shape (steps,).
        going: those that are no pauses.
    """

    reductions: list[Reduction]
    kept: list[Reduction]
    seconds: np.ndarray
    whole_s: np.ndarray
    going: np.ndarray


def _steps(timeline: Timeline, trained: Workload, path: str) -> Steps:
    reductions = _whole_steps(timeline.reductions)
    kept = [one for one in reductions if one.step > 0]
    seconds, whole_s = computed_s(reductions), step_s(reductions)
    whole_s, seconds = whole_s[seconds > 0], seconds[seconds > 0]
    if not len(seconds):
        raise WrongSetting("timeline", path, "one of two steps at least")
    _check_workload(trained, kept, trained.name)
    return Steps(reductions, kept, seconds, whole_s, seconds <= lines.STALL * np.median(seconds))


def measured(path: str, about: About, profile: Cluster) -> tuple[Scenario, float]:
    """The job that a timeline is of, on a profile's hosts, and the mean seconds of its steps.

    Raises:
        WrongSetting: see `profile`; or more ranks than the hosts take.
    """
    trained, timeline = workloads.read(about.workload), read(path)
    ranks, _ = _placed(timeline, about.ranks, about.batch, None)
    found = _steps(timeline, trained, path)
    return _job(profile, trained, ranks, about.batch_of(trained)), float(np.mean(found.whole_s[found.going]))


def _job(made: Cluster, trained: Workload, ranks: int, batch: int) -> Scenario:
    return Scenario(protocols.make(PROTOCOL, SETTINGS), trained, ranks, STEPS, 1, batch, made)


def _placed(timeline: Timeline, ranks: int | None, batch: int | None, each: int | None) -> tuple[int, int]:
    """The number of ranks, and of those on a host.

    Raises:
        WrongSetting: numbers that cannot be.
    """
    for option, value in (("--ranks", ranks), ("--batch", batch)):
        if value is not None and not 1 <= value <= MOST:
            raise WrongSetting(option, value, f"an integer from 1 to {MOST}")
    ranks, each = timeline.ranks if ranks is None else ranks, 1 if each is None else each
    if each < 1 or ranks % each:
        raise WrongSetting(OPTION, each, f"a number that divides the {ranks} ranks")
    return ranks, each


def _costs(reductions: list[Reduction], found: Learned, seconds: np.ndarray, batch: int) -> Costs:
    """Of rank 0, which computed for so many seconds in each step."""
    mean_s, each_bytes = float(np.mean(seconds)), item_bytes(reductions)
    return Costs(
        compute=Line(slope_s=mean_s / batch),
        pack=Line(slope_s=found.copy_s * each_bytes / ITEM_BYTES),
        item_bytes=each_bytes,
        noise=factors.law(seconds / mean_s),
    )


def _provenance(
    path: str, trained: Workload, batch: int, found: Learned, placed: tuple[int, int], notes: tuple[str, ...]
) -> Provenance:
    ranks, each = placed
    weights = algorithms.weights(dict.fromkeys(found.links, 0.0), 0)
    return Provenance(
        traces=(Path(path).name,),
        made=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        notes=(*notes, *_seated(ranks, each), algorithms.note(weights, 0)),
        models={trained.name: Model.fitted(trained, batch)},
        protocol=PROTOCOL,
        settings=SETTINGS,
        workers=ranks,
        hosts=ranks // each,
        links_measured=ranks > each,
        local_measured=ranks == each > 1,
        algorithms={
            one: Candidate(weight=weights[one], **_links(link, ranks, each)) for one, link in found.links.items()
        },
    )


def _links(found: Link, ranks: int, each: int) -> dict[str, Link]:
    """The links between hosts and within them, of which reductions tell one."""
    if ranks == each:
        return {"network": ASSUMED, "local": found}
    return {"network": found, "local": LOCAL if each == 1 else FREE}


def _seated(ranks: int, each: int) -> list[str]:
    if each == 1:
        return []
    if ranks == each:
        return ["all ranks on one host: the link is that within it, and the network is taken as the usual one"]
    return [
        f"{each} ranks on each of {ranks // each} hosts: the link is that between them, and that within is taken as free"
    ]


def _checked(made: Cluster, trained: Workload, ranks: int, batch: int, step_s: float) -> Cluster:
    """The profile with a note on how far the job is off that it was made of, when it is simulated."""
    from sim.simulation import simulate

    if ranks > MOST_PLAYED:
        return made
    again_s = float(simulate(_job(made, trained, ranks, batch), replications=1, within_s=WITHIN_S).step_s.mean())
    said = f"simulated, such a step takes {again_s * 1e3:.4g} ms, {again_s / step_s - 1:+.1%} of the {step_s * 1e3:.4g} ms in the timeline"
    assert made.provenance is not None  # it was made above
    notes = (*made.provenance.notes, said)
    return made.model_copy(update={"provenance": made.provenance.model_copy(update={"notes": notes})})


def _left_out(timeline: Timeline, reductions: list[Reduction]) -> list[str]:
    """What is in no cost, in lines."""
    first = sum(one.step == 0 for one in reductions)
    notes = [f"the first step left out, {_reductions(first)}: ranks connect in it"]
    listed = ", ".join(f"{name} {seconds * 1e3:.4g} ms" for name, seconds in timeline.other_s.items() if seconds)
    if listed:
        notes.append(f"activities in no cost, of {len(timeline.reductions)} reductions together: {listed}")
    if timeline.without_tensor:
        notes.append(f"{_reductions(timeline.without_tensor)} left out, which ended without a tensor")
    if cut := len(timeline.reductions) - len(reductions):
        notes.append(f"{_reductions(cut)} of the last step left out: the timeline was cut within it")
    if item_bytes(reductions) != ITEM_BYTES:
        notes.append(
            f"gradients are summed in {item_bytes(reductions):.3g} bytes a number, and not 4: costs.item_bytes of the profile"
        )
    return notes


def _reductions(count: int) -> str:
    return f"{count} reduction{'s' * (count != 1)}"


def _whole_steps(reductions: list[Reduction]) -> list[Reduction]:
    """Without the last step, if it has fewer tensors than the one before: the timeline was cut within it."""
    tensors = Counter[int]()
    for one in reductions:
        tensors[one.step] += one.tensors
    last = max(tensors)
    cut = last > 1 and tensors[last] < tensors[last - 1]
    return [one for one in reductions if not (cut and one.step == last)]


def _check_workload(trained: Workload, reductions: list[Reduction], given: str) -> None:
    steps = {one.step for one in reductions}
    items = sum(one.items for one in reductions) / len(steps)
    if abs(items - trained.parameters) > OTHERS * items:
        allowed = (
            f"a workload of {items:,.0f} parameters, which a step of the timeline reduces; a TOML file as in sim/zoo"
        )
        raise WrongSetting("--workload", f"{given}, of {trained.parameters:,}", allowed)


def _notes(reductions: list[Reduction], batch: int, going: np.ndarray) -> tuple[str, ...]:
    def median(field: str) -> float:
        return float(np.median([getattr(one, field) for one in reductions]))

    said = ", ".join(
        f"{field} {median(field) * 1e3:.3f} ms" for field in ("ready_s", "agreed_s", "copied_s", "moved_s")
    )
    tensors = np.mean([one.tensors for one in reductions])
    pauses = f"; {(~going).sum()} of {len(going)} left out as pauses: above {lines.STALL} times the median" * (
        not going.all()
    )
    return (
        f"{len(reductions)} reductions of {tensors:.1f} tensors, medians: {median('bytes'):,.0f} bytes, {said}",
        "links are a ring's, with what it costs to add up: --set algorithm=ring simulates it",
        f"compute is rank 0's step at batch {batch}, with input, update and sleeps, which a timeline does not separate{pauses}",
    )
