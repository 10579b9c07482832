"""A text that runs: it goes on when an event that it waits for has happened."""

from __future__ import annotations

from collections.abc import Callable


class Thread:
    """Drives one generator. It yields a SimPy event to wait for, or None where another part calls `go`.

    Args:
        rank: whose text it is.
        ended: called when the text is at its end.
    """

    __slots__ = ("alive", "ended", "rank", "text")

    def __init__(self, rank, text, ended: Callable[[], object]):
        self.rank, self.text, self.ended, self.alive = rank, text, ended, True

    def go(self, value=None) -> None:
        """Go on with the value of what was waited for."""
        self.rank.clock_s = self.rank.env.now
        try:
            awaited = self.text.send(value)
        except StopIteration:
            self.alive = False
            self.ended()
            return
        if awaited is not None:
            awaited.callbacks.append(self._fired)

    def _fired(self, event) -> None:
        self.go(event.value)


class Strand(Thread):
    """One of several texts of a rank."""

    __slots__ = ()

    def go(self, value=None) -> None:
        """Go on with the value of what was waited for; the rank's thread is this one meanwhile."""
        rank, before = self.rank, self.rank.thread
        rank.thread = self
        super().go(value)
        rank.thread = before
