"""Allgather: every rank comes to have what each rank has."""

from __future__ import annotations

from collections.abc import Sequence

from sim.collectives.base import ROWS, Exchange, Exchanges


def allgather(rank: int, group: Sequence[int], parts: Sequence[slice]) -> Exchanges:
    """Allgather round a ring: each rank passes on the part that it took last; the i-th of the group begins with the i-th part.

    Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in MPICH", IJHPCA 2005, section 4.1. n ranks with
    m bytes each: (n - 1) rounds of m bytes, so (n - 1) m through each port.
    """
    n, index = len(group), group.index(rank)
    left, right = group[index - 1], group[(index + 1) % n]
    for turn in range(n - 1):
        yield Exchange(right, parts[(index - turn) % n], left, parts[(index - turn - 1) % n])


def gather_rows(rank: int, group: Sequence[int], part: slice) -> Exchanges:
    """Every rank adds up the rows of a sparse variable that each has, as they come; those of all are as long as `part`."""
    for exchange in allgather(rank, group, [part] * len(group)):
        yield exchange._replace(adds=True, kind=ROWS)
