"""Messages on their way to one port."""

from __future__ import annotations

from bisect import insort
from heapq import heappop, heappush
from typing import Any

from simpy.events import NORMAL

from sim.event.clock import Clock

Coming = tuple[
    float, int, Any
]  # when a message reaches the port, seconds; its number among the clock's entries; the message
FEW = 8  # messages that are put among the others one by one; more are sorted


class Arrivals:
    """Messages on their way to one port, in the order in which they reach it. The clock has an entry for the first of them alone.

    Many messages are sorted at once, and handed over one after another as long as nothing else happens before. A message of each
    of 10,000 workers would else make the clock's heap that long.

    Args:
        deliver: deliver(reach_s, message) hands one over to the port.
    """

    __slots__ = ("_clock", "_deliver", "_entries", "_fresh", "_next", "_sorted")

    def __init__(self, clock: Clock, deliver):
        self._clock, self._deliver = clock, deliver
        self._sorted: list[Coming] = []  # in order
        self._next = 0  # the first that has not been handed over
        self._fresh: list[Coming] = []  # those that are not among them yet
        self._entries: list[Coming] = []  # of the clock's entries, the soonest last

    def add(self, reach_s: float, message) -> None:
        """A message will reach the port."""
        clock, entries = self._clock, self._entries
        coming = (reach_s, next(clock._eid), message)
        self._fresh.append(coming)
        if not entries or reach_s < entries[-1][0]:
            self._enter(coming)

    def _enter(self, coming) -> None:
        self._entries.append(coming)
        queue: list[Any] = self._clock._queue
        heappush(queue, (coming[0], NORMAL, coming[1], self._arrive, None))

    def _arrive(self, _) -> None:
        """Hand over all that reach the port before anything else happens."""
        clock, deliver, entries = self._clock, self._deliver, self._entries
        queue: list[Any] = clock._queue
        waiting, fresh = self._sorted, self._fresh
        entries.pop()
        while True:
            if fresh:
                if len(fresh) == 1:
                    insort(waiting, fresh.pop(), self._next)
                else:
                    self._sort()
            if self._next == len(waiting):
                waiting.clear()
                self._next = 0
                return
            coming = waiting[self._next]
            reach_s = coming[0]
            if queue and queue[0][0] <= reach_s:
                first = queue[0]
                if first[2] == coming[1]:  # its own entry
                    heappop(queue)
                    entries.pop()
                elif first[:3] < (reach_s, NORMAL, coming[1]):
                    if not entries or entries[-1][:2] > coming[:2]:
                        self._enter(coming)
                    return
            self._next += 1
            if self._next > FEW and self._next > len(waiting) // 2:
                waiting[: self._next] = []
                self._next = 0
            clock._now = reach_s
            deliver(reach_s, coming[2])

    def _sort(self) -> None:
        """Put the fresh ones among the others."""
        waiting, fresh = self._sorted, self._fresh
        if len(fresh) > FEW:
            waiting[: self._next] = []
            self._next = 0
            waiting += fresh
            waiting.sort()
        else:
            for coming in fresh:
                insort(waiting, coming, self._next)
        fresh.clear()
