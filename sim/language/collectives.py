"""Collectives: functions of a piece and a group of ranks, each of which runs the same one; all end with the sum of the piece.

Who sends while receiving adds what has come once its own piece has left (MPI_Sendrecv, then the sum). A group is a range of ranks, or a
tuple of them. Messages are parts of a piece as its items divide: their sizes differ by an item where they do not.
"""

from __future__ import annotations

from itertools import groupby

from sim.language.library import UNKNOWN, choices
from sim.language.pieces import Piece
from sim.language.rank import Rank
from sim.language.verbs import exchange, hand
from sim.model.sizes import ITEM_BYTES

# NCCL 2.5 to 2.20: a channel's buffer of 4 MiB (NCCL_BUFFSIZE) has 8 steps, a chunk of a ring 4 of them and a slice 2; of a chain a chunk
# is a step (REDUCE_CHUNKSTEPS and BROADCAST_CHUNKSTEPS are 1). Two channels, which is the number for a node with one network card
# (ncclTopoPostset doubles the one ring found), are simulated as one of so many times the bytes.
CHANNELS, BUFFER_BYTES, STEPS, SLICES = 2, 4 * 2**20, 8, 2
LINK_BYTES = CHANNELS * BUFFER_BYTES // STEPS
CHUNK_BYTES = 4 * LINK_BYTES


def reduce_scatter(me: Rank, piece: Piece, group):
    """The ring's first half: the k-th rank of the group ends with the sum of the k-th part of the piece.

    Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 2009.
    """
    n, i = len(group), group.index(me.rank)
    left, right, sent = group[i - 1], group[(i + 1) % n], piece.part((i - 1) % n, n)
    for turn in range(n - 1):
        into = piece.part((i - turn - 2) % n, n)
        yield from exchange(me, sent, right, left, into, adds=True)
        sent = into


def allgather(me: Rank, piece: Piece, group):
    """The ring's second half: each rank ends with all parts, of which the k-th was the k-th rank's."""
    n, i = len(group), group.index(me.rank)
    left, right, sent = group[i - 1], group[(i + 1) % n], piece.part(i, n)
    for turn in range(n - 1):
        into = piece.part((i - turn - 1) % n, n)
        yield from exchange(me, sent, right, left, into)
        sent = into


def allreduce(me: Rank, piece: Piece, group):
    """Ring: as few bytes as can be, in as many rounds as there are ranks.

    n ranks, m bytes: 2 (n - 1) rounds of m / n bytes, therefore 2 m (n - 1) / n bytes through each port, the least possible.
    """
    yield from reduce_scatter(me, piece, group)
    yield from allgather(me, piece, group)


def nccl(me: Rank, piece: Piece, group):
    """NCCL's ring: so many bytes at a time that its buffers hold, with two slices on the way.

    NCCL, src/collectives/device/all_reduce.h, its Simple protocol: a slice is sent on as soon as the next has left, and a turn of n chunks
    ends before the next begins. A vector of many chunks therefore pays a ring's latencies many times. Each of a turn's 2 (n - 1) rounds
    takes the longer of c / B and L + c / 2 B, with chunks of c bytes.
    """
    n, i, sent = len(group), group.index(me.rank), []
    half, items = SLICES * (n - 1), CHUNK_BYTES // ITEM_BYTES
    for start in range(0, piece.items if n > 1 else 0, n * items):
        turn = piece[start : start + n * items]
        sent.append((yield from me.post(slice_of(turn, 0, i, n), group[(i + 1) % n])))
        for k in range(half):
            sent.append((yield from me.post(slice_of(turn, k + 1, i, n), group[(i + 1) % n])))
            yield from me.take(group[i - 1], slice_of(turn, k, i - 1, n), adds=True)
        for k in range(half, 2 * half):
            if k + 1 < 2 * half:
                sent.append((yield from me.post(slice_of(turn, k + 1, i, n), group[(i + 1) % n])))
            yield from me.take(group[i - 1], slice_of(turn, k, i - 1, n))
    yield from me.wait(sent)


