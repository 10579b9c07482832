"""One clock for all ranks: seconds since a common start, offsets between hosts measured by ping-pong (Cristian, 1989)."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

import numpy as np

from real.launching.polling import barrier, poll

ROUNDS = 20
TAG = 7


class Clock:
    """This rank's perf_counter, shifted to the master's.

    Args:
        offset_s: what to add to this host's counter to have the master's.
        start_s: when the run started, by the master's counter.
    """

    def __init__(self, offset_s: float, start_s: float):
        self.offset_s, self.start_s = offset_s, start_s

    def __call__(self) -> float:
        """Seconds since the common start."""
        return time.perf_counter() + self.offset_s - self.start_s


def common_clock(comm) -> Clock:
    """A clock that starts now on all ranks of `comm`; collective."""
    mine_s = offset_s(comm, time.perf_counter)
    barrier(comm)
    return Clock(mine_s, comm.bcast(time.perf_counter()))


def offset_s(comm, read: Callable[[], float]) -> float:
    """What to add to what this rank reads from its host's clock to have rank 0's; 0 on the same host. Collective."""
    hosts = comm.allgather(socket.gethostname())
    found_s = 0.0
    for rank in range(1, comm.size):
        if hosts[rank] != hosts[0] and comm.rank in (0, rank):
            found_s = _offset(comm, rank, read)
    return found_s


def _offset(comm, rank: int, read: Callable[[], float]) -> float:
    """Rank 0 answers with its counter; `rank` keeps the answer that came back fastest."""
    stamp, rounds = np.zeros(1), []
    for _ in range(ROUNDS):
        if comm.rank == 0:
            poll(comm.Irecv(stamp, rank, TAG).Test, f"rank {rank}")
            stamp[0] = read()
            comm.Send(stamp, rank, TAG)
        else:
            asked_s = read()
            comm.Send(stamp, 0, TAG)
            comm.Recv(stamp, 0, TAG)
            answered_s = read()
            rounds.append((answered_s - asked_s, stamp[0] - (asked_s + answered_s) / 2))
    return min(rounds)[1] if rounds else 0.0
