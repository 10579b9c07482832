"""Engines that simulate one and the same job (`job.py`), for `experiments.speed`: ours, and others beside them."""

from __future__ import annotations

from typing import NamedTuple


class Engine(NamedTuple):
    """A way to simulate a job.

    Args:
        title: its name in tables.
        entry: module:function of this package that takes a job and returns the seconds of its steps; empty: a program of its own.
        worker_steps: of one measurement, which then takes about half a second.
    """

    title: str
    entry: str
    worker_steps: int

    def steps(self, workers: int) -> int:
        """How many steps are measured with so many workers."""
        return max(LEAST_STEPS, min(MOST_STEPS, self.worker_steps // workers))


LEAST_STEPS, MOST_STEPS = 2, 10_000
REFERENCE = "simpy"  # with which all others are compared
ENGINES = {
    REFERENCE: Engine("SimPy, as documented", "plain_simpy:run", 50_000),
    "event": Engine("event world", "ours:event", 50_000),
    "engine": Engine("engine", "ours:engine", 500_000),
    "simgrid": Engine("SimGrid, C++", "", 100_000),
    "simgrid-semaphores": Engine("SimGrid, C++, no network", "", 200_000),
}
