"""The workers that fill a cluster: `--workers all`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.base.errors import WrongSetting

if TYPE_CHECKING:
    from sim.model.workload import Workload
    from sim.platform.cluster import Cluster
    from sim.protocols.base import Protocol

ALL = "all"


def beside(protocol: Protocol, model: Workload, servers: int, servers_on: str) -> int:
    """Ranks in slots of their own that are no workers: the master, or so many servers of protocols that have several."""
    return (servers if protocol.has_servers else 1) if protocol.served(model) and servers_on == "own" else 0


def workers(cluster: Cluster | None, beside: int, counted: bool = False) -> int:
    """Workers in every slot of a cluster that its master or servers leave.

    Args:
        beside: ranks that are no workers.
        counted: whether the user has said how many hosts there are.

    Raises:
        WrongSetting: there is no cluster, or a profile that takes any number of ranks; or no slot is left.
    """
    if cluster is None:
        raise WrongSetting("--workers", ALL, "a number, or --cluster too, whose slots these are")
    if not counted and takes_any(cluster):
        raise WrongSetting("--workers", ALL, f"a number: the profile {cluster.name!r} takes any number of ranks")
    if cluster.slots <= beside:
        has = f"{cluster.name!r} has {cluster.slots}, and {beside} of the ranks are no workers"
        raise WrongSetting("--workers", ALL, f"a cluster with more slots: {has}")
    return cluster.slots - beside


def is_filled(cluster: Cluster) -> bool:
    """Whether a job has a worker in every slot where nobody says how many: on GPUs, or as many hosts as a profile was asked for."""
    known = cluster.provenance
    asked = known and known.hosts not in (None, sum(host.count for host in cluster.hosts))
    return not takes_any(cluster) and bool(asked or all(host.gpus for host in cluster.hosts))


def takes_any(cluster: Cluster) -> bool:
    """Whether it is a profile whose source did not say how many hosts, or how many ranks of its host, there were."""
    from sim.platform.cluster import UNCOUNTED  # when it is needed, so that help loads no clusters

    hosts = cluster.hosts
    return bool(cluster.provenance) and UNCOUNTED in (
        sum(host.count for host in hosts),
        *(host.slots for host in hosts),
    )
