"""A search for the best configurations: the most promising one is always examined next.

A candidate is promising by a bound at first, then by a few steps of one run, then by more. All candidates have the same random
numbers. With a bound this is A* (Hart, Nilsson, Raphael, 1968): it finds the result of simulating everything, up to ties. Effort that
grows for the remaining candidates is successive halving (Jamieson and Talwalkar, AISTATS 2016).
"""

from __future__ import annotations

import math
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import fields, replace
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

from sim.answers import bounds
from sim.base.errors import WrongSetting
from sim.job import gpu_memory
from sim.plans.candidates import EFFORTS, WHOLE, Candidate
from sim.plans.configurations import Configuration
from sim.plans.until import Work

if TYPE_CHECKING:
    from sim.job.scenario import Scenario
    from sim.plans.configurations import Room
    from sim.plans.simulating import Simulating
    from sim.platform.gpu import Gpu

BATCH = 32  # candidates for each process that are simulated together
TOO_SLOW = "misses the target, however well its messages travel (closed form)"
TOO_DEAR = "costs more an hour than allowed"
MISSED = "misses the target when simulated"
NO_TIME = "not looked at, because time ran out; --within SECONDS allows more"
FAILED = "could not be simulated"
Key = Callable[[Candidate], tuple[float, ...]]
KIND = attrgetter("configuration.host", "configuration.offer")
but_batch: Callable[[Configuration], tuple] = attrgetter(
    *(one.name for one in fields(Configuration) if one.name != "batch")
)


def screened(room: Room, until_s: float = math.inf) -> tuple[list[Candidate], Counter[str]]:
    """Every configuration that can be, with its bound; how many cannot be, by why.

    Args:
        until_s: by time.monotonic, after which those that follow are not looked at, if any was found.
    """
    from scipy.special import ndtri

    question = room.question
    found: list[Candidate] = []
    unlikely = float(ndtri(question.probability))
    thrown: Counter[str] = Counter()
    too_large: dict[Gpu, list[float]] = defaultdict(list)
    for _, alike in groupby(room.all, but_batch):
        several = list(alike)
        if found and time.monotonic() > until_s:
            thrown[NO_TIME] += len(several)
            continue
        if question.usd_per_hour and several[0].usd_per_hour > question.usd_per_hour:
            thrown[TOO_DEAR] += len(several)
            continue
        scenario = _of_ends(room, several)
        for one in several:
            try:
                job = scenario or room.scenario(one)
            except WrongSetting as why:
                thrown[f"cannot be: {why.setting}: {why.allowed}"] += 1
                continue
            memory = gpu_memory.of_job(job, one.batch)
            if memory and memory.share > 1:
                too_large[memory.gpu].append(memory.bytes)
                continue
            least, error = bounds.least(job, one.batch), job.costs.error if job.on_named_gpus else 0.0
            at_most = least.samples_per_s()
            likely = least.samples_per_s(math.exp(error * unlikely)) if error else at_most
            work = Work.of(replace(job, batch=one.batch), room.until) if room.until else None
            found.append(Candidate(one, question, job.workers, least, error, at_most, likely, work=work))
    return found, thrown + _of_memory(too_large, room.workload.optimiser)


def _of_memory(too_large: dict[Gpu, list[float]], optimiser: str) -> Counter[str]:
    """How many configurations do not fit, by kind of GPU."""
    found: Counter[str] = Counter()
    for gpu, sizes in too_large.items():
        takes = " to ".join(dict.fromkeys(map(gpu_memory.gigabytes, (min(sizes), max(sizes)))))
        fit = f"do not fit the {gpu_memory.gigabytes(gpu.memory_bytes)} of {gpu.name}"
        found[f"{fit}: a worker takes {takes} (optimiser {optimiser})"] = len(sizes)
    return found


def _of_ends(room: Room, several: list[Configuration]) -> Scenario | None:
    """A job that stands for all of these, which differ by their batch alone; None if there is none with the least or the most."""
    ordered = sorted(several, key=lambda one: one.batch)
    try:
        most = room.scenario(ordered[-1])
        if hasattr(most.protocol, "partitions"):  # which may be more than the samples of a small batch
            room.scenario(ordered[0])
    except WrongSetting:
        return None
    return most


def best_first(
    candidates: Iterable[Candidate],
    key: Key,
    keep: int,
    simulating: Simulating,
    hopeful: Callable[[Candidate], bool] = lambda one: True,
) -> list[Candidate]:
    """The candidates that are best after the whole effort, best first; fewer than `keep` if there are not more, or no time.

    Args:
        key: of a candidate, as it is known now.
        hopeful: whether a candidate, as it is known now, may be an answer.
    """
    pending = sorted(filter(hopeful, candidates), key=key)
    found: list[Candidate] = []
    while pending and len(found) < keep:
        if pending[0].effort >= WHOLE:
            found.append(pending.pop(0))
            continue
        if not simulating.left_s:
            break
        closest = _closest(pending, keep - len(found), simulating.pool.processes)
        simulating.simulate(closest, closest[0].effort + 1)
        pending = sorted((one for one in pending if not one.problem and hopeful(one)), key=key)
    return found


def _closest(pending: list[Candidate], wanted: int, processes: int) -> list[Candidate]:
    """The first candidates that still need simulation, all of one effort: more of them if it is cheap."""
    effort = next(one.effort for one in pending if one.effort < WHOLE)
    size = max(wanted, BATCH * processes // 4**effort)
    return [one for one in pending[: size + wanted] if one.effort == effort][:size]


def front(
    candidates: list[Candidate], axes: Callable[[Candidate], tuple[float, float]], simulating: Simulating, until: int
) -> list[Candidate]:
    """Candidates that no other one beats in both axes, the first axis ascending, simulated until all have had this effort."""
    while True:
        found = pareto((one for one in candidates if not one.problem), axes)
        batch = [one for one in found if one.effort < until]
        if not batch or not simulating.left_s:
            return pareto((one for one in candidates if one.figures and not one.problem), axes)
        for effort in sorted({one.effort for one in batch}):
            simulating.simulate([one for one in batch if one.effort == effort], effort + 1)


def of_each_kind(candidates: Iterable[Candidate], hoped: Key, known: Key, simulating: Simulating) -> list[Candidate]:
    """The best by what is known of each kind of host and way of renting it, once the most hopeful was simulated, or time is over."""
    kinds: dict[Hashable, list[Candidate]] = defaultdict(list)
    for one in candidates:
        kinds[KIND(one)].append(one)
    for several in kinds.values():
        best_first(several, hoped, 1, simulating)
    simulated = ([one for one in several if one.figures] for several in kinds.values())
    return [min(several, key=known) for several in simulated if several]


def pareto(candidates: Iterable[Candidate], axes: Callable[[Candidate], tuple[float, float]]) -> list[Candidate]:
    """Those that no other one beats in both axes, by the first."""
    found: list[Candidate] = []
    least = float("inf")
    for one in sorted(candidates, key=axes):
        if axes(one)[1] < least:
            found.append(one)
            least = axes(one)[1]
    return found


def thrown_out(candidates: Iterable[Candidate], best: list[Candidate]) -> Counter[str]:
    """Why each of the others is not among the best."""
    chosen = set(map(id, best))
    found: Counter[str] = Counter()
    for one in candidates:
        if id(one) in chosen:
            continue
        if one.problem:
            found[f"{FAILED}: {one.problem}"] += 1
        elif not one.may_meet:
            found[MISSED if one.figures else TOO_SLOW] += 1
        else:
            found[f"worse than the best ({EFFORTS[one.effort].name})"] += 1
    return found
