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
    place, count = (
        (index // 2 if index < 2 * beyond else index - beyond),
        len(group) - beyond,
    )  # of those that do not sit out
    distance = 1
    while distance < count:
        at = place ^ distance
        yield swap(group[2 * at + 1 if at < beyond else at + beyond], whole, whole, adds=True)
        distance *= 2
    if index < 2 * beyond:
        yield hand(peer, whole)
