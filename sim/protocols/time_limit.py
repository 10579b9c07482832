"""An end to a user's text that does not end: after so many seconds of the processor, wherever it is."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from sim.base.errors import RunFailed
from sim.protocols import own


class _Over(BaseException):
    """Time is over: a text cannot catch it by mistake."""


@contextmanager
def within(limit_s: float) -> Iterator[None]:
    """Whatever runs within it ends after so many seconds of this process' processor time, however busy the machine is.

    In another thread than the main one, which alone takes signals, there is no limit.

    Raises:
        RunFailed: it was not over by then; with the line of the user's text that ran.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGVTALRM, _end)
    signal.setitimer(signal.ITIMER_VIRTUAL, limit_s, 1.0)
    try:
        yield
    except _Over as error:
        where = f"{error}: " if str(error) else ""
        said = f"{where}no end within {limit_s:g} s of processor time: a loop that does not end"
        raise RunFailed(f"{said}, or a job for which --time-limit SECONDS has to be longer") from None
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, before)


def _end(_, frame) -> None:
    """Raise, with the innermost line of a user's own files."""
    while frame is not None and frame.f_code.co_filename not in own.SOURCES:
        frame = frame.f_back
    raise _Over(f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}" if frame else "")
