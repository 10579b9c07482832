"""How fast the simulator simulates, beside plain SimPy models and SimGrid, on four jobs (experiments/engines/job.py).

A worker-step is one step of one worker: it receives parameters, computes, and sends a gradient. Each measurement is a process of its own,
which simulates a small job before, so that imports and compilation do not count. Its seconds are those of a core. Set-up counts:
scenarios, streams of random numbers, actors, platforms. The event world records no trace. The engine simulates one replication alone,
which it does after the event world's first.

Engines alternate in each round. They draw different random numbers and may have different numbers of steps: as many as take about half a
second, but at least two. Their mean steps must agree, or else they do not simulate the same job (`check`).
Messages of SimGrid pass through its network model, as in its documentation.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from experiments.engines import simgrid
from experiments.engines.job import Job
from experiments.engines.process import Measured, in_python, measure
from experiments.kit import pages
from sim import needs
from sim.base.errors import RunFailed
from sim.base.progress import each

if TYPE_CHECKING:
    from rich.table import Table

SIZES = {  # numbers of workers, by text
    "fmb": (10, 100, 1_000, 10_000, 100_000),
    "ddp": (16, 64, 256, 1_024, 4_096),
    "local-sgd": (16, 64, 256, 1_024, 4_096),
    "d-psgd": (16, 64, 256, 1_024, 4_096),
}
ROUNDS = 3
LONGEST_S = 40.0  # of a measurement of an engine; what takes longer is left out
ONCE_S = 5.0  # of a core: what takes longer is measured in the first round alone
LEAST_STEPS, MOST_STEPS = {"ddp": 1, "local-sgd": 4}, 10_000  # by text; of others 2
REFERENCE = "simpy"  # with which all others are compared
COMPARED = (REFERENCE, "simgrid")  # engines whose speed is the unit of a table
ERRORS = 5  # standard errors of the difference of two means that are allowed,
SHARE = 1e-3  # and this share of the mean besides


class Engine(NamedTuple):
    """A way to simulate a job.

    Args:
        title: its name in tables.
        messages: that workers send in one measurement, which then takes about half a second.
        command: makes the command of a process that measures a job; a folder is for programs.
    """

    title: str
    messages: int
    command: Callable[[Path, Job], list[str]]

    def steps(self, workers: int, text: str = "fmb") -> int:
        """How many steps are measured with so many workers."""
        least = LEAST_STEPS.get(text, 2)
        steps = int(self.messages / workers / Job(workers, 1, text=text).messages)
        return max(least, min(MOST_STEPS, steps // least * least))


def _ours(entry: str) -> Callable[[Path, Job], list[str]]:
    return lambda _, job: in_python(entry, job)


ENGINES = {
    REFERENCE: Engine("SimPy, as documented", 50_000, _ours("simpy_jobs:run")),
    "event": Engine("event world", 50_000, _ours("ours:event")),
    "engine": Engine("engine", 500_000, _ours("ours:engine")),
    "simgrid": Engine("SimGrid, C++", 100_000, simgrid.command),
}
Results = dict[tuple[str, int], list[Measured]]  # by engine and number of workers


def run(out: Path, seed: int = 0) -> None:
    """Measure everything, and print the tables.

    Raises:
        RunFailed: an engine simulates another job, or fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        for text, sizes in SIZES.items():
            found, failed = measured(Path(folder), sizes, ROUNDS, seed, text)
            pages.show(*failed, *checked(found, sizes))
            pages.show(table(found, text))
    pages.show(of_answers())
    pages.show(
        f"Medians of {ROUNDS} rounds, and how far these differ; seconds of a core. More workers have fewer steps. "
        f"Load average of the last minutes: {os.getloadavg()[1]:.1f} on {needs.cores()} cores."
    )


def of_answers() -> Table:
    """What users wait for."""
    from experiments.engines import answers

    columns = (
        ("what", lambda one: one.said),
        ("found", lambda one: f"{one.found:.3g} {one.unit}"),
        ("asked", lambda one: f"{'at least' if one.least else 'at most'} {one.asked:g}"),
        ("", lambda one: "" if one.is_met else "missed"),
    )
    return pages.listed("What users wait for", columns, answers.table())


def measured(
    folder: Path, sizes: tuple[int, ...], rounds: int, seed: int, text: str = "fmb"
) -> tuple[Results, list[str]]:
    """Every engine with every number of workers in each round; a line for each engine that fails.

    What takes too long, or fails, has no entry, and the engine is not tried with more workers.

    Raises:
        RunFailed: the engine fails that all others are compared with.
    """
    found: Results = {}
    given_up: dict[str, int] = {}
    failed = []
    for name, job in each(plan(sizes, rounds, seed, text), "measuring", labelled):
        earlier = found.get((name, job.workers), [])
        if job.workers >= given_up.get(name, job.workers + 1) or any(one.cpu_s > ONCE_S for one in earlier):
            continue
        one = None
        try:
            one = measure(ENGINES[name].command(folder, job), LONGEST_S)
        except RunFailed as error:
            if name == REFERENCE:
                raise
            failed.append(f"{ENGINES[name].title} is left out from {job.workers:,} workers on: {error}")
        if one is None:
            given_up[name] = job.workers
            found.pop((name, job.workers), None)
        else:
            found.setdefault((name, job.workers), []).append(one)
    return found, failed