def slice_of(turn: Piece, k: int, i: int, n: int) -> Piece:
    """The k-th slice that the i-th rank of a ring sends in a turn."""
    return turn.part((i - k // SLICES) % n, n).part(k % SLICES, SLICES)


def halving_doubling(me: Rank, piece: Piece, group):
    """Rabenseifner's algorithm: as few bytes as a ring, in fewer rounds, for long vectors.

    Halves, quarters, ... are summed, and then swapped back, in 2 log2 n rounds, 2 m (n - 1) / n bytes.

    Thakur, Rabenseifner, Gropp, "Optimization of collective communication operations in MPICH", 2005, section 4.5. Where n is no
    power of two, the first ranks swap halves in pairs, and the second of a pair sits out, as in Open MPI (coll_base_allreduce.c).
    """
    i, count, beyond = folded(me, group)
    odd, in_pair = i % 2, beyond and i < 2 * beyond
    if in_pair:
        yield from exchange(me, piece.part(1 - odd, 2), group[i ^ 1], group[i ^ 1], piece.part(odd, 2), adds=True)
        if odd:
            yield from hand(me, piece.part(1, 2), group[i ^ 1])
            yield from me.take(group[i ^ 1], piece)
        else:
            yield from me.take(group[i ^ 1], piece.part(1, 2))
    if not (in_pair and odd):
        place = i // 2 if in_pair else i - beyond
        mine, far = 0, 1  # of the parts of a round, the number of its own
        while far < count:
            peer, mine = group[member(place ^ far, beyond, 0)], 2 * mine + place // far % 2
            far *= 2
            yield from exchange(me, piece.part(mine ^ 1, far), peer, peer, piece.part(mine, far), adds=True)
        while far > 1:
            peer = group[member(place ^ (far // 2), beyond, 0)]
            yield from exchange(me, piece.part(mine, far), peer, peer, piece.part(mine ^ 1, far))
            mine, far = mine // 2, far // 2
        if in_pair:
            yield from hand(me, piece, group[i ^ 1])


def recursive_doubling(me: Rank, piece: Piece, group):
    """Recursive doubling: fewest rounds, for small messages.

    Each rank swaps the whole with the one at distance 1, then 2, 4, ...: log2 n rounds of m bytes (Thakur et al., section 4.5). Where n is
    no power of two, the first ranks form pairs, and the first of a pair sits out.
    """
    i, count, beyond = folded(me, group)
    odd, in_pair = i % 2, beyond and i < 2 * beyond
    if in_pair and not odd:
        yield from hand(me, piece, group[i ^ 1])
        yield from me.take(group[i ^ 1], piece)
    else:
        if in_pair:
            yield from me.take(group[i ^ 1], piece, adds=True)
        place, far = i // 2 if in_pair else i - beyond, 1
        while far < count:
            peer = group[member(place ^ far, beyond, 1)]
            yield from exchange(me, piece, peer, peer, piece, adds=True)
            far *= 2
        if in_pair:
            yield from hand(me, piece, group[i ^ 1])


def folded(me: Rank, group) -> tuple[int, int, int]:
    """A rank's place in a group, the power of two that is not above its size, and how many ranks are beyond that."""
    count = 2 ** (len(group).bit_length() - 1)
    return group.index(me.rank), count, len(group) - count


def member(place: int, beyond: int, second: int) -> int:
    """Where in the group the rank is that has a place among those that do not sit out."""
    return 2 * place + second if beyond and place < beyond else place + beyond


def tree(me: Rank, piece: Piece, group):
    """Binomial tree: reduce to the first rank, and broadcast back the way it came.

    n ranks, m bytes: ceil(log2 n) rounds up and as many down, m bytes in each (Thakur et al., sections 4.3 and 4.4).
    """
    yield from reduce(me, piece, group)
    yield from broadcast(me, piece, group)


def reduce(me: Rank, piece: Piece, group):
    """The first rank ends with the sum, by a binomial tree."""
    n, i = len(group), group.index(me.rank)
    far = 1
    while far < n and i % (2 * far) == 0:
        if i + far < n:
            yield from me.take(group[i + far], piece, adds=True)
        far *= 2
    if i:
        yield from hand(me, piece, group[i - far])


def broadcast(me: Rank, piece: Piece, group):
    """What the first rank has goes to all, down the same tree."""
    n, i = len(group), group.index(me.rank)
    far = 1
    while far < n and i % (2 * far) == 0:
        far *= 2
    if i:
        yield from me.take(group[i - far], piece)
    while far > 1:
        far //= 2
        if i + far < n:
            yield from hand(me, piece, group[i + far])


def hierarchical(me: Rank, piece: Piece, group):
    """Hierarchical: trees within hosts, a ring between them.

    The first rank of each host adds up its host's, forms a ring with the others, and sends its host the sum. As
    HOROVOD_HIERARCHICAL_ALLREDUCE (Sergeev and Del Balso, 2018), whose first ranks call MPI.
    """
    firsts, stops, leaders = hosts(me, group)
    host = range(firsts[me.rank], stops[me.rank])
    yield from reduce(me, piece, host)
    if me.rank == host.start:
        yield from allreduce(me, piece, leaders)
    yield from broadcast(me, piece, host)


def hosts(me: Rank, group) -> tuple[list[int], list[int], tuple[int, ...]]:
    """Of the host of each rank: its first rank in the group, and the one behind its last; and the first rank of each host."""
    each = [list(ranks) for _, ranks in groupby(group, me.host)]
    of = {rank: ranks for ranks in each for rank in ranks}
    found = [of.get(rank, [rank]) for rank in range(me.n)]
    return [ranks[0] for ranks in found], [ranks[-1] + 1 for ranks in found], tuple(ranks[0] for ranks in each)


def reduce_broadcast(me: Rank, piece: Piece, group):
    """Reduce and broadcast: one central server, along a chain, in chunks.

    NCCL, reduce.h and broadcast.h; in Open MPI a pipeline (coll_base_bcast.c). n ranks, m bytes in K chunks of c bytes:
    (K + n - 2) c / B + (n - 1) L for the reduction to the first rank, and as much for the broadcast, which begins after it.
    """
    n, i = len(group), group.index(me.rank)
    yield from chain(me, piece, group, (i - 1) % n, True)
    yield from chain(me, piece, group, i, False)


def chain(me: Rank, piece: Piece, group, place: int, adds: bool):
    """Each chunk is sent on while the next one comes, from place 0 of the ring to the last."""
    n, i, items = len(group), group.index(me.rank), LINK_BYTES // ITEM_BYTES
    chunks = (piece.items + items - 1) // items if n > 1 else 0
    for k in range(chunks):
        if place == 0:
            yield from hand(me, piece[k * items : (k + 1) * items], group[(i + 1) % n])
        elif place == n - 1 or k == 0:
            yield from me.take(group[i - 1], piece[k * items : (k + 1) * items], adds=adds)
        else:
            held = piece[(k - 1) * items : k * items]
            yield from exchange(
                me, held, group[(i + 1) % n], group[i - 1], piece[k * items : (k + 1) * items], adds=adds
            )
    if 0 < place < n - 1 and chunks:
        yield from hand(me, piece[(chunks - 1) * items :], group[(i + 1) % n])


def alltoall_allgather(me: Rank, piece: Piece, group):
    """All-to-all and allgather: every rank is the server of a part, which all send it at once, and whose sum it sends to all.

    NCCL, "Point-to-point communication"; BytePS (Jiang et al., OSDI 2020). No two ranks send to one port at once. n ranks, m bytes:
    2 (L + m (n - 1) / (n B)).
    """
    n, i, sent = len(group), group.index(me.rank), []
    for far in range(1, n):
        sent.append((yield from me.post(piece.part((i + far) % n, n), group[(i + far) % n])))
    for far in range(1, n):
        yield from me.take(group[(i - far) % n], piece.part(i, n), adds=True)
    for far in range(1, n):
        sent.append((yield from me.post(piece.part(i, n), group[(i + far) % n])))
    for far in range(1, n):
        yield from me.take(group[(i - far) % n], piece.part((i - far) % n, n))
    yield from me.wait(sent)


def by_size(me: Rank, piece: Piece, group):
    """What Open MPI's module `tuned` takes for the size of the piece and of the group."""
    for below, algorithm in choices(len(group)):
        if ITEM_BYTES * piece.items < below:
            yield from ALGORITHMS[algorithm](me, piece, group)
            return


ALGORITHMS = {
    "auto": by_size,
    "ring": allreduce,
    "halving-doubling": halving_doubling,
    "tree": tree,
    "recursive-doubling": recursive_doubling,
    "nccl": nccl,
    "reduce-broadcast": reduce_broadcast,
    "alltoall-allgather": alltoall_allgather,
    "hierarchical": hierarchical,
}
NAMES = tuple(ALGORITHMS)
SETTINGS = (*NAMES, UNKNOWN)


def summed(me: Rank, piece: Piece, algorithm: str):
    """One call of the job's library, which sums a piece over all workers."""
    yield from me.work(seconds=me.library.call.seconds(piece.items))
    if algorithm == "auto" and me.library.sums:
        yield from me.library.sums(me, piece)
    else:
        yield from ALGORITHMS[me.library.auto if algorithm == "auto" else algorithm](me, piece, me.workers)
