"""Comparisons that nobody measured, for tests of their tables."""

from __future__ import annotations

import numpy as np

from experiments.kit.comparison import Comparison
from real.cells import Cell
from sim.answers.outcome import Outcome

RNG = np.random.default_rng(0)


def outcome(step_s: float, runs: int, batch: int) -> Outcome:
    """Steps that differ by some percent."""
    shape = (runs, 30)
    times = step_s * RNG.normal(1, 0.02, shape) * RNG.normal(1, 0.02, (runs, 1))
    return Outcome(times, np.full(shape, batch), np.zeros((runs, 3)))


def comparison(protocol: str, workers: int, stragglers: str, step_s: float, error: float) -> Comparison:
    """A cell that is predicted so far off."""
    cell = Cell(protocol, workers, 512, stragglers=stragglers)
    real = [outcome(step_s, 1, 512 * workers) for _ in range(2)]
    return Comparison(cell, outcome(step_s * (1 + error), 10, 512 * workers), real)


def compared() -> list[Comparison]:
    """Of fmb, in the regimes that a machine of 2 cores has."""
    jobs = [(workers, law) for workers in (1, 2, 3, 4) for law in ("none", "niagara*0.05")]
    return [comparison("fmb", workers, law, 0.05 * workers, 0.03 * (-1) ** workers) for workers, law in jobs]


def further() -> list[Comparison]:
    """Of other protocols."""
    return [comparison(name, 2, "none", 0.08, 0.05) for name in ("ps-sync", "ps-async")]