def labelled(item: tuple[str, Job]) -> str:
    """An engine and its job, in words."""
    return f"{ENGINES[item[0]].title}, {item[1].text}, {item[1].workers:,} workers"


def plan(sizes: tuple[int, ...], rounds: int, seed: int, text: str = "fmb") -> list[tuple[str, Job]]:
    """What is measured, in order: sizes ascend in each round, and another engine is the first in each."""
    order, names = [], list(ENGINES)
    for number in range(rounds):
        names = names[1:] + names[:1]
        for workers in sizes:
            order += [(name, Job(workers, ENGINES[name].steps(workers, text), seed + number, text)) for name in names]
    return order


def checked(found: Results, sizes: tuple[int, ...]) -> list[str]:
    """A line for each number of workers: how well the engines agree.

    Raises:
        RunFailed: they do not.
    """
    steps_s = {key: np.concatenate([one.step_s for one in several]) for key, several in found.items()}
    return [
        check({name: steps_s[name, workers] for name in ENGINES if (name, workers) in found}, workers)
        for workers in sizes
    ]


def check(steps_s: dict[str, np.ndarray], workers: int) -> str:
    """A line that says how well the engines agree with so many workers: their mean steps must, as far as chance allows.

    An engine whose messages left the master at once would have shorter steps with any number of workers. One whose master received all
    gradients at once would have steps that are 6 % shorter with 10 workers, where the difference of means is known to better than 1 %;
    with hundreds of workers the steps would be as long, because gradients then come no faster than parameters leave.

    Raises:
        RunFailed: an engine simulates another job.
    """
    if len(steps_s) < 2:
        return f"{workers:,} workers: no two mean steps to compare"
    furthest, (found, allowed) = max(apart(steps_s).items(), key=lambda one: abs(one[1][0]) / one[1][1])
    title, mean_s = ENGINES[furthest].title, steps_s[furthest].mean()
    first = next(iter(steps_s))
    against = f"{steps_s[first].mean():.4g} s in {ENGINES[first].title}"
    said = f"{found:+.2%}; chance explains {allowed:.2%}"
    if abs(found) > allowed:
        job = f"with {workers:,} workers its mean step is {mean_s:.4g} s, and {against}"
        raise RunFailed(f"{title} simulates another job: {job} ({said})")
    return f"{workers:,} workers: mean step {against}; the furthest from it is {title} ({said})"


def apart(steps_s: dict[str, np.ndarray]) -> dict[str, tuple[float, float]]:
    """Each engine's mean step over the first one's, less 1, and the largest size of that which chance explains.

    Steps are independent of one another, in all engines alike.
    """
    spread_s = np.concatenate([values - values.mean() for values in steps_s.values()]).std()
    first, *others = steps_s
    against = steps_s[first]
    return {
        name: (
            values.mean() / against.mean() - 1,
            ERRORS * spread_s * sqrt(1 / len(values) + 1 / len(against)) / against.mean() + SHARE,
        )
        for name, values in ((name, steps_s[name]) for name in others)
    }


def speeds(found: Results, name: str, workers: int) -> np.ndarray:
    """Worker-steps per second of a core, shape (rounds,); empty if it was not measured."""
    return np.array([workers * len(one.step_s) / one.cpu_s for one in found.get((name, workers), [])])


def ratios(found: Results, name: str, workers: int, reference: str = REFERENCE) -> np.ndarray:
    """The speed over that of another, round by round, as far as both were measured; empty if either was not."""
    mine, others = speeds(found, name, workers), speeds(found, reference, workers)
    rounds = min(len(mine), len(others))
    return mine[:rounds] / others[:rounds]


def table(found: Results, text: str = "fmb") -> Table:
    """A line for each engine and number of workers."""
    against = [name for name in COMPARED if any(engine == name for engine, _ in found)]
    columns: list[tuple[str, Callable[[tuple[str, int]], str]]] = [
        ("engine", lambda key: ENGINES[key[0]].title),
        ("workers", lambda key: f"{key[1]:,}"),
        ("steps", lambda key: f"{ENGINES[key[0]].steps(key[1], text):,}"),
        ("worker-steps/s", lambda key: with_spread(speeds(found, *key))),
        *(
            (f"times as fast as {ENGINES[name].title}", lambda key, name=name: with_range(ratios(found, *key, name)))
            for name in against
        ),
        ("peak memory with imports, MB", lambda key: f"{np.median([one.peak_bytes for one in found[key]]) / 1e6:,.0f}"),
    ]
    rows = [(name, workers) for name in ENGINES for engine, workers in sorted(found) if engine == name]
    return pages.listed(f"Worker-steps per second, {text}", columns, rows)


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
