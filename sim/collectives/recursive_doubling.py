"""Recursive doubling: fewest rounds, for small messages."""

from __future__ import annotations

from collections.abc import Sequence

from sim.collectives.base import Exchanges, folded, swap


def recursive_doubling(rank: int, group: Sequence[int], whole: slice) -> Exchanges:
    """Everything is swapped with the rank at distance 1, then 2, 4, ...

    Thakur, Rabenseifner, Gropp, IJHPCA 2005, section 4.5. n ranks, a power of two, m bytes: log2 n rounds of m bytes. Others
    are folded to the power below.
    """
    return folded(_double, rank, group, whole)


def _double(rank: int, group: Sequence[int], whole: slice) -> Exchanges:
    distance, index = 1, group.index(rank)
    while distance < len(group):
        yield swap(group[index ^ distance], whole, whole, adds=True)
        distance *= 2
