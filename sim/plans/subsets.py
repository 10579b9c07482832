"""Subsets of machines of several kinds that one owns: how many of each, for every number of machines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate, product
from math import prod
from typing import TYPE_CHECKING

from sim.job.named_gpus import flops_per_s

if TYPE_CHECKING:
    from sim.model.workload import Workload
    from sim.platform.cluster import Cluster, Host

MOST = 256  # subsets of a file; of more, the fastest and the cheapest machines alone are taken
Subset = tuple[int, ...]  # how many of each entry of the cluster's hosts


def of(cluster: Cluster, workload: Workload) -> tuple[list[Subset], bool]:
    """The subsets, the smallest first; and whether they are all.

    Machines that differ by their names alone are interchangeable. Where subsets are more than MOST, there are two of each size: the
    machines that compute fastest, and those that compute most for their price.
    """
    alike = _alike(cluster.hosts)
    counts = [sum(cluster.hosts[place].count for place in places) for places in alike]
    if prod(count + 1 for count in counts) - 1 <= MOST:
        chosen = [numbers for numbers in product(*(range(count + 1) for count in counts)) if any(numbers)]
        return _by_size(_by_entry(cluster, alike, numbers) for numbers in chosen), True

    def speed(host: Host) -> float:
        each = host.speed * (flops_per_s(host.gpu, workload) if host.gpu else 1.0)
        return host.ranks * each

    def for_its_price(host: Host) -> float:
        return speed(host) / (host.price_per_hour or 1.0)

    return _by_size({*_first(cluster, speed), *_first(cluster, for_its_price)}), False


def _by_size(found: Iterable[Subset]) -> list[Subset]:
    return sorted(found, key=lambda one: (sum(one), one))


def taken(cluster: Cluster, subset: Subset) -> Cluster:
    """The cluster with these machines alone."""
    hosts = zip(cluster.hosts, subset, strict=True)
    left = tuple(host.model_copy(update={"count": count}) for host, count in hosts if count)
    return cluster.model_copy(update={"hosts": left})


def _alike(hosts: Iterable[Host]) -> list[list[int]]:
    """The places of entries that differ by name and count alone, together."""
    found: dict[str, list[int]] = {}
    for place, host in enumerate(hosts):
        found.setdefault(host.model_dump_json(exclude={"name", "count"}), []).append(place)
    return list(found.values())


def _by_entry(cluster: Cluster, alike: list[list[int]], numbers: Iterable[int]) -> Subset:
    """So many of each kind, those of the first entries first."""
    found = [0] * len(cluster.hosts)
    for places, number in zip(alike, numbers, strict=True):
        left = number
        for place in places:
            found[place] = min(left, cluster.hosts[place].count)
            left -= found[place]
    return tuple(found)


def _first(cluster: Cluster, worth: Callable[[Host], float]) -> Iterator[Subset]:
    """The machines that are worth most, of every number."""
    places = [place for place, host in enumerate(cluster.hosts) for _ in range(host.count)]
    ordered = sorted(places, key=lambda place: -worth(cluster.hosts[place]))
    one = [tuple(int(place == other) for other in range(len(cluster.hosts))) for place in ordered]
    yield from accumulate(one, lambda several, further: tuple(map(sum, zip(several, further, strict=True))))
