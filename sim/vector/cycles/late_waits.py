"""Waits of a background thread. They are idle time only once its rank has nothing more to compute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sim.vector.cycles.negotiation import Wait

if TYPE_CHECKING:
    from sim.vector.cycles.decided import Decided


class Cycle(NamedTuple):
    """One decision, in some replications.

    Args:
        rows: which replications, shape (rows,).
        computed_s: when each rank had computed its gradient, shape (rows, ranks).
        waits: from and to, until rank 0 had all requests.
        left_s: when each rank's own request had left it, shape (rows, ranks).
        root_s: when rank 0 had all, shape (rows, 1).
        numbers: what was decided, rows of the table, shape (rows,).
        kinds: of replication, shape (rows,).
    """

    rows: np.ndarray
    computed_s: np.ndarray
    waits: Sequence[Wait]
    left_s: np.ndarray
    root_s: np.ndarray
    numbers: np.ndarray
    kinds: np.ndarray

    def of(self, some: np.ndarray) -> Cycle:
        """In some of these replications, a bool each."""
        if some.all():
            return self
        waits = [(ranks, from_s[some], to_s[some]) for ranks, from_s, to_s in self.waits]
        parts = self.left_s[some], self.root_s[some], self.numbers[some], self.kinds[some]
        return Cycle(self.rows[some], self.computed_s[some], waits, *parts)

    def add(self, sum_s: np.ndarray, table: Decided, low_s: np.ndarray, high_s: np.ndarray) -> None:
        """Add seconds of waits between two moments to those of all replications, shape (replications, ranks); moments (replications,)."""
        sum_s[self.rows] += idle_s(self, table, low_s, high_s)


class Moved(NamedTuple):
    """Waits for messages that requests have held up: those that would have been else, and are to be taken off; and those that were.

    Args:
        rows: the replication of each, shape (waits,).
        ranks: who waits.
        computed_s: when that rank had computed its gradient.
        signs: 1, and -1 of what is taken off.
        from_s, to_s: seconds.
    """

    rows: np.ndarray
    ranks: np.ndarray
    computed_s: np.ndarray
    signs: np.ndarray
    from_s: np.ndarray
    to_s: np.ndarray

    @classmethod
    def of(cls, rows, computed_s, root_s, waits_s, held_up_s) -> Moved:
        """From waits without requests and with them, shape (2, messages, replications, ranks), as sim.vector.cycles.tails has them.

        Args:
            rows: which replications.
            computed_s, root_s: see Cycle.
        """
        counts = root_s + held_up_s[1] > computed_s
        (message, row, rank), parts = (counts & (waits_s != held_up_s).any(axis=0)).nonzero(), []
        for sign, times_s in ((1, held_up_s), (-1, waits_s)):
            from_s, to_s = root_s[row, 0] + times_s[:, message, row, rank]
            parts.append((rows[row], rank, computed_s[row, rank], np.full(len(row), sign), from_s, to_s))
        return cls(*(np.concatenate(both) for both in zip(*parts, strict=True)))

    def add(self, sum_s: np.ndarray, _table: Decided, low_s: np.ndarray, high_s: np.ndarray) -> None:
        """Add seconds of waits between two moments to those of all replications, shape (replications, ranks); moments (replications,)."""
        low_s, high_s = np.maximum(self.computed_s, low_s[self.rows]), high_s[self.rows]
        inside_s = np.maximum(np.minimum(self.to_s, high_s) - np.maximum(self.from_s, low_s), 0)
        np.add.at(sum_s, (self.rows, self.ranks), self.signs * inside_s)


def idle_s(cycle: Cycle, table: Decided, low_s: np.ndarray, high_s: np.ndarray) -> np.ndarray:
    """Seconds that each rank was idle between two moments; shape (rows, ranks).

    Args:
        low_s, high_s: the moments, shape (replications,).
    """
    low_s = np.maximum(cycle.computed_s, low_s[cycle.rows, None])
    high_s = np.broadcast_to(np.maximum(low_s, high_s[cycle.rows, None]), low_s.shape)
    found_s = np.zeros_like(low_s)
    told = cycle.left_s, cycle.root_s + table.told_s[cycle.numbers]
    for ranks, from_s, to_s in (*cycle.waits, (slice(1, None), told[0][:, 1:], told[1][:, 1:])):
        inside_s = np.minimum(to_s, high_s[:, ranks]) - np.maximum(from_s, low_s[:, ranks])
        found_s[:, ranks] += np.maximum(inside_s, 0)
    return found_s + _after(cycle, table, low_s) - _after(cycle, table, high_s)


def _after(cycle: Cycle, table: Decided, from_s: np.ndarray) -> np.ndarray:
    """Seconds that each rank waits after a moment, once it has been told; shape (rows, ranks)."""
    numbers, from_s = cycle.numbers, from_s - cycle.root_s
    found_s = np.where(from_s <= table.waits_from_s[numbers], table.waits_s[numbers], 0.0)
    among = (from_s > table.waits_from_s[numbers]) & (from_s < table.waits_to_s[numbers])
    rows, ranks = among.nonzero()
    for number in np.unique(numbers[rows]):
        own = numbers[rows] == number
        found_s[rows[own], ranks[own]] = table.waits_after(number, from_s[rows[own], ranks[own]], ranks[own])
    return found_s


class LateWaits:
    """Of all steps.

    Args:
        replications, ranks: how many.
        warmups: numbers of steps that may turn out to be the warm-up.
    """

    def __init__(self, replications: int, ranks: int, warmups: set[int]):
        self._settled_s = {steps: np.zeros((replications, ranks)) for steps in warmups}
        self._table: Decided  # once a step has begun
        self.sums = None  # waits are to be told one by one
        self._steps: list[list[Cycle | Moved]] = []  # the last two, whose waits the end of the run may cut

    def begin_step(self, table: Decided, ends_s: list[np.ndarray]) -> None:
        """A step begins. No rank waits in a step when the next is over.

        Args:
            ends_s: of all steps so far, after a 0; shape (replications,) each.
        """
        self._table = table
        while len(self._steps) > 1:
            cycles = self._steps.pop(0)
            for steps, sum_s in self._settled_s.items():
                if steps < len(ends_s):
                    self._add(sum_s, cycles, ends_s[steps], np.full(len(sum_s), np.inf))
        self._steps.append([])

    def add(self, cycle: Cycle | Moved) -> None:
        """A cycle of the step at hand."""
        if len(cycle.rows):
            self._steps[-1].append(cycle)

    def idle_s(self, warmup: int, low_s: np.ndarray, high_s: np.ndarray) -> np.ndarray:
        """Of each rank after a warm-up of so many steps, which ends at `low_s`, until `high_s`; shape (replications, ranks)."""
        found_s = self._settled_s[warmup].copy()
        for cycles in self._steps:
            self._add(found_s, cycles, low_s, high_s)
        return found_s

    def _add(self, sum_s: np.ndarray, cycles: list[Cycle | Moved], low_s: np.ndarray, high_s: np.ndarray) -> None:
        for cycle in cycles:
            cycle.add(sum_s, self._table, low_s, high_s)


class LateBetween:
    """Waits between two moments that are known beforehand; otherwise as LateWaits.

    Args:
        shape: (replications, ranks).
        moments_s: these two, shape (2, replications); None if all waits count.
    """

    def __init__(self, shape: tuple[int, int], moments_s: np.ndarray | None):
        self._idle_s = np.zeros(shape)
        self._moments_s = np.array([[-np.inf], [np.inf]]) if moments_s is None else moments_s
        self._moments_s = np.broadcast_to(self._moments_s, (2, shape[0]))

    @property
    def sums(self) -> tuple[np.ndarray, np.ndarray]:
        """The moments, and seconds to which waits between them may be added, shape (replications, ranks)."""
        return np.require(self._moments_s, float, ["C", "W"]), self._idle_s

    def begin_step(self, table: Decided, _ends_s: list[np.ndarray]) -> None:
        """As of LateWaits."""
        self._table = table

    def add(self, cycle: Cycle | Moved) -> None:
        """As of LateWaits."""
        if len(cycle.rows):
            cycle.add(self._idle_s, self._table, *self._moments_s)

    def idle_s(self, _warmup: int, _low_s: np.ndarray, _high_s: np.ndarray) -> np.ndarray:
        """Seconds waited, shape (replications, ranks)."""
        return self._idle_s
