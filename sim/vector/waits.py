"""Seconds that the ranks of a group have waited, from the end of some step on; in every replication at once."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile

import numpy as np

Wait = tuple[np.ndarray | slice, np.ndarray, np.ndarray]  # ranks, from, to


class Waits:
    """Waits are counted as they settle: once rank 0 is so far that no later end of the run cuts them.

    Args:
        shape: (replications, ranks).
        steps: from the ends of so many steps on.
    """

    def __init__(self, shape: tuple[int, int], steps: Iterable[int]):
        self._idle_s = {count: np.zeros(shape) for count in steps}
        self._open: list[Wait] = []
        self._own_s: np.ndarray | None = None
        self._whole: set[int] = set()  # those after which all ranks' further waits begin

    sums = None  # waits are to be told one by one

    def __len__(self) -> int:
        """How many there are that have not settled."""
        return len(self._open)

    def add(self, start_s: np.ndarray, end_s: np.ndarray, ranks: np.ndarray | slice) -> None:
        """Ranks wait from start_s to end_s, not at all where that is earlier."""
        self._open.append((ranks, start_s, np.maximum(start_s, end_s)))

    def add_own(self, seconds: np.ndarray) -> None:
        """Rank 0, alone in its group, has waited since its last update, shape (replications, 1)."""
        self._own_s = seconds if self._own_s is None else self._own_s + seconds

    def updated(self, ended: Iterable[int]) -> None:
        """Rank 0, alone in its group, has made an update; waits are counted from the ends of those steps on that had ended before."""
        if self._own_s is not None:
            for count in ended:
                self._idle_s[count] += self._own_s
        self._own_s = None

    def settle(self, lows_s: dict[int, np.ndarray], clock_s: np.ndarray) -> None:
        """Count waits that ended before rank 0's clock: its next update, maybe the last, will not cut them.

        Args:
            lows_s: when so many steps had ended, where they have and that may matter; shape (replications,).
            clock_s: where rank 0 is, shape (replications,).
        """
        if not self._open:
            return
        settled = list(takewhile(lambda wait: (wait[-1] <= clock_s[:, None]).all(), self._open))
        del self._open[: len(settled)]
        for count, low_s in lows_s.items():
            if count in self._whole:
                for ranks, start_s, end_s in settled:
                    self._idle_s[count][:, ranks] += end_s - start_s
            else:
                _count(self._idle_s[count], settled, low_s, np.inf)

    def begin(self, lows_s: dict[int, np.ndarray], now_s: np.ndarray) -> None:
        """No further wait begins before now_s, where all ranks are, shape (replications, ranks); `lows_s` as above."""
        for count in lows_s.keys() - self._whole:
            if not self._open and (now_s >= lows_s[count][:, None]).all():
                self._whole.add(count)

    def idle_s(self, steps: int, low_s: np.ndarray, high_s: np.ndarray) -> np.ndarray:
        """Seconds waited from low_s, when so many steps had ended, to high_s, shape (replications, ranks)."""
        return _count(self._idle_s[steps].copy(), self._open, low_s, high_s[:, None])


def _count(idle_s: np.ndarray, waits: Iterable[Wait], low_s: np.ndarray, high_s: np.ndarray | float) -> np.ndarray:
    """Add the seconds of waits after low_s and before high_s."""
    for ranks, start_s, end_s in waits:
        idle_s[:, ranks] += np.maximum(np.minimum(end_s, high_s) - np.maximum(start_s, low_s[:, None]), 0)
    return idle_s


class Between:
    """Waits between two moments that are known beforehand; otherwise as Waits.

    Args:
        shape: (replications, ranks).
        moments_s: these two, shape (2, replications); None if all waits count.
        counts_own: in which replications waits of rank 0, alone in its group, count, shape (replications,).
    """

    def __init__(self, shape: tuple[int, int], moments_s: np.ndarray | None, counts_own: np.ndarray):
        self._moments_s, self._counts_own, self._idle_s = moments_s, counts_own, np.zeros(shape)

    def __len__(self) -> int:
        return 0

    @property
    def sums(self) -> tuple[np.ndarray, np.ndarray]:
        """The moments, and seconds to which waits of all ranks between them may be added, shape (replications, ranks)."""
        if self._moments_s is None:
            return np.array([[-np.inf], [np.inf]]) * np.ones(len(self._idle_s)), self._idle_s
        return self._moments_s, self._idle_s

    def add(self, start_s: np.ndarray, end_s: np.ndarray, ranks: np.ndarray | slice) -> None:
        """As of Waits."""
        if self._moments_s is None:
            self._idle_s[:, ranks] += np.maximum(end_s - start_s, 0)
        else:
            _count(self._idle_s, [(ranks, start_s, end_s)], self._moments_s[0], self._moments_s[1][:, None])

    def add_own(self, seconds: np.ndarray) -> None:
        """As of Waits."""
        self._idle_s += np.where(self._counts_own[:, None], seconds, 0)

    def updated(self, _ended: Iterable[int]) -> None:
        """It is known beforehand which waits count."""

    def settle(self, _lows_s: dict[int, np.ndarray], _clock_s: np.ndarray) -> None:
        """All are counted."""

    def begin(self, _lows_s: dict[int, np.ndarray], _now_s: np.ndarray) -> None:
        """It is known beforehand which waits count."""

    def idle_s(self, _steps: int, _low_s: np.ndarray, _high_s: np.ndarray) -> np.ndarray:
        """Seconds waited, shape (replications, ranks)."""
        return self._idle_s
