"""Progress of long work, and an estimate of the time left: a bar on a terminal, else a line every few seconds.

It goes to stderr. Work of less than a few seconds prints nothing.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, TypeVar

EVERY_S, EVERY_SHARE = 5.0, 0.05  # between two lines, and before the first; of the time since the start, as it grows
Item = TypeVar("Item")
if TYPE_CHECKING:
    from rich.progress import Progress as Bar

_under_way: list[Progress] = []  # in this process, the outermost first


class Progress:
    """Work that is under way, as a context. Within another one it is silent.

    Args:
        doing: what is done: "simulating".
        total: of its work, in any unit, as far as it can be known before; None: unknown.
    """

    def __init__(self, doing: str, total: float | None = None):
        self.doing, self.total, self.done = doing, total, 0.0
        self._bar: Bar | None = None
        self._began_s = self._said_s = time.monotonic()

    def __enter__(self) -> Progress:
        if not _under_way and sys.stderr.isatty():
            self._bar = _bar(self.doing)
            self._bar.start()
        _under_way.append(self)
        return self

    def __exit__(self, *_) -> None:
        _under_way.remove(self)
        if self._bar:
            self._bar.stop()

    def advance(self, work: float = 1.0, label: str = "") -> None:
        """So much more work is done; `label` says which."""
        self.done += work
        if self is not _under_way[0]:
            return
        if self._bar:
            self._bar.update(self._bar.task_ids[0], completed=self.done, total=self.total, about=self.about(label))
            return
        now_s, over = time.monotonic(), self.total is not None and self.done >= self.total
        if not over and now_s - self._said_s >= max(EVERY_S, EVERY_SHARE * (now_s - self._began_s)):
            self._said_s = now_s
            print(f"{self.doing}: {self.about(label)}", file=sys.stderr, flush=True)

    def about(self, label: str = "") -> str:
        """The progress as text."""
        took_s, what = time.monotonic() - self._began_s, f" ({label})" if label else ""
        if not self.left:
            return f"{duration(took_s)} so far{what}"
        return f"{min(1.0, self.done / (self.total or 1)):.0%}{self.left}{what}"

    @property
    def left(self) -> str:
        """The time left, as in ", about 3 min left", as far as that can be known."""
        if not (self.total and self.done):
            return ""
        took_s = time.monotonic() - self._began_s
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


def _bar(doing: str) -> Bar:
    """A bar that leaves no trace, and leaves what others print where it goes."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[about]}", markup=False)
    bar = Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False, redirect_stderr=False)
    bar.add_task(doing, total=None, about="")
    return bar
