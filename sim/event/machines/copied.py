"""How messages leave within a host."""

from __future__ import annotations

from collections.abc import Callable


class Copied:
    """The departure of a message within a host: when its receiver has copied it."""

    __slots__ = ("calls", "time_s")

    def __init__(self):
        self.time_s: float | None = None
        self.calls: list[Callable[[float], None]] = []

    def fire(self, time_s: float) -> None:
        """Take note that the receiver has copied the message."""
        self.time_s = time_s
        for call in self.calls:
            call(time_s)
