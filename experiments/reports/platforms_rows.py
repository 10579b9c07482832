"""Results of the comparison of platforms: a row for each, and steps/s by windows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sim.answers import extrapolation
from sim.base import interval

EVERY = 50  # steps between two lines of seed 000


@dataclass(frozen=True)
class Row:
    """A platform's runs.

    Args:
        step_s: seconds of each step after warm-up, shape (repeats, steps).
        learnt: step, loss and accuracy, of each evaluation.
        predicted_s: as step_s, shape (replications, steps); None if nothing was fitted.
        ends: logarithms by which a predicted step may be longer and shorter, see sim.answers.ends.
    """

    name: str
    step_s: np.ndarray
    learnt: list[tuple[int, float, float]]
    predicted_s: np.ndarray | None = None
    ends: tuple[tuple[float, float], ...] = ()

    @property
    def error(self) -> float:
        """Predicted over measured steps/s of the second half, less 1."""
        if self.predicted_s is None:
            raise ValueError(f"{self.name}: nothing was predicted")
        return float(interval.middle(late(self.predicted_s)) / late(self.step_s).mean() - 1)


def predicted_interval(row: Row) -> tuple[float, float]:
    """Of one more run's steps/s in its second half.

    Raises:
        ValueError: nothing was predicted.
    """
    if row.predicted_s is None:
        raise ValueError(f"{row.name}: nothing was predicted")
    said = late(row.predicted_s)
    unknown = [extrapolation.Unknown(*off) for off in row.ends]
    return extrapolation.widened(interval.of_runs(said), interval.middle(said), unknown)


def every(steps: int) -> int:
    """Steps of a window: 50, or in a short run half of it."""
    return min(EVERY, steps // 2)


def windows(step_s: np.ndarray) -> np.ndarray:
    """Steps/s in each window, shape (runs, windows), of seconds of each step, shape (runs, steps); a rest is left out."""
    runs, steps = step_s.shape
    length = every(steps)
    whole = steps // length
    return length / step_s[:, : whole * length].reshape(runs, whole, length).sum(axis=2)


def late(step_s: np.ndarray) -> np.ndarray:
    """Steps/s of each run over its second half, shape (runs,), of seconds of each step, shape (runs, steps)."""
    half = step_s[:, step_s.shape[1] // 2 :]
    return half.shape[1] / half.sum(axis=1)
