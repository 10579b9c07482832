"""An end to a user's text that does not end: after so many seconds of the processor, wherever it is."""

from __future__ import annotations

from contextlib import AbstractContextManager

from sim.base.deadline import deadline
from sim.base.errors import RunFailed
from sim.protocols import own


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
