"""Ring: as few bytes as can be, in as many rounds as there are ranks."""

from __future__ import annotations

from collections.abc import Sequence

from sim.collectives.allgather import allgather
from sim.collectives.base import Exchange, Exchanges, cut


def ring(rank: int, group: Sequence[int], whole: slice) -> Exchanges:
    """Allreduce round a ring: n parts go round twice, first to be added up and then to be distributed.

    Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 2009. n ranks, m bytes:
    2 (n - 1) rounds of m / n bytes, therefore 2 m (n - 1) / n bytes through each port, the least possible.
    """
    n, index = len(group), group.index(rank)
    parts, left, right = cut(whole, n), group[index - 1], group[(index + 1) % n]
    for turn in range(n - 1):
        yield Exchange(right, parts[(index - turn) % n], left, parts[(index - turn - 1) % n], adds=True)
    yield from allgather(rank, group, [*parts[1:], parts[0]])
