"""One rank of a launch that sums vectors of small and many chunks by every algorithm, and compares.

mpirun ... python -m mpi4py tests/mpi/sum_for_real.py
"""

import numpy as np

from real.ranks import join
from real.worlds.collective import CollectiveForReal
from sim import collectives

SIZES = (1, 30_000, 3_000_000)  # smaller than the ranks, sent at once, and sent when asked for in chunks


class Summing(CollectiveForReal):
    """As little of a rank as a sum takes."""

    def __init__(self, comm, items: int):
        self.comm, self.rank, self.hosts, self.now_s = comm, comm.rank, [0] * comm.size, 0.0
        self._vector = (np.arange(items) % 7 + comm.rank).astype(np.float32)
        self._taken, self._leaving = np.zeros_like(self._vector), []

    def _record(self, *about, **more) -> None:
        pass


def sums(comm) -> None:
    ranks = comm.size
    for algorithm in (*collectives.FLAT, "hierarchical"):
        for items in SIZES:
            me = Summing(comm, items)
            for exchange in collectives.allreduce(algorithm, me.rank, me.hosts, slice(0, items)):
                list(me.exchange(exchange))
            list(me.departed())
            expected = ranks * (np.arange(items) % 7) + ranks * (ranks - 1) / 2
            assert np.array_equal(me._vector, expected), (algorithm, items)


if __name__ == "__main__":
    join("sum_for_real", sums)
