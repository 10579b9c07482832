"""The event world of the language: the reference. world.py runs the clock; task.py executes commands; then mail.py, links.py, cores.py."""

from __future__ import annotations

import math
from collections.abc import Callable

from sim.language.event.world import EventWorld
from sim.language.job import Job, Result
from sim.language.text import Text


def run(
    job: Job, text: Text, values=None, is_over: Callable[[int], bool] | None = None, most_bytes: float = math.inf
) -> Result:
    """Run a job to its end.

    Args:
        values, most_bytes: see EventWorld.
        is_over: see EventWorld.run.

    Raises:
        RunFailed: ranks wait for one another for ever, or a text does what no world can run.
        WrongSetting: the job takes more memory than it may.
    """
    return EventWorld(job, text, values, most_bytes).run(is_over)
