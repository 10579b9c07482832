"""Programs are kept: jobs share one if they have one text, and all that was read of a job while the text was lowered is equal."""

from __future__ import annotations

import inspect
from types import MethodType
from typing import Any, NamedTuple

from sim.base.home import installed
from sim.language.engine.primitives import Program, lowered
from sim.language.job import Job
from sim.language.text import Text

MOST_KEPT = 64
OURS = installed("sim.texts")  # texts of others may read what is no part of a job


class Noted:
    """A job of which it is noted what is read.

    Attributes:
        read: values by name.
    """

    def __init__(self, job: Job):
        self._job, self.read = job, dict[str, Any]()

    def __getattr__(self, name: str) -> Any:
        method = getattr(type(self._job), name, None)
        if inspect.isfunction(method):
            return MethodType(method, self)
        self.read[name] = getattr(self._job, name)
        return self.read[name]


class Kept(NamedTuple):
    """A program, of which text, and what was read of the job."""

    text: Text
    read: dict[str, Any]
    program: Program


_kept: list[Kept] = []


def program_of(job: Job, text: Text) -> Program:
    """The text's program for a job.

    Raises:
        NotLowered: the engine does not understand the text.
    """
    for one in _kept:
        if one.text == text and all(getattr(job, name) == value for name, value in one.read.items()):
            return one.program
    noted: Any = Noted(job)
    found = lowered(noted, text)
    if type(text).__module__.startswith(OURS):
        _kept[:] = [Kept(text, noted.read, found), *_kept[: MOST_KEPT - 1]]
    return found
