"""Where each microsecond of a worker-step goes in the event world: the profile of one run, by what the code does."""

from __future__ import annotations

import cProfile
import pstats
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from experiments.engines import ENGINES, ours
from experiments.engines.job import Job
from experiments.kit import pages

SIZES = (10, 100, 1_000, 10_000)
PARTS = {  # the first that a file's path contains decides; what calls a built-in function has its time
    "draw random numbers": ("sim/randomness", "sim/laws/", "event/ranks/random_streams", "event/ranks/drawn", "numpy/"),
    "make ranks, hosts, scenario": (
        "sim/job/",
        "sim/platform/",
        "event/machines/machine",
        "event/ranks/amounts",
        "event/world",
        "pydantic",
    ),
    "SimPy's queue": ("simpy/", "event/clock"),
    "messages reach ports in order": ("event/arrivals", "event/machines/port"),
    "messages leave, pass ports, are taken": ("event/machines/", "event/ranks/message", "event/ranks/letters"),
    "compute, add, take up, update": ("event/ranks/computing", "event/ranks/summing", "event/ranks/layers"),
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


def profile(run: Callable[[], object]) -> dict[str, float]:
    """Shares of a run's time, by part; they sum to 1."""
    profiler = cProfile.Profile()
    profiler.runcall(run)
    seconds: Counter[str] = Counter()
    for (file, _, function), (_, _, own_s, _, callers) in pstats.Stats(profiler).stats.items():
        if file != "~":
            seconds[part_of(file, function)] += own_s
        for (caller, _, name), (_, _, its_s, _) in callers.items() if file == "~" else ():
            seconds[part_of(caller, name)] += its_s
    return {part: s / seconds.total() for part, s in seconds.items()}


def microseconds(job: Job) -> dict[str, float]:
    """Microseconds of a core for each worker-step, by part; the profiler's own time is taken out in proportion."""
    ours.event(replace(job, workers=2, steps=2))
    begun_s = time.process_time()
    ours.event(job)
    each_us = (time.process_time() - begun_s) / (job.workers * job.steps) * 1e6
    shares = profile(
        lambda: ours.event(replace(job, seed=job.seed + 1))
    )  # with other random numbers, which are drawn anew
    return {part: share * each_us for part, share in shares.items()}


def show(seed: int) -> None:
    """Print the table."""
    found = {workers: microseconds(Job(workers, ENGINES["event"].steps(workers), seed)) for workers in SIZES}
    headings = [f"{workers:,}" for workers in SIZES]
    table = pages.table("Event world: microseconds of a worker-step, by workers", "what it does", *headings)
    table.columns[0].justify = "left"
    for part in (*PARTS, ELSE):
        table.add_row(part, *(f"{one.get(part, 0.0):.2f}" for one in found.values()))
    table.add_row("in all", *(f"{sum(one.values()):.2f}" for one in found.values()))
    pages.show(table)
    pages.show(
        "Shares of cProfile's own times, which weigh calls of functions too much, of the seconds of a run without it."
    )
