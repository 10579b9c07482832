"""Which gradients of variables are ready, at each rank and at all of them."""

from __future__ import annotations

from collections.abc import Callable


class Readiness:
    """When the count-th gradient since the start was ready at the last rank; who waits to know.

    Args:
        at: at(seconds, call) calls at a simulated time.
    """

    def __init__(self, ranks: int, at: Callable[[float, Callable[[], object]], object]):
        self._ranks, self._at = ranks, at
        self._announced: list[int] = []  # how many ranks have had the count-th
        self._last_s: list[float] = []
        self._waiting: dict[int, list[Callable[[], object]]] = {}

    def announce(self, count: int, at_s: float) -> None:
        """One rank's count-th gradient, from 0, is ready then."""
        if count == len(self._announced):
            self._announced.append(0)
            self._last_s.append(0.0)
        self._announced[count] += 1
        self._last_s[count] = max(self._last_s[count], at_s)
        if self._announced[count] == self._ranks:
            for call in self._waiting.pop(count, ()):
                self._at(self._last_s[count], call)

    def announce_all(self, count: int, at_s: list[float]) -> None:
        """One rank's gradients from the count-th are ready then, one after another."""
        missing = count + len(at_s) - len(self._announced)
        if missing > 0:
            self._announced += [0] * missing
            self._last_s += [0.0] * missing
        announced, last_s, ranks = self._announced, self._last_s, self._ranks
        for number, ready_s in enumerate(at_s, count):
            announced[number] += 1
            last_s[number] = max(last_s[number], ready_s)
            if announced[number] == ranks:
                for call in self._waiting.pop(number, ()):
                    self._at(last_s[number], call)

    def everywhere_s(self, count: int) -> float | None:
        """When all ranks have the count-th; None if that is not known yet."""
        known = count < len(self._announced) and self._announced[count] == self._ranks
        return self._last_s[count] if known else None

    def when_known(self, count: int, call: Callable[[], object]) -> None:
        """Call when all have it."""
        self._waiting.setdefault(count, []).append(call)
