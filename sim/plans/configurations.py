"""All that may be chosen: every protocol with its settings, on every number of hosts of every kind, with every batch.

Of machines of several kinds that one owns, numbers of each kind are chosen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from itertools import product
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from sim import protocols
from sim.base.errors import WrongSetting
from sim.base.home import installed
from sim.job.scenario import Scenario
from sim.job.variants import called
from sim.model import workload
from sim.model.variable_placement import STRATEGIES
from sim.plans import prices, until
from sim.plans.prices import Prices
from sim.plans.until import Work
from sim.platform import catalogue
from sim.stragglers import read as read_stragglers

if TYPE_CHECKING:
    from sim.plans.candidates import Figures
    from sim.plans.question import Question
    from sim.platform.cluster import Cluster, Host
    from sim.protocols.base import Protocol

MOST = 10**6
EACH = 64  # hosts of which every number is tried, where there are so many at most


@dataclass(frozen=True)
class Configuration:
    """One choice.

    Args:
        protocol, settings: as sim.run's --protocol and --set have them.
        host: a kind of sim.platform.catalogue, or a file.
        hosts: how many.
        subset: of a file with hosts of several kinds, how many of each; empty for others.
        servers: 0 of protocols without.
        usd_per_hour: of all hosts.
        offer: how they are rented, one of sim.platform.catalogue.OFFERS.
    """

    protocol: str
    settings: tuple[str, ...]
    host: str
    hosts: int
    batch: int
    servers: int
    servers_on: str
    placement: str
    variable_partitions: int
    usd_per_hour: float
    offer: str = "on-demand"
    subset: Subset = ()

    @property
    def without_price(self) -> Configuration:
        """The same for configurations of one job, whose hosts are rented in other ways."""
        return replace(self, usd_per_hour=0.0, offer="")


# Choices of a question that not every protocol, or host, has; and their names in a configuration.
IN_PART = {one: one for one in ("counts", "servers", "servers_on", "placements", "variable_partitions")}
IN_PART |= {"counts": "hosts", "placements": "placement"}


class Served(NamedTuple):
    """Choices that only protocols with servers, or a master, have."""

    servers: int = 0
    servers_on: str = "own"
    placement: str = "round-robin"
    variable_partitions: int = 1


class Room:
    """The configurations that a question leaves.

    Args:
        question: whose files and names are read.

    Raises:
        WrongSetting: a name that there is not, a host without a price, or more configurations than can be searched.
    """

    def __init__(self, question: Question):
        self.question = question
        self.stragglers = read_stragglers(question.stragglers)
        for name in question.placements:
            if name not in STRATEGIES:
                raise WrongSetting("placements", name, " or ".join(STRATEGIES))
        self.prices = Prices(question)
        self._clusters = {name: prices.read(name) for name in self.prices.of}
        models = (known.fitted(question.workload) for known in self._clusters.values())
        self.workload = next(filter(None, models), None) or workload.read(question.workload)
        runs = [known.provenance for known in self._clusters.values() if known.provenance]
        self._fitted = {one.protocol: one.settings for one in reversed(runs)}
        self._kinds = [(name, settings) for name in question.protocols for settings in self._settings(name)]
        self._check_settings()
        self.until = until.law_of(question.until, self.workload.name) if question.until else None
        self.protocol = lru_cache(None)(protocols.make)
        self.cluster = lru_cache(None)(self._cluster)

    @cached_property
    def all(self) -> list[Configuration]:
        """Every configuration once, in the order of the question."""
        batches = self.question.batches or (self.workload.batch,)
        found = [
            Configuration(name, settings, host, count, batch, *served, usd, offer, subset)
            for name, settings in self._kinds
            for served in self._served(self.protocol(name, settings))
            for host, offered in self.prices.of.items()
            for offer in offered
            for count, subset in self._counts(host)
            for usd in [self._usd_per_hour(host, offer, count, subset)]
            for batch in batches
        ]
        if len(found) > MOST:
            raise WrongSetting("plan", f"{len(found):,} configurations", f"at most {MOST:,}")
        return found

    def scenario(self, one: Configuration) -> Scenario:
        """The job of a configuration: a worker in every slot that no server takes.

        Raises:
            WrongSetting: there can be no such job.
        """
        own, protocol = one.servers if one.servers_on == "own" else 0, self.protocol(one.protocol, one.settings)
        placed = self.cluster(one.host, self._of_workers(one), one.subset).with_servers(own)
        found = Scenario(
            protocol=protocol,
            workload=self.workload,
            workers=placed.slots - own,
            batch=one.batch,
            cluster=placed,
            stragglers=self.stragglers,
            stragglers_name=self.question.stragglers,
            seed=self.question.seed,
            servers=max(1, one.servers),
            servers_on=one.servers_on,
            placement=one.placement,
            variable_partitions=one.variable_partitions,
        )
        if found.workers < 1:
            raise WrongSetting("workers", found.workers, "one or more, besides the servers")
        most = self.question.largest_global_batch
        if most and found.workers * found.batch > most:
            raise WrongSetting("largest_global_batch", found.workers * found.batch, f"at most {most:,}")
        found.check_computing()
        return found

    def command(self, one: Configuration, found: Figures) -> str:
        """The command that simulates it as the plan did."""
        import shlex

        scenario = self.scenario(one)
        words = {"--protocol": one.protocol, "--workload": self.question.workload, "--batch": one.batch}
        kind, number = self._clusters[one.host], self._of_workers(one)
        counts = one.subset or (number,)
        changed = [
            *(f"hosts.{place}.count={count}" for place, count in enumerate(counts, len(kind.serving))),
            f"workers={scenario.workers}",
        ]
        if one.host in catalogue.all_of("hosts"):
            words |= {"--cluster": f"{one.host}*{one.hosts}", "--workers": scenario.workers}
        elif sum(host.count for host in kind.with_servers(0).hosts) == number:
            words |= {"--cluster": one.host, "--workers": scenario.workers}
        else:
            words |= {"--cluster": one.host, "--workers": 1, "--what-if": ", ".join(changed)}
        if each := self.question.gpus_per_host:
            words["--per-host"] = each
        if one.servers:
            words |= {"--servers": one.servers, "--servers-on": one.servers_on}
            words |= {"--placement": one.placement, "--variable-partitions": one.variable_partitions}
        words |= {"--stragglers": self.question.stragglers, "--steps": found.steps, "--warmup": found.warmup}
        words |= {"--replications": found.runs, "--seed": self.question.seed}
        samples = Work.of(scenario, self.until).samples if self.until else None
        if failing := self.question.failures_for(one.offer, found.mid / found.goodput, samples):
            words["--failures"] = failing
        settings = [word for setting in one.settings for word in ("--set", setting)]
        said = [str(word) for pair in words.items() for word in pair]
        return f"python -m {installed('sim.run')} {shlex.join(said + settings)}"

    def _of_workers(self, one: Configuration) -> int:
        """Its hosts, without those that a fitted profile has for servers alone."""
        return one.hosts - one.servers * bool(one.servers_on == "own" and self._clusters[one.host].serving)

    def told(self, one: Configuration) -> str:
        """Its hosts in words."""
        each = f", {self.question.gpus_per_host} a host" if self.question.gpus_per_host else ""
        if not one.subset:
            return f"{one.hosts} x {one.host}{each}"
        hosts = zip(one.subset, self._clusters[one.host].hosts, strict=True)
        return " + ".join(f"{count} {called(host)}" for count, host in hosts if count) + each

    @cached_property
    def _subsets(self) -> dict[str, tuple[list[Subset], bool]]:
        """Those of each file with hosts of several kinds, and whether they are all."""
        return {
            name: subsets_of(name, known)
            for name, known in self._clusters.items()
            if len(known.with_servers(0).hosts) > 1
        }

    @property
    def notes(self) -> list[str]:
        """Choices that no configuration has; profiles of other models; files of which not all subsets are looked at."""
        found = [THINNED.format(name) for name, (_, whole) in self._subsets.items() if not whole]
        for name in [name for name in IN_PART if name in self.question.model_fields_set]:
            taken = {getattr(one, IN_PART[name]) for one in self.all}
            if unused := [str(value) for value in getattr(self.question, name) if value not in taken]:
                found.append(f"no configuration uses {', '.join(unused)} of --{name.replace('_', '-')}")
        for name, known in self._clusters.items():
            if known.provenance and known.costs_of(self.workload) is None:
                found.append(f"{name} is a profile of {', '.join(known.costs) or 'links'}, not of {self.workload.name}")
        return found

    def _counts(self, name: str) -> Iterable[tuple[int, Subset]]:
        """Numbers of hosts; of a file with several kinds, of each of them."""
        if name not in self._subsets:
            return ((count, ()) for count in self._numbers(name, self.prices.most[name]))
        whole = sum(host.count for host in self._clusters[name].hosts)
        numbers = self._numbers(name, min(whole, self.prices.most[name] or whole), each=True)
        return ((sum(one), one) for one in self._subsets[name][0] if sum(one) in numbers)

    def _numbers(self, name: str, most: int | None, each: bool = False) -> Sequence[int]:
        """The numbers of hosts that are asked for; of `most` every one, if nobody says and `each`, or they are few."""
        counts = self.question.counts
        if most is None:
            return counts
        if "counts" not in self.question.model_fields_set:
            return range(1, most + 1) if each or most <= EACH else (*(count for count in counts if count < most), most)
        if not (found := tuple(count for count in counts if count <= most)):
            raise WrongSetting("counts", min(counts), f"at most {most} {name}, as in {name}*{most}")
        return found

    def _usd_per_hour(self, name: str, offer: str, count: int, subset: Subset) -> float:
        """Of all hosts; of a file's several kinds by the price of each, unless one price was given for all."""
        chosen = taken(self._clusters[name], subset).usd_per_hour if subset else None
        return count * self.prices.of[name][offer] if chosen is None or self.prices.given(name, offer) else chosen

    def _cluster(self, name: str, count: int, subset: Subset = ()) -> Cluster:
        known = self._clusters[name]
        if subset:
            return taken(known, subset).with_each(self.question.gpus_per_host)
        kind = catalogue.all_of("hosts").get(name)
        if kind and kind.network is None and count > 1:
            allowed = "one host of a kind whose network is not known (sim.hosts show), or a cluster file that says it"
            raise WrongSetting("network", f"{count} x {name}", allowed)
        new_name = f"{name}*{count}" if name in catalogue.all_of("hosts") else known.name
        hosts = (*known.serving, known.hosts[-1].model_copy(update={"count": count}))
        found = known.model_copy(update={"hosts": hosts, "name": new_name})
        return found.with_each(self.question.gpus_per_host)

    def _settings(self, name: str) -> Iterator[tuple[str, ...]]:
        """Every choice of the settings that the protocol has, as --set takes them."""
        has = {one.name for one in fields(protocols.find(name))}
        chosen: dict[str, Sequence[object]] = {}
        chosen |= {key: (value,) for key, _, value in (one.partition("=") for one in self._fitted.get(name, ()))}
        chosen |= {key: values for key, values in self.question.settings.items() if key in has}
        for values in product(*chosen.values()):
            yield tuple(f"{key}={value}" for key, value in zip(chosen, values, strict=True))

    def _check_settings(self) -> None:
        """Refuse settings that no protocol has, and values that one cannot have."""
        for name, settings in self._kinds:
            made = protocols.make(name, settings)
            if self.question.until:
                until.check(made)
        known = {one.name for name in self.question.protocols for one in fields(protocols.find(name))}
        for key in self.question.settings:
            if key not in known:
                allowed = f"{', '.join(sorted(known))} of {', '.join(self.question.protocols)}"
                raise WrongSetting("settings", key, allowed)

    def _served(self, protocol: Protocol) -> Iterator[Served]:
        if not protocol.served(self.workload):
            yield Served()
            return
        asked = self.question
        servers = asked.servers if protocol.has_servers else (1,)
        for count, on in product(servers, asked.servers_on):
            placements = asked.placements if count > 1 else asked.placements[:1]
            yield from (Served(count, on, *rest) for rest in product(placements, asked.variable_partitions))


