"""Recursive halving and doubling: as few bytes as a ring, in few rounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sim.collectives.base import Exchanges, hand, swap, take


def halving_doubling(rank: int, group: Sequence[int], whole: slice) -> Exchanges:
    """Rabenseifner's allreduce: reduce-scatter by recursive halving, allgather by recursive doubling.

    Rabenseifner, "Optimization of Collective Reduction Operations", ICCS 2004; Thakur et al. 2005, section 4.5. n ranks, a power
    of two, m bytes: 2 log2 n rounds, 2 m (n - 1) / n bytes through each port.

    Other numbers are folded to the power below: the first ranks swap halves in pairs and add them up. The second of a pair sends its
    half to the first, sits out, and receives the result. Open MPI does so, coll_base_allreduce.c.
    """
    beyond = len(group) - (1 << (len(group).bit_length() - 1))
    index = group.index(rank)
    if index < 2 * beyond:
        halves, peer = _halves(whole), group[index ^ 1]
        given, kept = halves if index % 2 else halves[::-1]
        yield swap(peer, given, kept, adds=True)
        if index % 2:
            yield hand(peer, kept)
            yield take(peer, whole)
            return
        yield take(peer, given)
    place = index // 2 if index < 2 * beyond else index - beyond  # among those that do not sit out
    yield from _halve(place, lambda at: group[2 * at if at < beyond else at + beyond], len(group) - beyond, whole)
    if index < 2 * beyond:
        yield hand(peer, whole)


def _halves(whole: slice) -> tuple[slice, slice]:
    middle = (whole.start + whole.stop) // 2
    return slice(whole.start, middle), slice(middle, whole.stop)


def _halve(place: int, member: Callable[[int], int], count: int, whole: slice, distance: int = 1) -> Exchanges:
    """Add up one half, go on with it, and swap it when it holds the sum of all.

    Args:
        member: the rank at a place, of `count`.
    """
    if distance == count:
        return
    peer, halves = member(place ^ distance), _halves(whole)
    kept, given = halves[::-1] if place & distance else halves
    yield swap(peer, given, kept, adds=True)
    yield from _halve(place, member, count, kept, 2 * distance)
    yield swap(peer, kept, given)
