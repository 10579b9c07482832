"""How fast the simulator simulates, beside a plain SimPy model and SimGrid, on one job (experiments/engines/job.py).

A worker-step is one step of one worker: it receives parameters, computes, and sends a gradient. Each measurement is a process of its own,
which simulates a small job before, so that imports and compilation do not count. Its seconds are those of a core. Set-up counts:
scenarios, streams of random numbers, actors, platforms. The event world records no trace. The engine simulates one replication alone,
which it does after the event world's first.

Engines alternate in each round. They draw different random numbers and may have different numbers of steps: as many as take about half a
second, but at least two. Their mean steps must agree, or else they do not simulate the same job (experiments/engines/same_job.py).
SimGrid has two rows. In one, messages pass through its network model, as in its documentation; in the other there is no network.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from experiments.engines import ENGINES, REFERENCE, same_job
from experiments.engines.commands import Command, available
from experiments.engines.job import Job
from experiments.engines.measured import Measured, Results, measure
from experiments.kit import pages
from sim.base.errors import RunFailed
from sim.base.progress import each

if TYPE_CHECKING:
    from rich.table import Table

SIZES, ROUNDS = (10, 100, 1_000, 10_000, 100_000), 3
DEMO_SIZES, DEMO_ROUNDS = (10, 100), 2
LONGEST_S = 20.0  # of a measurement of an engine; what takes longer is left out
COMPARED = (REFERENCE, "simgrid")  # engines whose speed is the unit of a table


def run(out: Path, seed: int = 0, *, demo: bool = False) -> None:
    """Measure everything, and print the table.

    Args:
        demo: two sizes, fewer rounds.

    Raises:
        RunFailed: an engine simulates another job, or fails.
    """
    sizes, rounds = (DEMO_SIZES, DEMO_ROUNDS) if demo else (SIZES, ROUNDS)
    with tempfile.TemporaryDirectory() as folder:
        commands, left_out = available(Path(folder))
        found, failed = measured(commands, sizes, rounds, seed)
    pages.show(*left_out, *failed, *checked(found, sizes))
    pages.show(table(found))
    pages.show(
        f"Medians of {rounds} rounds, and how far these differ; seconds of a core. More workers have fewer steps."
    )


def measured(commands: dict[str, Command], sizes: tuple[int, ...], rounds: int, seed: int) -> tuple[Results, list[str]]:
    """Every engine with every number of workers in each round; a line for each engine that fails.

    What takes too long, or fails, has no entry, and the engine is not tried with more workers.
    """
    found, given_up = {}, {}
    for name, job in each(plan(list(commands), sizes, rounds, seed), "measuring", labelled):
        key = name, job.workers
        if any(engine == name and workers <= job.workers for engine, workers in given_up):
            continue
        one = tried(commands[name], name, job)
        if isinstance(one, Measured):
            found.setdefault(key, []).append(one)
        else:
            given_up[key] = one
            found.pop(key, None)
    return found, [line for line in given_up.values() if line]


def labelled(item: tuple[str, Job]) -> str:
    """An engine and its job, in words."""
    return f"{ENGINES[item[0]].title}, {item[1].workers:,} workers"


def tried(command: Command, name: str, job: Job) -> Measured | str:
    """What a job took, or a line that says why an engine failed; the line is empty where the job takes too long.

    Raises:
        RunFailed: the engine is the one that all others are compared with.
    """
    try:
        return measure(command(job), LONGEST_S) or ""
    except RunFailed as error:
        if name == REFERENCE:
            raise
        return f"{ENGINES[name].title} with {job.workers:,} workers: {error}"


def plan(names: list[str], sizes: tuple[int, ...], rounds: int, seed: int) -> list[tuple[str, Job]]:
    """What is measured, in order: sizes ascend in each round, and another engine is the first in each."""
    order = []
    for number in range(rounds):
        names = names[1:] + names[:1]
        for workers in sizes:
            order += [(name, Job(workers, ENGINES[name].steps(workers), seed + number)) for name in names]
    return order


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


def speeds(found: Results, name: str, workers: int) -> np.ndarray:
    """Worker-steps per second of a core, shape (rounds,); empty if it was not measured."""
    return np.array([workers * len(one.step_s) / one.cpu_s for one in found.get((name, workers), [])])


def ratios(found: Results, name: str, workers: int, reference: str = REFERENCE) -> np.ndarray:
    """The speed over that of another, round by round; empty if either was not measured."""
    mine, others = speeds(found, name, workers), speeds(found, reference, workers)
    return mine / others if len(mine) == len(others) else np.array([])


def table(found: Results) -> Table:
    """A line for each engine and number of workers."""
    against = [name for name in COMPARED if any(engine == name for engine, _ in found)]
    columns: list[tuple[str, Callable[[tuple[str, int]], str]]] = [
        ("engine", lambda key: ENGINES[key[0]].title),
        ("workers", lambda key: f"{key[1]:,}"),
        ("steps", lambda key: f"{ENGINES[key[0]].steps(key[1]):,}"),
        ("worker-steps/s", lambda key: with_spread(speeds(found, *key))),
        *(
            (f"times as fast as {ENGINES[name].title}", lambda key, name=name: with_range(ratios(found, *key, name)))
            for name in against
        ),
        ("peak memory with imports, MB", lambda key: f"{np.median([one.peak_bytes for one in found[key]]) / 1e6:,.0f}"),
    ]
    rows = [(name, workers) for name in ENGINES for engine, workers in sorted(found) if engine == name]
    return pages.listed("Worker-steps per second", columns, rows)


def with_spread(values: np.ndarray) -> str:
    """The median, and how far the rounds fall from one another, over it."""
    return f"{np.median(values):,.0f} ({np.ptp(values) / np.median(values):.0%})"


def with_range(values: np.ndarray) -> str:
    """The median, and the lowest and the highest of the rounds."""
    if not len(values):
        return ""
    middle, low, high = (
        f"{value:,.0f}" if value >= 10 else f"{value:.2g}" for value in np.quantile(values, (0.5, 0, 1))
    )
    return f"{middle} ({low} to {high})"