MOST_SUBSETS = 4096  # of a file
THINNED = "of each kind of host of {} numbers that are powers of two, and all of them, were looked at alone"
Subset = tuple[int, ...]  # how many of each entry of the cluster's hosts


def subsets_of(name: str, cluster: Cluster) -> tuple[list[Subset], bool]:
    """The subsets of a file's hosts, the smallest first, and whether they are all.

    Machines that differ by their names alone are interchangeable. Where subsets are more than MOST_SUBSETS, there are powers of two of each
    kind, and all of it.

    Raises:
        WrongSetting: these are too many, too.
    """
    alike = _alike(cluster.hosts)
    counts = [sum(cluster.hosts[place].count for place in places) for places in alike]
    every = [range(count + 1) for count in counts]
    few = [sorted({0, count, *(2**power for power in range(count.bit_length()))}) for count in counts]
    whole = prod(map(len, every)) <= MOST_SUBSETS
    if not whole and (most := prod(map(len, few))) > MOST_SUBSETS:
        raise WrongSetting(
            "hosts", f"{name}, with {most:,} subsets", f"at most {MOST_SUBSETS:,}: a file of fewer kinds"
        )
    chosen = [numbers for numbers in product(*(every if whole else few)) if any(numbers)]
    found = (_by_entry(cluster, alike, numbers) for numbers in chosen)
    return sorted(found, key=lambda one: (sum(one), one)), whole


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
