"""A text that runs: it goes on when an event that it waits for has happened."""

from __future__ import annotations

from collections.abc import Callable


class Thread:
    """Drives one generator. It yields a SimPy event to wait for, or None where another part calls `go`.

    Args:
        rank: whose text it is; `rank.clock_s` is where the text is in time, at the world's clock or ahead of it.
        ended: called when the text is at its end.
    """

    __slots__ = ("alive", "ended", "rank", "text")

    def __init__(self, rank, text, ended: Callable[[], object]):
        self.rank, self.text, self.ended, self.alive = rank, text, ended, True

    def go(self, value=None) -> None:
        """Go on with the value of what was waited for."""
        try:
            awaited = self.text.send(value)
        except StopIteration:
            self.alive = False
            self.ended()
            return
        if awaited is not None:
            awaited.callbacks.append(self._fired)

    def _fired(self, event) -> None:
        self.rank.clock_s = self.rank.env.now
        self.go(event.value)


class Strand(Thread):
    """One of several texts of a rank: each has a clock of its own, and the rank has that of the one that runs."""

    __slots__ = ("clock_s",)

    def __init__(self, rank, text, ended: Callable[[], object]):
        super().__init__(rank, text, ended)
        self.clock_s = rank.clock_s

    def go(self, value=None) -> None:
        """Go on with the value of what was waited for; the rank has this text's clock meanwhile."""
        rank = self.rank
        before, before_s = rank.thread, rank.clock_s
        rank.thread, rank.clock_s = self, self.clock_s
        super().go(value)
        self.clock_s, rank.thread, rank.clock_s = rank.clock_s, before, before_s

    def _fired(self, event) -> None:
        self.clock_s = self.rank.env.now
        self.go(event.value)
