"""Waiting for MPI without spinning: a rank that waits inside MPI takes a core that others need."""

from __future__ import annotations

import time
from collections.abc import Callable

from sim.errors import RunFailed

POLL_S = 100e-6
LONG_POLL_S = 2e-3  # between cells of a campaign, where nobody measures


def poll(done: Callable[[], bool], what: str, patience_s: float = 600.0, every_s: float = POLL_S) -> None:
    """Ask `done` again and again, asleep in between.

    Raises:
        RunFailed: it took more than `patience_s`.
    """
    give_up_s = time.perf_counter() + patience_s
    while not done():
        if time.perf_counter() > give_up_s:
            raise RunFailed(f"waited {patience_s:g} s for {what}")
        time.sleep(every_s)


def barrier(comm, patience_s: float = 3600.0) -> None:
    """A barrier whose ranks sleep."""
    poll(comm.Ibarrier().Test, "a barrier", patience_s, LONG_POLL_S)
