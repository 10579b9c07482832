"""Collectives: functions of a piece and a group of ranks (a range), each of which runs the same one."""

from __future__ import annotations

from sim.language.pieces import Piece
from sim.language.rank import Rank


def called(me: Rank, piece: Piece):
    """What a library does around the messages of a sum."""
    if me.call_base_s or me.call_s:
        yield from me.work(seconds=me.call_base_s + me.call_s * piece.items)


def reduce_scatter(me: Rank, piece: Piece, group: range):
    """The ring's first half: the k-th rank of the group ends with the sum of the k-th part of the piece.

    Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 2009.
    """
    n, i = len(group), group.index(me.rank)
    for turn in range(n - 1):
        sent = yield from me.post(piece.part((i - turn - 1) % n, n), group[(i + 1) % n])
        yield from me.take(group[i - 1], piece.part((i - turn - 2) % n, n), adds=True)
        yield from me.wait(sent)


def allgather(me: Rank, piece: Piece, group: range):
    """The ring's second half: each rank ends with all parts, of which the k-th was the k-th rank's."""
    n, i = len(group), group.index(me.rank)
    for turn in range(n - 1):
        sent = yield from me.post(piece.part((i - turn) % n, n), group[(i + 1) % n])
        yield from me.take(group[i - 1], piece.part((i - turn - 1) % n, n))
        yield from me.wait(sent)


def allreduce(me: Rank, piece: Piece, group: range):
    """Each rank of the group ends with the sum of the piece over all of them, by a ring."""
    yield from called(me, piece)
    yield from reduce_scatter(me, piece, group)
    yield from allgather(me, piece, group)


def halving_doubling(me: Rank, piece: Piece, group: range):
    """The same in 2 log2(n) messages, of a half, a quarter, ... of the piece, for n a power of two.

    Thakur, Rabenseifner, Gropp, "Optimization of collective communication operations in MPICH", 2005, section 4.5.
    """
    yield from called(me, piece)
    n, i = len(group), group.index(me.rank)
    first, stop, far = 0, n, n // 2
    while far:  # halve: keep the half that has part i
        upper, middle = i // far % 2, first + far
        mine = (middle, stop) if upper else (first, middle)
        other = (first, middle) if upper else (middle, stop)
        sent = yield from me.post(parts(piece, *other, n), group[i ^ far])
        yield from me.take(group[i ^ far], parts(piece, *mine, n), adds=True)
        yield from me.wait(sent)
        first, stop, far = mine[0], mine[1], far // 2
    far = 1
    while far < n:  # double
        other = (first - far, first) if i // far % 2 else (stop, stop + far)
        sent = yield from me.post(parts(piece, first, stop, n), group[i ^ far])
        yield from me.take(group[i ^ far], parts(piece, *other, n))
        yield from me.wait(sent)
        first, stop, far = min(first, other[0]), max(stop, other[1]), 2 * far


def tree(me: Rank, piece: Piece, group: range):
    """Sum along a binomial tree to the first rank of the group, and hand the sum down the same tree."""
    yield from called(me, piece)
    n, i = len(group), group.index(me.rank)
    far = 1
    while far < n and i % (2 * far) == 0:
        if i + far < n:
            yield from me.take(group[i + far], piece, adds=True)
        far *= 2
    if i:
        sent = yield from me.post(piece, group[i - far])
        yield from me.wait(sent)
        yield from me.take(group[i - far], piece)
    far = far // 2
    while far:
        if i + far < n:
            sent = yield from me.post(piece, group[i + far])
            yield from me.wait(sent)
        far //= 2


def parts(piece: Piece, first: int, stop: int, n: int) -> Piece:
    """Parts first to stop - 1 of n, side by side."""
    return piece[piece.items * first // n : piece.items * stop // n]
