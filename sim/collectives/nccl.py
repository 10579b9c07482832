"""NCCL's ring: so many bytes at a time that its buffers hold, with two slices on the way."""

from __future__ import annotations

from collections.abc import Sequence

from sim.collectives.base import Exchange, Exchanges, cut, post, take
from sim.model.sizes import ITEM_BYTES

# NCCL 2.5 to 2.20: a channel's buffer of 4 MiB (NCCL_BUFFSIZE) has 8 steps, a chunk 4 of them and a slice 2; two channels, which
# is the number for a node with one network card (ncclTopoPostset doubles the one ring found).
CHANNELS, BUFFER_BYTES, STEPS = 2, 4 * 2**20, 8
CHUNK_BYTES, SLICES = CHANNELS * BUFFER_BYTES * 4 // STEPS, 2


def nccl(rank: int, group: Sequence[int], whole: slice) -> Exchanges:
    """Allreduce round a ring in turns of n chunks. A turn ends before the next begins; within it slices follow one another.

    NCCL, src/collectives/device/all_reduce.h, the ring with its Simple protocol: the thread that sends the first slices of a turn has
    taken the last ones of the turn before. A vector of many chunks therefore pays a ring's latencies many times. With n ranks and m
    bytes in turns of n chunks of c bytes, in two slices, each of a turn's 2 (n - 1) rounds takes the longer of c / B and L + c / 2 B.
    All channels are simulated as one of so many times the bytes.
    """
    n = len(group)
    turn = n * CHUNK_BYTES // ITEM_BYTES
    for start in range(whole.start, whole.stop, turn):
        yield from _turn(rank, group, slice(start, min(start + turn, whole.stop)))


def _turn(rank: int, group: Sequence[int], whole: slice) -> Exchanges:
    """One turn round the ring with n chunks; a taken slice is sent on SLICES exchanges later."""
    n, index = len(group), group.index(rank)
    parts, left, right = [cut(chunk, SLICES) for chunk in cut(whole, n)], group[index - 1], group[(index + 1) % n]
    rounds = 2 * (n - 1)
    sent = [piece for turn in range(rounds) for piece in parts[(index - turn) % n]]
    taken = [(piece, turn < n - 1) for turn in range(rounds) for piece in parts[(index - turn - 1) % n]]
    ahead = SLICES - 1
    for piece in sent[:ahead]:
        yield post(right, piece)
    for piece, (other, adds) in zip(sent[ahead:], taken, strict=False):
        yield Exchange(right, piece, left, other, adds, ahead=True)
    for other, adds in taken[len(taken) - ahead :]:
        yield take(left, other, adds)
