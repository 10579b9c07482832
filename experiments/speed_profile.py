"""Where each microsecond of a worker-step goes in the event world: the profile of one run, by what the code does."""

from __future__ import annotations

import cProfile
import pstats
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from experiments.engines import ENGINES, FURTHER, ours, protocols
from experiments.engines.job import Job
from experiments.kit import pages

SIZES = (10, 100, 1_000, 10_000)  # workers
PARTS = {  # the first that a file's path contains decides; what calls a built-in function has its time
    "draw random numbers": ("sim/randomness", "sim/laws/", "event/ranks/random_streams", "event/ranks/drawn", "numpy/"),
    "make ranks, hosts, scenario": (
        "sim/job/",
        "sim/platform/",
        "event/machines/machine",
        "event/ranks/amounts",
        "event/assembly",
        "event/world",
        "pydantic",
    ),
    "SimPy's queue": ("simpy/", "event/clock"),
    "messages reach ports in order": ("event/machines/port", "event/machines/streams"),
    "messages leave, pass ports, are taken": ("event/machines/", "event/ranks/message", "event/ranks/letters"),
    "compute, add, take up, update, pull, push": (
        "event/ranks/computing",
        "event/ranks/summing",
        "event/ranks/layers",
    ),
    "texts and their generators": ("sim/protocols/", "sim/verbs/", "event/ranks/thread", "event/ranks/rank"),
    "steps, waits and the outcome": ("event/recorder", "event/meter", "sim/answers/"),
}
ELSE = "everything else"


def part_of(file: str, function: str) -> str:
    """What a function does, by its file, or because it makes an object."""
    place = f"{file} {function}"
    if function == "__init__" and "sim/event" in file and "message" not in file:
        return "make ranks, hosts, scenario"
    return next((part for part, names in PARTS.items() if any(name in place for name in names)), ELSE)


class Profile(NamedTuple):
    """What one run does.

    Args:
        shares: of its time, by part; they sum to 1.
        calls: of Python functions.
        pushes: onto heaps: SimPy's queue, and those of messages on their way to a port.
    """

    shares: dict[str, float]
    calls: int
    pushes: int


def profile(run: Callable[[], object]) -> Profile:
    """The profile of a run."""
    profiler = cProfile.Profile()
    profiler.runcall(run)
    seconds: Counter[str] = Counter()
    calls = pushes = 0
    for (file, _, function), (_, made, own_s, _, callers) in pstats.Stats(profiler).stats.items():
        if file != "~":
            seconds[part_of(file, function)] += own_s
            calls += made
        elif "heappush" in function:
            pushes += made
        for (caller, _, name), (_, _, its_s, _) in callers.items() if file == "~" else ():
            seconds[part_of(caller, name)] += its_s
    return Profile({part: s / seconds.total() for part, s in seconds.items()}, calls, pushes)


def column(run: Callable[[Job], object], job: Job) -> list[str]:
    """Microseconds of a core for each worker-step, by part and in all, calls and pushes of one.

    The profiler's own time is taken out in proportion.
    """
    worker_steps = job.workers * job.steps
    run(replace(job, workers=2, steps=2))
    begun_s = time.process_time()
    run(job)
    each_us = (time.process_time() - begun_s) / worker_steps * 1e6
    found = profile(lambda: run(replace(job, seed=job.seed + 1)))  # with other random numbers, which are drawn anew
    parts = [f"{found.shares.get(part, 0.0) * each_us:.2f}" for part in (*PARTS, ELSE)]
    return [*parts, f"{each_us:.2f}", f"{found.calls / worker_steps:.1f}", f"{found.pushes / worker_steps:.2f}"]


def columns(seed: int) -> dict[str, Callable[[], list[str]]]:
    """The columns of the table, by heading."""

    def fmb(workers: int) -> list[str]:
        return column(ours.event, Job(workers, ENGINES["event"].steps(workers), seed))

    found: dict[str, Callable[[], list[str]]] = {f"{workers:,}": partial(fmb, workers) for workers in SIZES}
    asked = FURTHER["ps-async"]
    job = Job(asked.workers, asked.steps, seed)
    return found | {f"{job.workers:,}, ps-async": partial(column, protocols.ps_async, job)}


def show(seed: int) -> None:
    """Print the table."""
    found = {heading: made() for heading, made in columns(seed).items()}
    table = pages.table("Event world: microseconds of a worker-step, by workers", "what it does", *found)
    table.columns[0].justify = "left"
    names = (*PARTS, ELSE, "in all", "calls of Python functions", "pushes onto heaps")
    for name, *values in zip(names, *found.values(), strict=True):
        table.add_row(name, *values)
    pages.show(table)
    pages.show(
        "Shares of cProfile's own times, which weigh calls of functions too much, of the seconds of a run without it."
    )
