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

EVERY_S = 1.0  # between two looks at the clock, at most


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
    one, here = object(), threading.get_ident()
    _watch.add(one, time.thread_time() + seconds, here)
    try:
        try:
            yield
        except _Over:
            raise
        except BaseException:
            _settle(one)
            raise
        _settle(one)
    except _Over as error:
        raise failure(error) from None


def within(limit_s: float) -> AbstractContextManager[None]:
    """Whatever runs within it ends after so many seconds of this thread's processor time, however busy the machine is.

    Raises:
        RunFailed: it was not over by then; with the line of the user's text that ran.
    """
    said = f"no end within {limit_s:g} s of processor time: a loop that does not end"
    return ended_after(limit_s, f"{said}, or a job for which --time-limit SECONDS has to be longer")


def ended_after(seconds: float, said: str) -> AbstractContextManager[None]:
    """The same, with other words behind the line of the user's text."""

    def failure(error: BaseException) -> RunFailed:
        place = own.place(error)
        return RunFailed(f"{place}: {said}" if place else said)

    return deadline(seconds, failure)


def _settle(one: object) -> None:
    """The work is done. If the deadline has come just now, it is raised here, and not in what follows.

    It cannot be taken back: CPython 3.11 would then look for it for ever, and hang if a profile is made.
    """
    began_s = time.monotonic()
    while not _watch.remove(one) and time.monotonic() < began_s + EVERY_S:
        pass


class _Watch:
    """Looks at the clock in a thread of its own while there are deadlines: a thread for each takes longer than a small job."""

    def __init__(self) -> None:
        self.lock, self._looks = threading.RLock(), False  # who has it is not interrupted
        self._open: dict[object, tuple[float, int]] = {}  # deadlines, and whose thread's clock each is of

    def add(self, one: object, until_s: float, thread: int) -> None:
        """A deadline of a thread."""
        with self.lock:
            self._open[one] = until_s, thread
            if not self._looks:
                self._looks = True
                threading.Thread(target=self._look, daemon=True).start()

    def remove(self, one: object) -> bool:
        """Whether it was still to come; it will not."""
        with self.lock:
            return self._open.pop(one, None) is not None

    def _look(self) -> None:
        """Tell those whose deadlines have passed, until there is none to come."""
        looks = True
        while looks:
            with self.lock:
                left_s = {one: until_s - _clock_s(thread) for one, (until_s, thread) in self._open.items()}
                for one in [one for one, seconds in left_s.items() if seconds <= 0]:
                    del left_s[one]
                    thread = self._open.pop(one)[1]  # which raises it at its next step
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(_Over))
                self._looks = looks = bool(left_s)
            time.sleep(min(EVERY_S, *left_s.values()) if left_s else 0)


def _clock_s(thread: int) -> float:
    """Seconds of the processor that a thread has had."""
    return time.clock_gettime(time.pthread_getcpuclockid(thread))


_watch = _Watch()
