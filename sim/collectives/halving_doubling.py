"""Recursive halving and doubling: as few bytes as a ring, in few rounds."""

from __future__ import annotations

from collections.abc import Sequence

from sim.collectives.base import Exchanges, folded, swap


def halving_doubling(rank: int, group: Sequence[int], whole: slice) -> Exchanges:
    """Rabenseifner's allreduce: reduce-scatter by recursive halving, allgather by recursive doubling.

    Rabenseifner, "Optimization of Collective Reduction Operations", ICCS 2004; Thakur et al. 2005, section 4.5. n ranks, a power
    of two, m bytes: 2 log2 n rounds, 2 m (n - 1) / n bytes through each port. Others are folded to the power below.
    """
    return folded(_halve, rank, group, whole)


def _halve(rank: int, group: Sequence[int], whole: slice, distance: int = 1) -> Exchanges:
    """Add up one half, go on with it, and swap it when it holds the sum of all."""
    if distance == len(group):
        return
    index, middle = group.index(rank), (whole.start + whole.stop) // 2
    peer, halves = group[index ^ distance], (slice(whole.start, middle), slice(middle, whole.stop))
    kept, given = halves[::-1] if index & distance else halves
    yield swap(peer, given, kept, adds=True)
    yield from _halve(rank, group, kept, 2 * distance)
    yield swap(peer, kept, given)
