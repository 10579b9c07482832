"""Messages on their way to a port to which several ranks send."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

from sim.event.clock import Clock
from sim.verbs.book import TIE_S


class InTurn:
    """They reach it one by one, in order; the clock has an entry for each.

    Args:
        reaches: reaches(reach_s, message) hands one over to the port.
    """

    __slots__ = ("_clock", "_coming", "_reaches")

    def __init__(self, clock: Clock, reaches):
        self._clock, self._reaches = clock, reaches
        self._coming: list[Any] = []  # a heap: when each reaches the port, a number, and the message

    def add(self, reach_s: float, message) -> None:
        """A message will reach the port."""
        heappush(self._coming, (reach_s, next(self._clock._eid), message))
        self._clock.call(reach_s, self._reached)

    def _reached(self, _) -> None:
        """A message reaches the port."""
        coming = self._coming
        first = heappop(coming)
        if coming and coming[0][0] <= first[0] + TIE_S:
            first = self._first_of_ties(first)
        reach_s, _number, message = first
        self._reaches(reach_s, message)

    def _first_of_ties(self, first):
        """The message of the lowest sender among those that come together; the others stay on their way."""
        coming, ties = self._coming, [first]
        while coming and coming[0][0] <= first[0] + TIE_S:
            ties.append(heappop(coming))
        ties.sort(key=lambda one: (one[2].sender, one[:2]))
        for other in ties[1:]:
            heappush(coming, other)
        return ties[0]
