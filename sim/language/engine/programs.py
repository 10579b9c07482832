"""Programs are kept: jobs share one if they have one text, and all that was read of a job while the text was lowered is equal.

Whether one loop may go around their rings (rings.py): where nothing else is in the way of their ranks.
"""

from __future__ import annotations

import inspect
from collections import Counter
from types import MethodType
from typing import Any

from sim.base.home import installed
from sim.language.engine import layout as op
from sim.language.engine.primitives import Program
from sim.language.hosts import devices
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


_kept: list[Program] = []


def program_of(job: Job, text: Text) -> Program:
    """The text's program for a job.

    Raises:
        NotLowered: the engine does not understand the text.
    """
    for one in _kept:
        if one.text == text and all(getattr(job, name) == value for name, value in one.job.read.items()):
            return one
    noted: Any = Noted(job)
    found = Program(noted, text)
    if type(text).__module__.startswith(OURS):
        _kept[:] = [found, *_kept[: MOST_KEPT - 1]]
    return found


def in_the_way(job: Job, program: Program) -> str:
    """Why the rings of a job are run message by message; nothing if one loop goes around them, or there are none.

    Ranks must stand host by host, so that no two members of a ring send through one port, and none may wait for a core: those that
    compute there take turns by themselves, in the one text that a rank has, or their passes are a GPU's.
    """
    rings = [row for row in program.rows if row[0] == op.RING]
    if not rings:
        return ""
    if any(not row[1] for row in rings):
        return "the group of a ring is no range that is the same at all ranks"
    hindrances = {
        "fair": "messages share ports",
        "windows": "links have TCP's windows",
        "poll_s": "ranks poll",
        "local_wakes": "messages within a host wake their receivers",
        "message_background_s": "messages are other threads' work",
        "local_background_s": "messages are other threads' work",
    }
    for name, said in hindrances.items():
        if getattr(job, name):
            return said
    hosts = [job.host(rank) for rank in range(job.ranks)]
    if hosts != sorted(hosts):
        return "ranks do not stand host by host"
    if any((job.mix_s, job.mix_base_s, job.overhead_s, job.local_overhead_s, job.local_copy_s)):
        made, of_passes, of_work = devices(job)
        if any(made[device].contention or made[device].cores < ranks for device, ranks in Counter(of_work).items()):
            return "ranks share cores"
        if (job.background_s or program.texts) and set(of_passes) & set(of_work):
            return "passes take the cores on which a ring adds"
    return ""
