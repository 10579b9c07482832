"""The workers that fill a cluster: `--workers all`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.base.errors import WrongSetting

if TYPE_CHECKING:
    from sim.model.workload import Workload
    from sim.platform.cluster import Cluster
    from sim.protocols.base import Protocol

ALL = "all"
ANY = 1024  # hosts of a profile, or ranks of its host, whose source did not say how many there were (calibration.profiles.SLOTS)


def workers(cluster: Cluster | None, protocol: Protocol, model: Workload, servers: int, servers_on: str = "own") -> int:
    """Workers in every slot of a cluster that its master or servers leave.

    Args:
        servers: of protocols that have several.
        servers_on: see sim.job.scenario.Scenario.

    Raises:
        WrongSetting: there is no cluster, or one that takes any number of ranks; or no slot is left.
    """
    if cluster is None:
        raise WrongSetting("--workers", ALL, "a number, or --cluster too, whose slots these are")
    if any(host.slots == ANY and not host.gpus for host in cluster.hosts) or sum(h.count for h in cluster.hosts) >= ANY:
        raise WrongSetting("--workers", ALL, f"a number: the cluster {cluster.name!r} takes any number of ranks")
    beside = (servers if protocol.has_servers else 1) if protocol.served(model) and servers_on == "own" else 0
    if cluster.slots <= beside:
        allowed = (
            f"a cluster with more slots: {cluster.name!r} has {cluster.slots}, and {beside} of the ranks are no workers"
        )
        raise WrongSetting("--workers", ALL, allowed)
    return cluster.slots - beside
