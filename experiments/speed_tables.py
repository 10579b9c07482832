"""The tables of `speed`: worker-steps a second, ratios to plain SimPy, memory, and how cost grows with workers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from experiments.engines import ENGINES, FURTHER, REFERENCE
from experiments.kit import pages

if TYPE_CHECKING:
    from experiments.engines.measured import Results


COMPARED = (REFERENCE, "simgrid")  # engines whose speed is the unit of a table
AGAINST = "Times as fast as {} (lowest to highest round)"


def speeds(found: Results, name: str, workers: int) -> np.ndarray:
    """Worker-steps per second of a core, shape (rounds,); empty if it was not measured."""
    return np.array([worker_steps(name, workers, one) / one.cpu_s for one in found.get((name, workers), [])])


def worker_steps(name: str, workers: int, one) -> int:
    """The number of steps of a measurement."""
    if name in FURTHER:
        return workers * FURTHER[name].steps * FURTHER[name].runs
    return workers * (len(one.step_s) or ENGINES[name].steps(workers))


def ratios(found: Results, name: str, workers: int, reference: str = REFERENCE) -> np.ndarray:
    """The speed over that of another, round by round; empty if either was not measured, or both are the same."""
    if name == reference:
        return np.array([])
    mine, others = speeds(found, name, workers), speeds(found, reference, workers)
    return mine / others if len(mine) == len(others) else np.array([])


def growth(found: Results, name: str) -> float | None:
    """Cost of a worker-step with the most workers that were measured, over that with the fewest."""
    sizes = [workers for engine, workers in found if engine == name]
    if len(sizes) < 2:
        return None
    few, many = (np.median(speeds(found, name, workers)) for workers in (min(sizes), max(sizes)))
    return float(few / many)


def steps(found: Results, name: str, workers: int) -> np.ndarray:
    """Steps of one run, shape (rounds,)."""
    return np.array([ENGINES[name].steps(workers) for _ in found.get((name, workers), [])])


def peak_mb(found: Results, name: str, workers: int) -> np.ndarray:
    """The most memory of each process, shape (rounds,), MB."""
    return np.array([one.peak_bytes / 1e6 for one in found.get((name, workers), [])])


def with_spread(values: np.ndarray) -> str:
    """The median, and how far the rounds fall from one another, over it."""
    if len(values) == 1:
        return f"{values[0]:,.0f}"
    return f"{np.median(values):,.0f} ({np.ptp(values) / np.median(values):.0%})"


def with_range(values: np.ndarray) -> str:
    """The median, and the lowest and the highest of the rounds."""
    return f"{short(np.median(values))} ({short(values.min())} to {short(values.max())})"


def the_median(values: np.ndarray) -> str:
    """The median alone."""
    return f"{np.median(values):,.0f}"


def short(value: float) -> str:
    """Two digits, or all before the point."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def show(found: Results, caption: str) -> None:
    """Print all tables."""
    measured = [name for name in COMPARED if any(engine == name for engine, _ in found)]
    tables = [
        _by_size(found, "Worker-steps per second (spread of the rounds)", speeds, with_spread, growth),
        *(
            _by_size(found, AGAINST.format(ENGINES[name].title), partial(ratios, reference=name), with_range)
            for name in measured
        ),
        _by_size(found, "Peak memory with what is imported, MB", peak_mb, the_median),
        _by_size(found, "Steps", steps, the_median),
    ]
    if any(name in FURTHER for name, _ in found):
        tables.append(_others(found))
    pages.show(*tables, sep="\n\n")
    pages.show(
        "Medians of the rounds; seconds of a core; -: not measured, because it would take too long or it failed."
    )
    pages.show(
        "Growth: cost of a worker-step with the most workers, over that with the fewest. More workers have fewer"
    )
    pages.show(f"steps, in which set-up weighs more. {caption}")


def _by_size(found: Results, title: str, values_of: Callable, said: Callable, further: Callable | None = None):
    sizes = sorted({workers for name, workers in found if name in ENGINES})
    headings = [f"{size:,}" for size in sizes] + (["growth"] if further else [])
    table = pages.table(title, "workers", *headings)
    table.columns[0].justify = "left"
    for name in [name for name in ENGINES if any(engine == name for engine, _ in found)]:
        values = [values_of(found, name, size) for size in sizes]
        cells = [said(each) if len(each) else "-" for each in values]
        if not any(len(each) for each in values):
            continue
        if further:
            grown = further(found, name)
            cells.append("-" if grown is None else f"{grown:.2f}")
        table.add_row(ENGINES[name].title, *cells)
    return table


def _others(found: Results):
    headings = (
        "job",
        "workers",
        "steps",
        "runs",
        "worker-steps/s",
        "seconds of a core",
        "seconds",
        "times the other world",
        "peak, MB",
    )
    table = pages.table("Other jobs", *headings)
    table.columns[0].justify = "left"
    for name, job in FURTHER.items():
        values, several = speeds(found, name, job.workers), found.get((name, job.workers), [])
        cells = ["-"] * (len(headings) - 4)
        if several:
            taken_s = f"{np.median([one.cpu_s for one in several]):.1f}"
            clock_s = f"{np.median([one.wall_s for one in several]):.1f}"
            faster = ratios(found, name, job.workers, job.beside) if job.beside else np.array([])
            peak = f"{np.median(peak_mb(found, name, job.workers)):,.0f}"
            cells = [with_spread(values), taken_s, clock_s, with_range(faster) if len(faster) else "-", peak]
        table.add_row(job.title, f"{job.workers:,}", f"{job.steps:,}", str(job.runs), *cells)
    return table
