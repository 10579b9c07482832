"""All that may be chosen: every protocol with its settings, on every number of hosts of every kind, with every batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sim import catalogue, protocols
from sim.base.errors import WrongSetting
from sim.job.scenario import Scenario
from sim.model import workload
from sim.model.variable_placement import STRATEGIES
from sim.platform import cluster
from sim.stragglers import read as read_stragglers

if TYPE_CHECKING:
    from sim.plans.question import Question
    from sim.platform.cluster import Cluster
    from sim.protocols.base import Protocol

MOST = 10**6


@dataclass(frozen=True)
class Configuration:
    """One choice.

    Args:
        protocol, settings: as sim.run's --protocol and --set have them.
        host: a kind of sim.catalogue, or a file.
        hosts: how many.
        servers: 0 of protocols without.
        usd_per_hour: of all hosts.
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
        self.question, self.workload = question, workload.read(question.workload)
        self.stragglers = read_stragglers(question.stragglers)
        for name in question.placements:
            if name not in STRATEGIES:
                raise WrongSetting("placements", name, " or ".join(STRATEGIES))
        self._check_prices()
        self._prices = {name: self._price(name) for name in self._hosts()}
        self._clusters = {name: _read(name) for name in self._prices}
        self._kinds = [(name, settings) for name in question.protocols for settings in self._settings(name)]
        self._check_settings()
        self.protocol = lru_cache(None)(protocols.make)
        self.cluster = lru_cache(None)(self._cluster)

    @cached_property
    def all(self) -> list[Configuration]:
        """Every configuration once, in the order of the question."""
        batches = self.question.batches or (self.workload.batch,)
        found = [
            Configuration(name, settings, host, count, batch, *served, usd_per_hour=count * price)
            for name, settings in self._kinds
            for served in self._served(self.protocol(name, settings))
            for host, price in self._prices.items()
            for count in self._counts(host)
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
        placed, protocol = self.cluster(one.host, one.hosts), self.protocol(one.protocol, one.settings)
        slots = sum(host.count * host.ranks for host in placed.hosts)
        own = one.servers if one.servers_on == "own" else 0
        found = Scenario(
            protocol=protocol,
            workload=self.workload,
            workers=slots - own,
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

    def command(self, one: Configuration, steps: int, warmup: int, runs: int, samples_per_s: float) -> str:
        """The command that simulates it as the plan did.

        Args:
            samples_per_s: that it was found to reach without failures of hosts.
        """
        import shlex

        scenario = self.scenario(one)
        words = {"--protocol": one.protocol, "--workload": self.question.workload, "--batch": one.batch}
        changed = f"hosts.0.count={one.hosts}, workers={scenario.workers}"
        kind = self._clusters[one.host]
        if one.host in catalogue.all_of("hosts"):
            words |= {"--cluster": f"{one.host}*{one.hosts}", "--workers": scenario.workers}
        elif sum(host.count for host in kind.hosts) == one.hosts:
            words |= {"--cluster": one.host, "--workers": scenario.workers}
        else:
            words |= {"--cluster": one.host, "--workers": 1, "--what-if": changed}
        if one.servers:
            words |= {"--servers": one.servers, "--servers-on": one.servers_on}
            words |= {"--placement": one.placement, "--variable-partitions": one.variable_partitions}
        words |= {"--stragglers": self.question.stragglers, "--steps": steps, "--warmup": warmup}
        words |= {"--replications": runs, "--seed": self.question.seed}
        if self.question.failures:
            words["--failures"] = self.question.failures_for(samples_per_s)
        settings = [word for setting in one.settings for word in ("--set", setting)]
        said = [str(word) for pair in words.items() for word in pair]
        return f"python -m sim.run {shlex.join(said + settings)}"

    def _hosts(self) -> tuple[str, ...]:
        if self.question.hosts:
            return self.question.hosts
        kinds = catalogue.all_of("hosts")
        return tuple(name for name, kind in kinds.items() if kind.gpus and (kind.price_per_hour or self._given(name)))

    def _given(self, name: str) -> float | None:
        return self.question.prices.get(name)

    def _check_prices(self) -> None:
        """Refuse the price of a host that there is not; one that is not asked for may have a price."""
        hosts = self._hosts()
        for name in self.question.prices:
            if not (name in hosts or name in catalogue.all_of("hosts") or Path(name).exists()):
                raise WrongSetting("prices", name, f"a host: {', '.join(hosts)}")

    def _price(self, name: str) -> float:
        """USD an hour of one host."""
        kind = catalogue.all_of("hosts").get(name)
        price = self._given(name) or (kind.price_per_hour if kind else None)
        if price is None:
            _read(name)  # which refuses what is no host
            raise WrongSetting(f"prices: {name}", None, f'USD an hour of one host, as in prices = {{ "{name}" = 2.5 }}')
        return price

    def _counts(self, name: str) -> tuple[int, ...]:
        hosts = self._clusters[name].hosts
        return self.question.counts if len(hosts) == 1 else (sum(host.count for host in hosts),)

    def _cluster(self, name: str, count: int) -> Cluster:
        known = self._clusters[name]
        if len(known.hosts) > 1:
            return known
        called = f"{name}*{count}" if name in catalogue.all_of("hosts") else known.name
        hosts = (known.hosts[0].model_copy(update={"count": count}),)
        return known.model_copy(update={"hosts": hosts, "name": called})

    def _settings(self, name: str) -> Iterator[tuple[str, ...]]:
        """Every choice of the settings that the protocol has, as --set takes them."""
        has = {one.name for one in fields(protocols.find(name))}
        chosen = {key: values for key, values in self.question.settings.items() if key in has}
        for values in product(*chosen.values()):
            yield tuple(f"{key}={value}" for key, value in zip(chosen, values, strict=True))

    def _check_settings(self) -> None:
        """Refuse settings that no protocol has, and values that one cannot have."""
        for name, settings in self._kinds:
            protocols.make(name, settings)
        known = {one.name for name in self.question.protocols for one in fields(protocols.find(name))}
        for key in self.question.settings:
            if key not in known:
                raise WrongSetting(
                    "settings", key, f"{', '.join(sorted(known))} of {', '.join(self.question.protocols)}"
                )

    def _served(self, protocol: Protocol) -> Iterator[Served]:
        if not protocol.served(self.workload):
            yield Served()
            return
        asked = self.question
        servers = asked.servers if protocol.has_servers else (1,)
        for count, on in product(servers, asked.servers_on):
            placements = asked.placements if count > 1 else asked.placements[:1]
            yield from (Served(count, on, *rest) for rest in product(placements, asked.variable_partitions))


def _read(name: str) -> Cluster:
    """A kind of host, or a file.

    Raises:
        WrongSetting: there is none.
    """
    try:
        return cluster.read(name)
    except WrongSetting as error:
        raise error if error.setting != "--cluster" else WrongSetting("hosts", error.given, error.allowed) from error
