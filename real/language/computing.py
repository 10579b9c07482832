"""The thread that computes: what texts ask for, one thing after another, and what a text asks for next as long as that computes, too."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple


class Work(NamedTuple):
    """A command that computes.

    Args:
        run: in the thread.
        then: when it has run, before its text goes on.
        quick: it takes less time than to wake another thread.
    """

    run: Callable[[], Any]
    then: Callable[[], Any]
    quick: bool = False


class Computing:
    """The thread.

    A text that computes twice goes on in this thread: to wake the main thread, and be woken by it, takes longer than much that is
    computed. Another text that has asked meanwhile comes first.

    Args:
        follow: called in the thread with a task whose work has run and whether another one waits; the task's next work, if any.
        over: called in the thread with a task that has no more, and the error that has ended it, if any.
    """

    def __init__(self, follow: Callable[[Any, bool], Work | None], over: Callable[[Any, BaseException | None], None]):
        self._follow, self._over, self._closed = follow, over, False
        self._queue, self._changed = deque[tuple[Any, Work]](), threading.Condition()
        threading.Thread(target=self._go, daemon=True).start()

    def ask(self, task: Any, work: Work) -> None:
        """Have a task's work done."""
        with self._changed:
            self._queue.append((task, work))
            self._changed.notify()

    def close(self) -> None:
        """The thread ends, and what has not begun is left undone."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def _go(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue or self._closed)
                if self._closed:
                    return
                task, first = self._queue.popleft()
            work: Work | None = first
            error = None
            try:
                while work is not None:
                    work.run()
                    work.then()
                    work = self._follow(task, bool(self._queue))
            except BaseException as raised:  # which ends the run, in the main thread
                error = raised
            self._over(task, error)
