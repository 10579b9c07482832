"""The run that Horovod's own timeline is of: rank 0's computing between reductions, and what the library took.

It is fitted and checked as a run that torch.profiler has recorded (calibration.torch_traces). A timeline does not separate input, updates
and sleeps from computing; what a step has beside computing and messages (negotiation, cycles, copies) is taken as update.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np

from calibration import torch_messages
from calibration.estimators import lines
from calibration.importers.about import About
from calibration.importers.horovod_timeline import Reduction, Timeline, read
from calibration.importers.torch_profiler import ALLREDUCE, MOST_RANKS, Call, Ranked
from calibration.torch_messages import Run
from calibration.torch_traces import Recorded
from sim.base.errors import WrongSetting
from sim.base.ranges import check_integer
from sim.model import workload as workloads

PROTOCOL = "horovod"


def recorded(path: str, about: About) -> Recorded:
    """The run of a timeline, by its steps that begin and end there.

    Raises:
        WrongSetting: no timeline, or too short; one of another workload; a number of ranks that cannot be.
    """
    trained, timeline = workloads.read(about.workload), read(path)
    ranks = timeline.ranks if about.ranks is None else about.ranks
    check_integer("--ranks", ranks, 2, MOST_RANKS)  # one rank has nothing to sum
    of_step = _steps(timeline.reductions)
    had_s, ended_s = (
        {step: max(getattr(one, name) for one in of) for step, of in of_step.items()} for name in ("had_s", "ended_s")
    )
    steps = [step for step in of_step if had_s[step] > ended_s.get(step - 1, np.inf)]
    if len(steps) < 2:
        raise WrongSetting("timeline", path, "one of three steps at least")
    compute_s = np.array([had_s[step] - ended_s[step - 1] for step in steps])
    going = compute_s <= lines.STALL * np.median(compute_s)
    steps, compute_s, notes = np.array(steps)[going].tolist(), compute_s[going], _notes(timeline, of_step)
    if not going.all():
        notes.append(f"{(~going).sum()} of {len(going)} steps left out as pauses: above {lines.STALL} times the median")
    hidden_s = [sum(one.moved_s for one in of_step[step] if one.ended_s <= had_s[step]) for step in steps]
    of_rank = Ranked(
        0,
        ranks,
        tuple(steps),
        length_s=np.array([ended_s[step] - ended_s[step - 1] for step in steps]),
        compute_s=compute_s,
        library_s=np.array([sum(one.moved_s for one in of_step[step]) for step in steps]),
        hidden_s=np.array(hidden_s),
        idle_s=np.zeros(len(steps)),
        calls=tuple(
            tuple(Call(ALLREDUCE, one.bytes, one.bytes // one.items, 0, one.moved_s) for one in of_step[step])
            for step in steps
        ),
        device="",
        notes=tuple(notes),
    )
    # Rank 0 knows first what is summed, and tells the others along a tree.
    run = Run([of_rank], ranks, int(np.log2(ranks)))
    return Recorded(
        run, Path(path).name, replace(about, protocol=PROTOCOL), trained, torch_messages.summed(run, trained)
    )


def _steps(reductions: list[Reduction]) -> dict[int, list[Reduction]]:
    """The reductions of each step, without the last if it has fewer tensors than the one before: the timeline was cut within it."""
    found: dict[int, list[Reduction]] = defaultdict(list)
    for one in reductions:
        found[one.step].append(one)
    before, last = ([0, 0] + [sum(one.tensors for one in of) for of in found.values()])[-2:]
    if last < before:
        found.popitem()
    return dict(found)


def _notes(timeline: Timeline, of_step: dict[int, list[Reduction]]) -> list[str]:
    """How the timeline was read, and what is in no cost, in lines."""
    kept = [one for of in of_step.values() for one in of]
    moved_ms, tensors = 1e3 * np.median([one.moved_s for one in kept]), np.mean([one.tensors for one in kept])
    notes = [f"{len(kept)} reductions of {tensors:.1f} tensors, {moved_ms:.3f} ms in the median"]
    if others := ", ".join(f"{name} {1e3 * seconds:.4g} ms" for name, seconds in timeline.other_s.items() if seconds):
        notes.append(f"activities in no cost, of {len(timeline.reductions)} reductions together: {others}")
    for count, why in (
        (timeline.without_tensor, "which ended without a tensor"),
        (len(timeline.reductions) - len(kept), "of the last step: the timeline was cut within it"),
    ):
        notes += [f"{count} reduction{'s' * (count > 1)} left out, {why}"] * (count > 0)
    return notes
