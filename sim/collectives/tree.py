"""Binomial tree: reduce to the first rank, and broadcast back the way it came."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sim.collectives.base import Exchange, Exchanges, hand, take


def tree(
    rank: int, group: Sequence[int], whole: slice, at_root: Iterable[Exchange] = (), distance: int = 1
) -> Exchanges:
    """Binomial reduction to the first rank, then binomial broadcast (Thakur et al., IJHPCA 2005, sections 4.3 and 4.4).

    n ranks, m bytes: ceil(log2 n) rounds up and as many down, m bytes in each.

    Args:
        at_root: what the first rank does in between.
    """
    index = group.index(rank)
    if distance >= len(group):
        yield from at_root
    elif index & distance:
        yield hand(group[index - distance], whole)
        yield take(group[index - distance], whole)
    elif index + distance < len(group):
        yield take(group[index + distance], whole, adds=True)
        yield from tree(rank, group, whole, at_root, 2 * distance)
        yield hand(group[index + distance], whole)
    else:
        yield from tree(rank, group, whole, at_root, 2 * distance)
