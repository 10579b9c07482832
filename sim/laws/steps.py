"""Values of one worker's steps, by index, worked out as far as somebody asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

LEAST = 128  # steps that are worked out at first


class Steps:
    """Values by step, as randomness.Stream has them.

    Args:
        values: of the first so many steps, shape (steps,). More of them begin with the same ones.
        sole: the value of every step, if they are all alike.
    """

    def __init__(self, values: Callable[[int], np.ndarray] | None = None, sole: float | None = None):
        self._values, self._known, self.sole = values, np.empty(0), sole

    def first(self, count: int) -> np.ndarray:
        """Values of steps 0 to count - 1, shape (count,)."""
        if self.sole is not None:
            return np.full(count, self.sole)
        if count > len(self._known) and self._values is not None:
            self._known = self._values(max(LEAST, count))
        return self._known[:count]

    def __getitem__(self, step: int) -> float:
        if self.sole is not None:
            return self.sole
        if step >= len(self._known):
            self.first(2 * step + 1)
        return float(self._known[step])


class Sleeps:
    """The sleeps of one worker, one after another: the first of each step, and further ones of the same step, which are drawn anew.

    Args:
        of_call: the sleeps by step of each call within a step, from 0.
    """

    def __init__(self, of_call: Callable[[int], Any]):
        self._of_call, self._made = of_call, [of_call(0)]
        self._step, self._call = -1, 0

    @property
    def sole(self) -> float | None:
        """The seconds of every sleep, if they are all alike."""
        return self._made[0].sole

    def next(self, step: int) -> float:
        """Seconds of the next sleep, which is in this step."""
        self._call = self._call + 1 if step == self._step else 0
        self._step = step
        if self._call == len(self._made):
            self._made.append(self._of_call(self._call))
        return self._made[self._call][step]


ONES, NOTHING = Steps(sole=1.0), Steps(sole=0.0)


def joined(parts: list, how: np.ufunc, neutral: float):
    """The values of all `parts` together, step by step.

    Args:
        how: np.add or np.multiply.
        neutral: the value that changes nothing.
    """
    parts = [part for part in parts if part.sole != neutral]
    if len(parts) < 2:
        return parts[0] if parts else Steps(sole=neutral)
    if all(part.sole is not None for part in parts):
        return Steps(sole=float(how.reduce([part.sole for part in parts])))
    return Steps(lambda count: how.reduce([part.first(count) for part in parts]))
