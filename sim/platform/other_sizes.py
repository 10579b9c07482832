"""A cluster of another size or on another network, with what was learned of its hosts: `--hosts 16 --network "25 Gbit/s, 20 us"`."""

from __future__ import annotations

import math
from typing import Any

from sim.base.errors import WrongSetting
from sim.base.files import validated
from sim.base.ranges import MOST_RANKS, check_integer
from sim.base.units import number_or_text
from sim.platform import catalogue
from sim.platform.cluster import Cluster, Link

BYTES_OF_GBIT = 125e6


def on_hosts(cluster: Cluster, count: int) -> Cluster:
    """The cluster with so many hosts, like those that it has; each takes a rank for each of its cores or GPUs, or as few as they took.

    Hosts that have a profile's parameter servers alone stay beside them.

    Raises:
        WrongSetting: the number of hosts is impossible, the hosts share one machine's cores, or are not all of one kind.
    """
    check_integer("--hosts", count, 1, MOST_RANKS)
    if cluster.shared_cores:
        raise WrongSetting("--hosts", count, "no such option with --shared-cores: those hosts are one machine")
    beside = cluster.serving
    hosts = tuple(host for host in cluster.hosts if host not in beside)
    kinds = {(host.gpu and host.gpu.name, host.gpus, host.cores) for host in hosts}
    if len(kinds) > 1:
        allowed = f"hosts of one kind to be like: those of {cluster.name!r} differ in cores or GPUs"
        raise WrongSetting("--hosts", count, allowed)
    several = sum(host.count for host in hosts)
    speed = math.exp(sum(host.count * math.log(host.speed) for host in hosts) / several)  # the geometric mean
    first, kinds_of = hosts[0], catalogue.all_of("hosts")
    slots = first.slots if first.slots and first.slots < first.cores and not first.gpus else None
    name, kind = (first.name if first.name in kinds_of else "host"), cluster.name.partition("*")[0]
    like = first.model_copy(update={"name": name, "count": count, "slots": slots, "speed": speed})
    called = {"name": f"{kind}*{count}"} if kind in kinds_of else {}
    return cluster.model_copy(update={"hosts": (*beside, like), **called})


def on_one_machine(cluster: Cluster, workers: int) -> Cluster:
    """The cluster with so many workers where it is a machine whose runs had fewer; those beyond its cores share them.

    A host that was fitted to a table of its GPUs has as many of these.
    """
    known, (first, *others) = cluster.provenance, cluster.hosts
    if not known or others or first.count > 1 or workers <= first.ranks:
        return cluster
    return cluster.with_each(workers) if known.cores or known.growth is not None else cluster


def on_network(cluster: Cluster, text: str) -> Cluster:
    """The cluster with another latency and bandwidth between its hosts, which nobody measured; all else known of its network is kept.

    Raises:
        WrongSetting: the text describes no link, or the cluster's messages are part of what it says of updates.
    """
    given = link(text, "--network")
    if math.isinf(cluster.network.bandwidth_bytes_per_s):
        allowed = "nothing with a profile whose links are free: messages are part of its updates (fit it with --link)"
        raise WrongSetting("--network", text, allowed)
    update: dict[str, Any] = {name: getattr(given, name) for name in ("latency_s", "bandwidth_bytes_per_s")}
    unknown = "sustained_bytes_per_s", "latency_spread", "bandwidth_spread"
    update |= dict.fromkeys(unknown) | {"spread_by_hosts": ()}
    links = {"network": cluster.network.model_copy(update=update)}
    links |= {"library": cluster.library.model_copy(update=update)} if cluster.library else {}
    found = cluster.model_copy(update=links)
    return found.known(links_measured=False, sums_in_links=False) if cluster.provenance else found


def link(text: str, option: str) -> Link:
    """The link that "25 Gbit/s, 20 us" describes: bandwidth, and latency if it is given.

    Args:
        option: its name, for complaints.

    Raises:
        WrongSetting: the text describes no link.
    """
    bandwidth, comma, latency = (part.strip() for part in text.partition(","))
    without_unit = any(not isinstance(number_or_text(part), str) for part in (bandwidth, latency))
    if not bandwidth or (comma and not latency) or without_unit:
        raise WrongSetting(option, text, 'bandwidth and latency, as "25 Gbit/s, 20 us"')
    table = {"bandwidth_bytes_per_s": bandwidth} | ({"latency_s": latency} if latency else {})
    found = validated(Link, table, option)
    if math.isinf(found.bandwidth_bytes_per_s):
        raise WrongSetting(option, text, 'bandwidth and latency, as "25 Gbit/s, 20 us"')
    return found


def told(link: Link) -> str:
    """The link as text."""
    return f"{link.bandwidth_bytes_per_s / BYTES_OF_GBIT:.4g} Gbit/s, {link.latency_s * 1e6:.4g} us"
