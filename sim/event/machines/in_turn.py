"""What comes to a place where ranks take turns: messages to a port to which several ranks send, ranks to a port by which several send."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

from sim.event.clock import Clock
from sim.verbs.book import TIE_S


class InTurn:
    """They get their turns one by one, as they come; those that come together in the order of ranks. The clock has an entry for each."""

    __slots__ = ("_clock", "_coming")

    def __init__(self, clock: Clock):
        self._clock = clock
        self._coming: list[Any] = []  # a heap: when each comes, a number, its rank, and what is called then, with what

    def add(self, time_s: float, rank: int, call, argument) -> None:
        """Call `call(time_s, argument)` at the turn of something that a rank sends."""
        heappush(self._coming, (time_s, next(self._clock._eid), rank, call, argument))
        self._clock.call(time_s, self._come)

    def _come(self, _) -> None:
        coming = self._coming
        first = heappop(coming)
        if coming and coming[0][0] <= first[0] + TIE_S:
            first = self._first_of_ties(first)
        first[3](first[0], first[4])

    def _first_of_ties(self, first):
        """The entry of the lowest rank among those that come together; the others stay on their way."""
        coming, ties = self._coming, [first]
        while coming and coming[0][0] <= first[0] + TIE_S:
            ties.append(heappop(coming))
        ties.sort(key=lambda one: (one[2], one[:2]))
        for other in ties[1:]:
            heappush(coming, other)
        return ties[0]
