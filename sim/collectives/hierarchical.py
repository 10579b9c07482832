"""Hierarchical: within each host, then between hosts, then within."""

from __future__ import annotations

from collections.abc import Sequence

from sim.collectives.base import Exchanges
from sim.collectives.ring import ring
from sim.collectives.tree import tree


def hierarchical(rank: int, hosts: Sequence[int], whole: slice) -> Exchanges:
    """The first rank of each host adds up its host's vectors, forms a ring with the other first ranks, and sends its host the result.

    As Horovod's HOROVOD_HIERARCHICAL_ALLREDUCE (Sergeev and Del Balso, 2018), whose first ranks call MPI. With one rank a host
    it is the ring, on one host the tree.

    Args:
        hosts: the host of each rank, shape (ranks,).
    """
    members = [other for other, host in enumerate(hosts) if host == hosts[rank]]
    leaders = [hosts.index(host) for host in dict.fromkeys(hosts)]
    return tree(rank, members, whole, at_root=ring(rank, leaders, whole))
