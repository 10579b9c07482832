"""Messages on their way to one port."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

from simpy.events import NORMAL

from sim.event.clock import Clock

Coming = tuple[
    float, int, Any
]  # when a message reaches the port, seconds; its number among the clock's entries; the message


class Arrivals:
    """Messages on their way to one port, in the order in which they reach it. The clock has an entry for the first of them alone.

    Messages are handed over one after another until something else happens first. With an entry for each message, those of 10,000
    workers would make the clock's heap 10,000 entries long.

    Args:
        deliver: deliver(reach_s, message) hands one over to the port.
    """

    __slots__ = ("_clock", "_coming", "_deliver", "_entries")

    def __init__(self, clock: Clock, deliver):
        self._clock, self._deliver = clock, deliver
        self._coming: list[Coming] = []  # a heap
        self._entries: list[Coming] = []  # of the clock's entries, the soonest last

    def add(self, reach_s: float, message) -> None:
        """A message will reach the port."""
        entries = self._entries
        coming = (reach_s, next(self._clock._eid), message)
        heappush(self._coming, coming)
        if not entries or reach_s < entries[-1][0]:
            self._enter(coming)

    def _enter(self, coming: Coming) -> None:
        self._entries.append(coming)
        queue: list[Any] = self._clock._queue
        heappush(queue, (coming[0], NORMAL, coming[1], self._arrive, None))

    def _arrive(self, _) -> None:
        """Hand over all that reach the port before anything else happens."""
        clock, deliver, entries, waiting = self._clock, self._deliver, self._entries, self._coming
        queue: list[Any] = clock._queue
        entries.pop()
        while waiting:
            coming = waiting[0]
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
            heappop(waiting)
            clock._now = reach_s
            deliver(reach_s, coming[2])
