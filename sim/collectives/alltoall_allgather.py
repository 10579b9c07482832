"""All-to-all and allgather: every rank is the server of a share."""

from __future__ import annotations

from collections.abc import Sequence

from sim.collectives.base import Exchanges, cut, post, take


def alltoall_allgather(rank: int, group: Sequence[int], whole: slice) -> Exchanges:
    """Sharded servers: all others send each rank its share at once; it adds them up, and sends the sum to all others at once.

    NCCL's users write it by grouped sends and receives (NCCL, "Point-to-point communication"); BytePS is the same with a server
    beside each worker (Jiang et al., OSDI 2020). With n ranks and m bytes there are 2 (n - 1) messages of m / n bytes, as many bytes
    as in a ring, in two rounds of L + (n - 1) m / (n B) each. The order of receivers is staggered, so that no two ranks send to one
    port.
    """
    n, index = len(group), group.index(rank)
    shares = cut(whole, n)
    distances = range(1, n)
    for distance in distances:
        to = (index + distance) % n
        yield post(group[to], shares[to])
    for distance in distances:
        yield take(group[index - distance], shares[index], adds=True)
    for distance in distances:
        yield post(group[(index + distance) % n], shares[index])
    for distance in distances:
        yield take(group[index - distance], shares[index - distance])
