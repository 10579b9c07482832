"""How fast the simulator simulates, beside a plain SimPy model and SimGrid, on one job (experiments/engines/job.py).

A worker-step is one step of one worker: it receives parameters, computes, and sends a gradient. Each measurement is a process of its own,
which simulates a small job before, so that imports and compilation do not count. Its seconds are those of a core. Set-up counts:
scenarios, streams of random numbers, actors, platforms. The event world records no trace. The engine simulates one replication alone,
which it does after the event world's first; on all cores it has eight of them. Its other jobs have the ratio to the speed of another world
on the same job.

Engines alternate in each round. They draw different random numbers and may have different numbers of steps: as many as take about half a
second, but at least two. Their mean steps must agree, or else they do not simulate the same job (experiments/engines/same_job.py).
SimGrid has two rows. In one, messages pass through its network model, as in its documentation; in the other there is no network.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from experiments import speed_tables
from experiments.engines import ENGINES, FURTHER, REFERENCE, same_job, title_of
from experiments.engines.commands import Command, available, in_python
from experiments.engines.job import Job
from experiments.engines.measured import Measured, Results, measure
from experiments.kit import pages
from sim.base.errors import RunFailed
from sim.base.progress import each

SIZES, ROUNDS = (10, 100, 1_000, 10_000, 100_000), 3
DEMO_SIZES, DEMO_ROUNDS = (10, 100), 2
LONGEST_S = 20.0  # of a measurement of an engine; what takes longer is left out
LONGEST_FURTHER_S = 180.0  # likewise, of another job


def run(out: Path, seed: int = 0, *, demo: bool = False) -> None:
    """Measure everything, and print the tables.

    Args:
        demo: two sizes, fewer rounds, and no other jobs.

    Raises:
        RunFailed: an engine simulates another job, or fails.
    """
    sizes, rounds, further = (DEMO_SIZES, DEMO_ROUNDS, {}) if demo else (SIZES, ROUNDS, FURTHER)
    with tempfile.TemporaryDirectory() as folder:
        commands, left_out = available(Path(folder))
        commands |= {name: in_python(name) for name in further}
        found, failed = measured(commands, sizes, rounds, seed)
    pages.show(*left_out, *failed, *checked(found, sizes))
    speed_tables.show(found, f"{rounds} rounds")


def measured(commands: dict[str, Command], sizes: tuple[int, ...], rounds: int, seed: int) -> tuple[Results, list[str]]:
    """Every engine with every number of workers, and the other jobs, in each round; a line for each engine that fails.

    What takes too long, or fails, has no entry, and the engine is not tried with more workers.
    """
    found, given_up = {}, {}
    for name, job in each(plan(list(commands), sizes, rounds, seed), "measuring", labelled):
        key = name, job.workers
        if any(engine == name and workers <= job.workers for engine, workers in given_up):
            continue
        one = tried(commands[name], name, job, found)
        if isinstance(one, Measured):
            found.setdefault(key, []).append(one)
        else:
            given_up[key] = one
            found.pop(key, None)
    return found, [line for line in given_up.values() if line]


def labelled(item: tuple[str, Job]) -> str:
    """An engine and its job, in words."""
    return f"{title_of(item[0])}, {item[1].workers:,} workers"


def tried(command: Command, name: str, job: Job, found: Results) -> Measured | str:
    """What a job took, or a line that says why an engine failed; the line is empty where the job takes too long.

    Raises:
        RunFailed: the engine is the one that all others are compared with.
    """
    if takes_too_long(found, name, job):
        return ""
    try:
        return measure(command(job), LONGEST_S if name in ENGINES else LONGEST_FURTHER_S) or ""
    except RunFailed as error:
        if name == REFERENCE:
            raise
        return f"{title_of(name)} with {job.workers:,} workers: {error}"


def plan(names: list[str], sizes: tuple[int, ...], rounds: int, seed: int) -> list[tuple[str, Job]]:
    """What is measured, in order: sizes ascend in each round, and another engine is the first in each."""
    order = []
    for number in range(rounds):
        names = names[1:] + names[:1]
        for workers in sizes:
            engines = [name for name in names if name in ENGINES]
            order += [(name, Job(workers, ENGINES[name].steps(workers), seed + number)) for name in engines]
        others = [(name, FURTHER[name]) for name in names if name in FURTHER]
        others = [(name, one) for name, one in others if number == 0 or not one.once]
        order += [(name, Job(one.workers, one.steps, seed + number, one.runs)) for name, one in others]
    return order


def takes_too_long(found: Results, name: str, job: Job) -> bool:
    """Whether a measurement would, by the one with fewer workers before it, if a worker-step costs as much."""
    fewer = max((workers for engine, workers in found if engine == name and workers < job.workers), default=None)
    if fewer is None or (name, job.workers) in found:
        return False
    more = job.workers * job.steps / (fewer * ENGINES[name].steps(fewer))
    return found[name, fewer][0].wall_s * more > LONGEST_S


def checked(found: Results, sizes: tuple[int, ...]) -> list[str]:
    """A line for each number of workers: how well the engines agree.

    Raises:
        RunFailed: they do not.
    """
    lines = []
    for workers in sizes:
        steps_s = {
            name: np.concatenate([one.step_s for one in found.get((name, workers), [])] or [[]]) for name in ENGINES
        }
        lines.append(same_job.check({name: values for name, values in steps_s.items() if len(values)}, workers))
    return lines
