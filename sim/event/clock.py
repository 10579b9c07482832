"""SimPy's environment, which also calls functions at simulated times."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

import simpy
from simpy.events import NORMAL

CALL = 5  # items of an entry that is a call: time, priority, number, function, argument; an event's has four


class Clock(simpy.Environment):
    """An environment whose queue holds events and plain calls in one order: by time, then by the order in which they were scheduled.

    A call costs a third of an event: there is no object, no list of callbacks, and no step for each.
    """

    def call(self, time_s: float, function, argument=None) -> None:
        """Call function(argument) at a simulated time, which has not passed."""
        queue: list[Any] = self._queue
        heappush(queue, (time_s, NORMAL, next(self._eid), function, argument))

    def after(self, seconds: float, function, argument=None) -> None:
        """Call function(argument) after some seconds."""
        self.call(self._now + seconds, function, argument)

    def run_until(self, over: simpy.Event) -> bool:
        """Run until the event `over` is processed. False if nothing is left to happen before that."""
        queue: list[Any] = self._queue
        while queue:
            entry = heappop(queue)
            self._now = entry[0]
            if len(entry) == CALL:
                entry[3](entry[4])
                continue
            event = entry[3]
            callbacks, event.callbacks = event.callbacks, None
            for callback in callbacks:
                callback(event)
            if not event._ok and not hasattr(event, "_defused"):
                raise event._value
            if event is over:
                return True
        return False
