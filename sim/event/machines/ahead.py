"""Messages on their way to a rank to which rank 0 alone sends, as far as is known of the protocol."""

from __future__ import annotations

import math

from sim.event.shortcut import ShortCutFailed


class Ahead:
    """They need no event: a rank that waits for a message goes on at once, before the message has reached the port.

    This is correct as long as no other message reaches the port first.

    Args:
        mechanics: sim.event.machines.free.Free, of the rank.
    """

    __slots__ = ("_ahead_s", "_mechanics", "_pending")

    def __init__(self, mechanics):
        self._mechanics, self._pending, self._ahead_s = mechanics, 0, -math.inf

    def add(self, reach_s: float, message) -> None:
        """A message will reach the port."""
        mechanics = self._mechanics
        if message.sender or self._pending or reach_s < self._ahead_s or not mechanics.waits_for(0):
            self._pending += 1
            mechanics.env.call(reach_s, self._reached_late, message)
        else:
            self._ahead_s = reach_s
            mechanics.deliver(reach_s, message)

    def _reached_late(self, message) -> None:
        """A message reaches the port.

        Raises:
            ShortCutFailed: a later one was handed over ahead of time.
        """
        self._pending -= 1
        now_s = self._mechanics.env.now
        if now_s < self._ahead_s:
            raise ShortCutFailed
        self._mechanics.deliver(now_s, message)
