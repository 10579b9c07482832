"""How fast the simulator simulates, beside a plain SimPy model, SimGrid and Cimba, on one job (experiments/engines/job.py).

A worker-step is one step of one worker: it receives parameters, computes, and sends a gradient. Each measurement is a process of its
own, which imports, compiles and simulates a small job before; its seconds are those of a core. Set-up counts: a scenario and its streams
of random numbers, actors, a platform. Engines alternate in each round. They have different random numbers, and need not have the same
number of steps: each has as many as it simulates in about half a second, but at least three. That all of them simulate the same job is
checked: their mean steps must agree (experiments/engines/same_job.py).
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from experiments import speed_report
from experiments.engines import ENGINES, FURTHER, same_job
from experiments.engines.commands import Command, available, in_python
from experiments.engines.job import Job
from experiments.engines.measured import Measured, measure
from sim.progress import each

SIZES, ROUNDS = (10, 100, 1_000, 10_000, 100_000), 3
DEMO_SIZES, DEMO_ROUNDS = (10, 100), 2
LONGEST_S = 20.0  # of a measurement; what takes longer is left out
Results = dict[tuple[str, int], list[Measured]]  # by engine, or other job, and number of workers


def run(out: Path, seed: int = 0, *, demo: bool = False) -> None:
    """Measure everything, print the tables, write out/speed.csv and out/speed.png.

    Args:
        demo: two sizes, fewer rounds, and no other jobs.

    Raises:
        RunFailed: an engine simulates another job, or fails.
    """
    sizes, rounds, further = (DEMO_SIZES, DEMO_ROUNDS, {}) if demo else (SIZES, ROUNDS, FURTHER)
    with tempfile.TemporaryDirectory() as folder:
        commands, left_out = available(Path(folder))
        found = measured(commands | {name: in_python(name) for name in further}, sizes, rounds, seed)
    print(*left_out, *checked(found, sizes), sep="\n")
    speed_report.write_csv(found, out / "speed.csv")
    speed_report.figure(found, out / "speed.png")
    speed_report.show(found, f"{rounds} rounds; files: {out}")


def measured(commands: dict[str, Command], sizes: tuple[int, ...], rounds: int, seed: int) -> Results:
    """Every engine with every number of workers, and the other jobs, in each round; what takes too long has no entry."""
    found, too_long = {}, set()
    for name, job in each(plan(list(commands), sizes, rounds, seed), "measuring", lambda item: item[0]):
        key = name, job.workers
        if key in too_long or takes_too_long(found, name, job.workers):
            too_long.add(key)
            continue
        if (one := measure(commands[name](job), LONGEST_S)) is None:
            too_long.add(key)
            found.pop(key, None)
        else:
            found.setdefault(key, []).append(one)
    return found


def plan(names: list[str], sizes: tuple[int, ...], rounds: int, seed: int) -> list[tuple[str, Job]]:
    """What is measured, in order: sizes ascend in each round, and another engine is the first in each."""
    order = []
    for number in range(rounds):
        names = names[1:] + names[:1]
        for workers in sizes:
            engines = [name for name in names if name in ENGINES]
            order += [(name, Job(workers, ENGINES[name].steps(workers), seed + number)) for name in engines]
        others = [name for name in names if name in FURTHER]
        order += [(name, Job(*FURTHER[name][2:], seed + number)) for name in others]
    return order


def takes_too_long(found: Results, name: str, workers: int) -> bool:
    """Whether a measurement would, by the one with fewer workers before it, if its seconds grow as the workers do."""
    fewer = max((size for engine, size in found if engine == name and size < workers), default=None)
    return (
        fewer is not None
        and (name, workers) not in found
        and found[name, fewer][0].wall_s * workers / fewer > LONGEST_S
    )


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
