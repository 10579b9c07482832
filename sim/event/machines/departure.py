"""When messages leave."""

from __future__ import annotations

from collections.abc import Callable


class Departure:
    """The departure of a message: known at once at a port, or when its receiver has taken the message.

    Args:
        time_s: when it leaves; None if that is not known yet.
    """

    __slots__ = ("_calls", "time_s")

    def __init__(self, time_s: float | None = None):
        self.time_s = time_s
        self._calls: list[Callable[[float], object]] = []

    def then(self, call: Callable[[float], object]) -> None:
        """Call call(time_s) as soon as the time is known."""
        if self.time_s is None:
            self._calls.append(call)
        else:
            call(self.time_s)

    def fire(self, time_s: float) -> None:
        """Take note that the message leaves then."""
        self.time_s = time_s
        for call in self._calls:
            call(time_s)
