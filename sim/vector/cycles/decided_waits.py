"""Waits of ranks after a decision: their sums, and one by one."""

from __future__ import annotations

import numpy as np


class InTurn:
    """Waits of each rank, one after another.

    Args:
        from_s, to_s: shape (ranks, waits); both are 0 of a rank that has no part in one.
    """

    def __init__(self, from_s: np.ndarray, to_s: np.ndarray):
        self._ends_s = np.maximum.accumulate(np.maximum(from_s, to_s), axis=1)
        self._begins_s = np.maximum(from_s, np.pad(self._ends_s, ((0, 0), (1, 0)))[:, :-1])
        waits_s = np.pad(self._ends_s - self._begins_s, ((0, 0), (0, 1)))
        self._left_s = np.cumsum(waits_s[:, ::-1], axis=1)[:, ::-1]  # in each wait and those after it
        self._span_s = 1 + self._ends_s.max(initial=0.0)
        self._in_line_s = (self._ends_s + self._span_s * np.arange(len(from_s))[:, None]).ravel()
        self.size = from_s.size

    def after(self, from_s: np.ndarray, ranks: np.ndarray) -> np.ndarray:
        """Seconds that ranks wait after a moment, one for each of them."""
        waits = self._ends_s.shape[1]
        number = np.searchsorted(self._in_line_s, from_s + self._span_s * ranks, side="right") - waits * ranks
        number = np.clip(number, 0, waits)
        inside_s = from_s - self._begins_s[ranks, np.minimum(number, waits - 1)]
        return self._left_s[ranks, number] - np.where(number < waits, np.maximum(inside_s, 0), 0)


class Waits:
    """Sums of waits, shape (decisions, ranks); of ranks that never wait the first is never and the last was never."""

    def __init__(self, decisions: int, ranks: int):
        shape = decisions, ranks
        self.waits_s, self.from_s, self.to_s = np.zeros(shape), np.full(shape, np.inf), np.full(shape, -np.inf)

    def add(self, rows: list[int], from_s: np.ndarray, to_s: np.ndarray, ranks) -> None:
        """A wait of some ranks in some decisions."""
        decisions = slice(None) if len(rows) == len(self.waits_s) else rows
        waits_s = to_s - from_s
        where: tuple = (decisions, ranks)
        if not isinstance(decisions, slice) and not isinstance(ranks, slice):
            where = np.ix_(decisions, ranks)
        waits = waits_s > 0
        self.waits_s[where] += np.maximum(waits_s, 0, out=waits_s)
        if (first_s := self.from_s[where]).max(initial=-np.inf) == np.inf:  # no earlier wait, at some
            self.from_s[where] = np.minimum(first_s, np.where(waits, from_s, np.inf))
        self.to_s[where] = np.where(waits, to_s, self.to_s[where])  # the last, as they come in order
