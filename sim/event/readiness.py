"""Which gradients of variables are ready, at each rank and at all of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import itemgetter


class Readiness:
    """When the last rank had its count-th gradient since the start, and the ranks that wait for this.

    Args:
        at: at(seconds, call) calls at a simulated time.
    """

    def __init__(self, ranks: int, at: Callable[[float, Callable[[], object]], object]):
        self._ranks, self._at = ranks, at
        self._announced: list[int] = []  # how many ranks have had the count-th
        self._last_s: list[float] = []
        self._waiting: dict[int, list[tuple[int, Callable[[], object]]]] = {}

    def announce(self, count: int, at_s: float) -> None:
        """One rank's count-th gradient, from 0, is ready then."""
        if count == len(self._announced):
            self._announced.append(0)
            self._last_s.append(0.0)
        self._announced[count] += 1
        self._last_s[count] = max(self._last_s[count], at_s)
        if self._announced[count] == self._ranks:
            self._at(self._last_s[count], partial(self._go_on, count))

    def everywhere_s(self, count: int) -> float | None:
        """When all ranks have the count-th; None if that is not known yet."""
        known = count < len(self._announced) and self._announced[count] == self._ranks
        return self._last_s[count] if known else None

    def is_to_come(self, count: int, now_s: float) -> bool:
        """Whether some rank does not have it yet."""
        last_s = self.everywhere_s(count)
        return last_s is None or last_s > now_s

    def wait(self, count: int, rank: int, call: Callable[[], object]) -> None:
        """Call when all have it; ranks that wait for the same gradient go on in the order of their numbers."""
        self._waiting.setdefault(count, []).append((rank, call))

    def _go_on(self, count: int) -> None:
        for _, call in sorted(self._waiting.pop(count, ()), key=itemgetter(0)):
            call()
