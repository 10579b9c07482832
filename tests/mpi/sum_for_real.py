"""One rank of a launch of which some ranks sum vectors of small and many chunks by every algorithm, and compare.

mpirun ... python -m mpi4py tests/mpi/sum_for_real.py
"""

import numpy as np

from real.launching.ranks import join
from real.worlds.exchanges import Exchanges
from sim import collectives

RANKS = (1, 2, 3, 5)
SIZES = (1, 30_000, 3_000_000)  # smaller than the ranks, sent at once, and sent when asked for in chunks


class Recorded:
    """As little of a rank as a sum takes."""

    now_s = 0.0

    def record(self, *about, **more) -> None:
        pass

    waited = record

    def is_here(self, peer: int) -> bool:
        return True


def sums(comm) -> None:
    ranks, hosts = comm.size, [0] * comm.size
    for algorithm in (*collectives.FLAT, "hierarchical"):
        for items in SIZES:
            exchanges = Exchanges(Recorded(), comm, items - 1, range(ranks))
            exchanges.vector[:] = np.arange(items) % 7 + comm.rank
            for exchange in collectives.allreduce(algorithm, comm.rank, hosts, slice(0, items)):
                exchanges.exchange(exchange)
            exchanges.departed()
            expected = ranks * (np.arange(items) % 7) + ranks * (ranks - 1) / 2
            assert np.array_equal(exchanges.vector, expected), (algorithm, items)


def sums_of_some(comm) -> None:
    for ranks in RANKS:
        some = comm.Split(comm.rank < ranks, comm.rank)
        if comm.rank < ranks:
            sums(some)


if __name__ == "__main__":
    join("sum_for_real", sums_of_some)
