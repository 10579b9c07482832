"""Progress of long work, and an estimate of the time left: a line every few seconds on stderr. Quick work prints nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Iterator
from typing import TypeVar

EVERY_S, EVERY_SHARE = 5.0, 0.05  # between two lines, and before the first; of the time since the start, as it grows
Item = TypeVar("Item")

_under_way: list[Progress] = []  # in this process, the outermost first


class Progress:
    """Work that is under way, as a context. Within another one it is silent.

    Args:
        doing: what is done: "simulating".
        total: of its work, in any unit, as far as it can be known before; None: unknown.
    """

    def __init__(self, doing: str, total: float | None = None):
        self.doing, self.total, self.done = doing, total, 0.0
        self._began_s = self._said_s = self._advanced_s = time.monotonic()
        self._longest_s = 0.0

    def __enter__(self) -> Progress:
        _under_way.append(self)
        return self

    def __exit__(self, *_) -> None:
        _under_way.remove(self)

    def advance(self, work: float = 1.0, label: str = "") -> None:
        """So much more work is done; `label` says which."""
        self.done += work
        now_s, over = time.monotonic(), self.total is not None and self.done >= self.total
        self._longest_s, self._advanced_s = max(self._longest_s, now_s - self._advanced_s), now_s
        if _under_way[:1] != [self] or over:
            return
        if now_s - self._said_s >= max(EVERY_S, EVERY_SHARE * (now_s - self._began_s)):
            self._said_s = now_s
            share = (
                f"{self.done / self.total:.0%}{self.left}"
                if self.total
                else f"{duration(now_s - self._began_s)} so far"
            )
            print(f"{self.doing}: {share}{f' ({label})' * bool(label)}", file=sys.stderr, flush=True)

    @property
    def left(self) -> str:
        """The time left, as in ", about 3 min left"; none while one advance took half of the time: the pace of the others may differ."""
        took_s = time.monotonic() - self._began_s
        if not (self.total and self.done) or 2 * self._longest_s > took_s:
            return ""
        return f", about {duration(took_s * max(0.0, self.total / self.done - 1))} left"


def advance(work: float = 1.0, label: str = "") -> None:
    """So much more of the work under way is done, if any is under way."""
    if _under_way:
        _under_way[-1].advance(work, label)


def each(items: Collection[Item], doing: str, label: Callable[[Item], str] = str) -> Iterator[Item]:
    """The items, each of which is done when the next one is asked for."""
    with Progress(doing, len(items)) as progress:
        for item in items:
            yield item
            progress.advance(label=label(item))


def duration(seconds: float) -> str:
    """Seconds, minutes, or hours and minutes, as one says them."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
