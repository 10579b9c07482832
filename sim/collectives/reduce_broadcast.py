"""Reduce and broadcast: one central server, along a chain, in chunks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sim.collectives.base import Exchange, Exchanges, hand, take
from sim.collectives.nccl import BUFFER_BYTES, CHANNELS, STEPS
from sim.model.sizes import ITEM_BYTES

CHUNK_BYTES = CHANNELS * BUFFER_BYTES // STEPS  # REDUCE_CHUNKSTEPS and BROADCAST_CHUNKSTEPS are 1


def reduce_broadcast(rank: int, group: Sequence[int], whole: slice) -> Exchanges:
    """The first rank serves: chunks are added up along the ring towards it, and then sent back along the ring.

    NCCL, src/collectives/device/reduce.h and broadcast.h; in Open MPI's words a pipeline (coll_base_bcast.c). n ranks, m bytes in K
    chunks of c bytes: (K + n - 2) c / B + (n - 1) L for the reduction, and as much for the broadcast, which begins after the
    reduction: m bytes each way through each port, for any number of ranks.
    """
    n, index = len(group), group.index(rank)
    if n == 1:
        return
    left, right = group[index - 1], group[(index + 1) % n]
    yield from _pass_on(whole, left if index != 1 else None, right if index else None, adds=True)
    yield from _pass_on(whole, left if index else None, right if index != n - 1 else None)


def _pass_on(whole: slice, source: int | None, to: int | None, adds: bool = False) -> Exchanges:
    """From `source`, if any, to `to`, if any: each chunk is sent on while the next is taken."""
    held = None
    for chunk in _chunks(whole):
        if source is None:
            if to is not None:
                yield hand(to, chunk)
        elif to is None or held is None:
            yield take(source, chunk, adds)
        else:
            yield Exchange(to, held, source, chunk, adds)
        held = chunk
    if source is not None and to is not None and held is not None:
        yield hand(to, held)


def _chunks(whole: slice) -> Iterator[slice]:
    items = CHUNK_BYTES // ITEM_BYTES
    for start in range(whole.start, whole.stop, items):
        yield slice(start, min(start + items, whole.stop))
