"""A deadline for work that reads no clock itself, by the processor time of its thread: a busy machine ends nothing."""

from __future__ import annotations

import ctypes
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from sim.base import own
from sim.base.errors import RunFailed

EVERY_S = 1.0  # between two looks at the clock, at most,
AGAIN_S = 0.05  # and after the deadline
STEPS = 100  # in Python, by which it has been raised if it ever is


class _Over(BaseException):
    """The deadline has passed; nothing but `deadline` catches it."""


@contextmanager
def deadline(seconds: float, failure: Callable[[BaseException], Exception]) -> Iterator[None]:
    """End what is done within it after so many seconds of the processor, between two of its steps in Python.

    Args:
        failure: the error that is raised then, of one whose traceback says where the work was.
    """
    if seconds == math.inf:
        yield
        return
    watch = _Watch(time.thread_time() + seconds, threading.get_ident())
    try:
        try:
            watch.start()
            yield
        finally:
            while not watch.settled:
                try:
                    watch.settle()
                except _Over:  # sent when the work had ended
                    continue
    except _Over as error:
        raise failure(error) from None


def ended_after(seconds: float, said: str) -> AbstractContextManager[None]:
    """Whatever runs within it ends after so many seconds of this thread's processor time, however busy the machine is.

    Raises:
        RunFailed: it was not over by then; with the line of the user's text that ran, and these words.
    """

    def failure(error: BaseException) -> RunFailed:
        place = own.place(error)
        return RunFailed(f"{place}: {said}" if place else said)

    return deadline(seconds, failure)


class _Watch(threading.Thread):
    """Looks at the processor clock of a thread until its work is done; from a time on it raises _Over there at each look.

    One may be lost: Python drops what is raised while it collects garbage or deletes an object, and a text may catch it.

    Args:
        until_s: of that clock.
        of: the thread.
    """

    def __init__(self, until_s: float, of: int):
        super().__init__(daemon=True)
        self._until_s, self._of = until_s, of
        self._lock, self._done, self.settled = threading.Lock(), threading.Event(), False

    def run(self) -> None:
        """Look, at least every so often, because the clock stands still while the thread waits."""
        wait_s = 0.0
        while not self._done.wait(wait_s):
            with self._lock:  # the thread is there as long as its work is not done
                if self._done.is_set():
                    return
                wait_s = self._until_s - time.clock_gettime(time.pthread_getcpuclockid(self._of))
                if wait_s <= 0:  # it is raised at the next step in Python
                    wait_s = AGAIN_S
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._of), ctypes.py_object(_Over))
            wait_s = min(EVERY_S, wait_s)

    def settle(self) -> None:
        """The work is done: nothing is raised from here on. What was sent before is raised in here, and not in what follows.

        It cannot be taken back: CPython 3.11 would then look for it for ever, and hang if a profile is made.
        """
        with self._lock:
            self._done.set()
        for _ in range(STEPS):
            pass
        self.settled = True
