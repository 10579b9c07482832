"""Recursive doubling: fewest rounds, for small messages."""

from __future__ import annotations

from collections.abc import Sequence

from sim.collectives.base import Exchanges, hand, swap, take


def recursive_doubling(rank: int, group: Sequence[int], whole: slice) -> Exchanges:
    """Each rank swaps the whole vector with the rank at distance 1, then 2, 4, ...

    Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in MPICH", IJHPCA 2005, section 4.5. n
    ranks, a power of two, m bytes: log2 n rounds of m bytes.

    Other numbers are folded to the power below: the first ranks form pairs. The first of a pair sends its vector to the second, sits
    out, and receives the result.
    """
    beyond = len(group) - (1 << (len(group).bit_length() - 1))
    index = group.index(rank)
    if index < 2 * beyond:
        peer = group[index ^ 1]
        if index % 2 == 0:
            yield hand(peer, whole)
            yield take(peer, whole)
            return
        yield take(peer, whole, adds=True)
    yield from _double(rank, [*group[1 : 2 * beyond : 2], *group[2 * beyond :]], whole)
    if index < 2 * beyond:
        yield hand(peer, whole)


def _double(rank: int, group: Sequence[int], whole: slice) -> Exchanges:
    distance, index = 1, group.index(rank)
    while distance < len(group):
        yield swap(group[index ^ distance], whole, whole, adds=True)
        distance *= 2
