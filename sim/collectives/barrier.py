"""A barrier: nobody goes on before all have come."""

from __future__ import annotations

from collections.abc import Sequence

from sim.collectives.base import Exchange, Exchanges


def barrier(rank: int, group: Sequence[int]) -> Exchanges:
    """Each rank sends to the rank at distance 1, then 2, 4, ... beyond it, and receives from the one as far before it.

    The dissemination barrier, as MPI_Ibarrier of Open MPI: Hensgen, Finkel and Manber, "Two Algorithms for Barrier Synchronization",
    International Journal of Parallel Programming 17, 1988. n ranks: ceil(log2 n) rounds of empty messages.
    """
    n, index, distance = len(group), group.index(rank), 1
    while distance < n:
        yield Exchange(to=group[(index + distance) % n], source=group[index - distance])
        distance *= 2
