"""The event world of the language: the reference. world.py runs the clock; task.py executes commands; then mail.py, links.py, cores.py."""

from __future__ import annotations

from collections.abc import Callable

from sim.language.event.world import EventWorld
from sim.language.job import Job, Result
from sim.language.text import Text


def run(job: Job, text: Text, values=None, is_over: Callable[[int], bool] | None = None) -> Result:
    """Run a job to its end.

    Args:
        values: what computes with values (sim.language.learning); None computes nothing.
        is_over: asked now and then with the number of steps that are complete; the run ends with them once it says so.

    Raises:
        RunFailed: ranks wait for one another for ever, or a text does what no world can run.
    """
    return EventWorld(job, text, values).run(is_over)
