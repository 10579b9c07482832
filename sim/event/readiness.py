"""Which gradients of variables are ready at all ranks."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter

from sim.event.clock import Clock


class Readiness:
    """When the last rank had its count-th gradient since the start, and the ranks that wait for this."""

    def __init__(self, ranks: int, clock: Clock):
        self._ranks, self._clock = ranks, clock
        self._announced: list[int] = []  # how many ranks have had the count-th
        self.everywhere_s: list[float] = []  # when the last one had it, of those that all have
        self._waiting: dict[int, list[tuple[int, Callable[[], object]]]] = {}

    def announce(self, count: int) -> None:
        """One rank's count-th gradient, from 0, is ready."""
        if count == len(self._announced):
            self._announced.append(0)
        self._announced[count] += 1
        if self._announced[count] == self._ranks:
            self.everywhere_s.append(self._clock.now)
            self._clock.after(0.0, self._go_on, count)

    def wait(self, count: int, rank: int, call: Callable[[], object]) -> None:
        """Call when all have it; ranks that wait for the same gradient go on in the order of their numbers."""
        self._waiting.setdefault(count, []).append((rank, call))

    def _go_on(self, count: int) -> None:
        for _, call in sorted(self._waiting.pop(count, ()), key=itemgetter(0)):
            call()
