"""Waiting for MPI without spinning: a rank that waits inside MPI takes a core that others need."""

from __future__ import annotations

import time
from collections.abc import Callable

from sim.base.errors import RunFailed
from sim.platform.polling import LONGEST_S, pause_s

TAG = 1  # of messages of programs of ours that have one kind alone
PATIENCE_S = 600.0
BETWEEN_RUNS_S = 5e-3  # nobody measures there


def poll(done: Callable[[], bool], what: str, patience_s: float = PATIENCE_S, longest_s: float = LONGEST_S) -> None:
    """Ask `done` again and again, asleep in between (sim.platform.polling).

    Raises:
        RunFailed: it took more than `patience_s`.
    """
    start_s = time.perf_counter()
    while not done():
        waited_s = time.perf_counter() - start_s
        if waited_s > patience_s:
            raise RunFailed(f"waited {patience_s:g} s for {what}")
        time.sleep(pause_s(waited_s, longest_s))


def arrived(comm, source: int, tag: int, status=None) -> bool:
    """Whether a message can be received; polled twice, because Open MPI's first poll only takes it off the wire."""
    return comm.Iprobe(source, tag, status) or comm.Iprobe(source, tag, status)


def receive(comm, into, source: int, tag: int, here: bool) -> None:
    """Receive a message that has begun to come: of a rank on this host (`here`) copy it, of another sleep while it travels."""
    if here:
        comm.Recv(into, source, tag)
    else:
        poll(comm.Irecv(into, source, tag).Test, f"the rest of what rank {source} sends")


def barrier(comm, patience_s: float = 3600.0) -> None:
    """Wait at a barrier; the ranks sleep meanwhile."""
    poll(comm.Ibarrier().Test, "a barrier", patience_s, BETWEEN_RUNS_S)
