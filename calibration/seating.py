"""The hosts of a profile from a log that names none: so many ranks on each."""

from __future__ import annotations

from itertools import groupby

from sim.base.ranges import MOST_RANKS, check_integer
from sim.platform import catalogue
from sim.platform.cluster import ASSUMED, FREE, Cluster, Host, Link
from sim.platform.gpu import Gpu

CORES = 2  # of each rank: one computes, and its library's thread has the other
OPTION = "--gpus-per-host"


def inner_of(gpu: Gpu | None) -> tuple[Link, str]:
    """The link within hosts where no test tells it, and what it is called: that of the catalogue's hosts with this GPU, or a free one."""
    names = {kind.local for kind in catalogue.all_of("hosts").values() if gpu and kind.gpu == gpu.name and kind.local}
    if len(names) != 1:  # no host has several, or hosts differ
        return FREE, "free"
    return catalogue.find("links", name := names.pop()), f"{name}, by the GPU's name"


def seated(made: Cluster, each: int | None = None, device: str = "") -> Cluster:
    """The profile with `each` of its ranks on a host, one if None, which is as fast as its slowest; and a note on the link left unknown.

    The link that was fitted or given is then that between hosts or, if all ranks are on one, that within it.

    Args:
        device: a GPU of each rank, by name; ranks without a device are on CPUs.

    Raises:
        WrongSetting: a number that cannot be.
    """
    each = 1 if each is None else each
    check_integer(OPTION, each, 1, MOST_RANKS)
    gpu = catalogue.gpu_of(device)
    ranks = [host.speed for host in made.hosts for _ in range(host.count)]
    speeds = [min(ranks[first : first + each]) for first in range(0, len(ranks), each)]
    count, hosts = len(speeds), list[Host]()
    for speed, alike in groupby(speeds):
        several = len(list(alike))
        name = "host" if several == count else f"host{sum(one.count for one in hosts)}" + "-" * (several > 1)
        hosts.append(Host(name=name, count=several, cores=CORES * each, slots=each, speed=speed))
    if device:
        hosts = [host.model_copy(update={"gpus": each, "gpu": gpu}) for host in hosts]
    placed = made.model_copy(update={"hosts": tuple(hosts)})
    if each == 1:
        return placed
    measured = bool(made.provenance and made.provenance.links_measured and count > 1)
    if count > 1:
        inner, called = inner_of(gpu)
        links, said = {"local": inner}, f"the link is that between hosts, and that within a host is taken as {called}"
    else:
        links = {"local": made.network, "network": ASSUMED}
        said = "the link is that within the one host, and nothing tells the network, which is taken as the usual one"
    note = f"{each} ranks on each of {count} host{'s' * (count > 1)}: {said}"
    return placed.model_copy(update=links).known(note, hosts=count, links_measured=measured)
