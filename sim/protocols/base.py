"""A protocol of a job: the settings of a text (sim.texts), and what plans, bounds and fits ask of it."""

from __future__ import annotations

import math
from dataclasses import Field, asdict, field, fields, make_dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

from sim import texts
from sim.base.errors import WrongSetting
from sim.language.text import Text

SOME = 10**6  # workers, more than any setting leaves out


class Protocol:
    """A protocol: a subclass for each class of texts, made by `protocol_of`, a frozen dataclass of the text's settings but `servers`.

    Attributes:
        text_class: the text's class, whose docstring names the paper.
        name: by which commands know it.
        delay_std_s: every message is delayed by |N(0, delay_std_s)| seconds where it is received.
        local_aggregation: the first worker of a host sends for all its workers.
    """

    text_class: ClassVar[type[Text]]
    name: ClassVar[str]
    __dataclass_fields__: ClassVar[dict[str, Field]]  # of every subclass
    __dataclass_params__: ClassVar[Any]
    delay_std_s: float = 0.0
    local_aggregation: bool = False

    def __post_init__(self):
        self._text.check_settings()

    def text(self, servers: int = 1, *, workers: int = 1, rows: bool = False) -> Text:
        """What ranks of a job follow.

        Args:
            servers: that share the weights, of texts with any number.
            workers: 0 is one process alone.
            rows: whether rows of sparse variables travel between servers and workers.
        """
        settings = asdict(self)
        if not workers:
            timed = {name: settings[name] for name in ("time_limit_s", "partitions") if name in settings}
            return texts.Alone(**timed)
        if self.text_class in (texts.SynchronousServers, texts.BackupWorkers) and settings.pop("barrier"):
            if rows and not settings["backup"]:
                return texts.RowServers(servers, local_aggregation=False)
            return texts.BarrierServers(servers, **settings)
        return self.text_class(**settings, **({"servers": servers} if self.has_servers else {}))

    @cached_property
    def _text(self) -> Text:
        return self.text()

    def check(self, scenario) -> None:
        """Refuse a scenario (sim.job.scenario.Scenario) that the settings do not fit.

        Raises:
            WrongSetting: naming the setting.
        """
        text_of(scenario).checked(Size(scenario.ranks, scenario.batch, scenario.workload.variables))
        served = self.served(scenario.workload)
        if scenario.test_size and served and len(served) < len(scenario.workload.variables):
            allowed = f"0 with {self.name} and this model: no rank has all parameters"
            raise WrongSetting("--test-size", scenario.test_size, allowed)

    # Which ranks there are

    @property
    def has_servers(self) -> bool:
        """Whether ranks 0, 1, ... are parameter servers, any number of them."""
        return "servers" in self.text_class.__dataclass_fields__

    @property
    def masterless(self) -> bool:
        """Whether every rank, from 0, is a worker that updates its own parameters."""
        return not (self.has_servers or self.text_class.servers)

    # When they go on

    @property
    def by_arrival(self) -> bool:
        """Whether the order in which gradients arrive decides what becomes of them."""
        return self._text.by_arrival or self.text_class.each or self.gradients_per_update(SOME) < SOME

    @property
    def stale(self) -> bool:
        """Whether gradients of an update may be of other parameters than those that it changes."""
        return self.text_class.stale or self.text_class.each

    @property
    def limits_computing(self) -> bool:
        """Whether time cuts computing short, whatever the minibatch."""
        return getattr(self, "time_limit_s", math.inf) < math.inf

    @property
    def overlaps(self) -> bool:
        """Whether messages travel while a rank computes."""
        return self.text_class.layerwise or not self.text_class.joins

    def gradients_per_update(self, workers: int) -> int:
        """Gradients whose sum makes an update."""
        return self._text.gradients_per_update(workers)

    def updates_per_step(self, workers: int) -> int:
        """Updates of a server in which every worker contributes once on average."""
        return max(1, workers) if self.text_class.each else 1

    @property
    def way(self) -> str:
        """The kind of update: by each gradient as it comes, or by several at once."""
        return "asynchronous" if self.text_class.each else "synchronous"

    @property
    def in_library(self) -> bool:
        """Whether its messages travel within one call of MPI's."""
        return self.masterless and not self.overlaps and getattr(self, "algorithm", "") == "auto"

    # Which variables go where

    def served(self, workload) -> tuple:
        """The variables that the master or the servers hold; of sparse ones on servers, rows alone travel."""
        return tuple(filter(self._is_served, workload.variables))

    def gathered(self, workload) -> tuple:
        """The sparse variables whose rows all workers hand to one another, and which they update by themselves."""
        return tuple(filter(self._is_gathered, workload.variables))

    def summed(self, workload) -> tuple:
        """The variables that workers sum among themselves, and update by themselves."""
        return tuple(one for one in workload.variables if not (self._is_served(one) or self._is_gathered(one)))

    def _is_served(self, variable) -> bool:
        return not self.masterless and bool(variable.rows or self.text_class.serves == "all")

    def _is_gathered(self, variable) -> bool:
        return bool(variable.rows) and not getattr(self, "sparse_as_dense", True)

    def __reduce__(self):
        return _made, (self.text_class, asdict(self))


class Size(NamedTuple):
    """What texts ask of a job before it is one.

    Args:
        ranks: servers included.
        layers: of the model.
    """

    ranks: int
    batch: int
    layers: tuple


KNOWN: dict[type[Text], type[Protocol]] = {}  # protocols that were made, by their texts


def protocol_of(of: type[Text]) -> type[Protocol]:
    """The protocol of a class of texts: its settings but `servers`, which is the job's."""
    if of in KNOWN:
        return KNOWN[of]
    settings = [
        (one.name, one.type, field(default=one.default, default_factory=one.default_factory, metadata=one.metadata))
        for one in fields(of)
        if one.name != "servers"
    ]
    told = {name: getattr(of, name) for name in ("__doc__", "__module__", "__qualname__")}
    about = {"name": of.name, "text_class": of, **told}
    KNOWN[of] = make_dataclass(of.__name__, settings, bases=(Protocol,), namespace=about, frozen=True)
    KNOWN[of].__module__ = of.__module__  # where Python 3.12 and later have put that of this function
    return KNOWN[of]


def with_settings(text: Text) -> Protocol:
    """The protocol of a text, with its settings."""
    return _made(type(text), {one.name: getattr(text, one.name) for one in fields(text) if one.name != "servers"})


def _made(of: type[Text], settings: dict[str, Any]) -> Protocol:
    return protocol_of(of)(**settings)


def text_of(scenario) -> Text:
    """What the ranks of a scenario (sim.job.scenario.Scenario) follow."""
    return scenario.protocol.text(scenario.servers, workers=scenario.workers, rows=scenario.traffic.sends_rows)
