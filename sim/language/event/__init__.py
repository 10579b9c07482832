"""The event world of the language: the reference. world.py runs the clock; task.py executes commands; then mail.py, links.py, cores.py."""

from __future__ import annotations

from sim.language.event.world import EventWorld
from sim.language.job import Job, Result
from sim.language.text import Text


def run(job: Job, text: Text, values=None) -> Result:
    """Run a job to its end.

    Args:
        values: what computes with values (sim.language.learning); None computes nothing.

    Raises:
        RunFailed: ranks wait for one another for ever, or a text does what no world can run.
    """
    return EventWorld(job, text, values).run()
