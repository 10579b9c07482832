"""A text in the language of named vectors (sim.language) as a job's protocol."""

from __future__ import annotations

from dataclasses import field, fields, make_dataclass
from typing import ClassVar, NamedTuple

from sim.base.errors import WrongText
from sim.language.text import Text
from sim.protocols.base import Protocol

KNOWN: dict[type[Text], type[InLanguage]] = {}  # protocols that were made, by their texts


class InLanguage(Protocol):
    """A protocol whose ranks all follow one text, which the event world of the language runs.

    Attributes:
        of: the text's class.
    """

    of: ClassVar[type[Text]]

    @property
    def counts_updates(self) -> bool:
        """Whether each gradient is an update."""
        return self.of.each

    by_arrival = counts_updates

    def updates_per_step(self, workers: int) -> int:
        """As many as workers where each gradient is an update."""
        return max(1, workers) if self.of.each else 1

    @property
    def has_servers(self) -> bool:
        """Whether the text has any number of servers."""
        return "servers" in self.of.__dataclass_fields__

    @property
    def masterless(self) -> bool:
        """Whether every rank is a worker."""
        return not (self.has_servers or self.of.servers)

    def served(self, workload) -> tuple:
        """The variables that the master or the servers hold."""
        found = super().served(workload)
        return tuple(one for one in found if one.rows) if self.of.serves == "sparse" else found

    def gathered(self, workload) -> tuple:
        """The sparse variables of which workers hand rows to one another."""
        return tuple(one for one in workload.variables if one.rows and not getattr(self, "sparse_as_dense", True))

    def summed(self, workload) -> tuple:
        """The variables that workers hold and sum."""
        others = self.served(workload) + self.gathered(workload)
        return tuple(one for one in workload.variables if one not in others)

    def text(self, servers: int) -> Text:
        """The text with its settings, of a job with so many servers."""
        settings = {one.name: getattr(self, one.name) for one in fields(self)}
        return self.of(**settings, **({"servers": servers} if self.has_servers else {}))

    def check(self, scenario) -> None:
        """Refuse settings and jobs that the text cannot have."""
        self.text(scenario.servers).checked(Size(scenario.ranks, scenario.batch, scenario.workload.variables))

    def worker(self, me):
        """The worlds of the language alone run the text."""
        raise WrongText("a text of named vectors has no roles and verbs: real.run --runtime mpi runs it over MPI")

    master = server = worker

    def __reduce__(self):
        return _made, (self.of, [getattr(self, one.name) for one in fields(self)])


class Size(NamedTuple):
    """What texts ask of a job before it is one.

    Args:
        ranks: servers included.
        layers: of the model.
    """

    ranks: int
    batch: int
    layers: tuple


def protocol_of(of: type[Text]) -> type[InLanguage]:
    """The protocol of a class of texts: its settings but `servers`, which is the job's."""
    if of in KNOWN:
        return KNOWN[of]
    settings = [
        (one.name, one.type, field(default=one.default))
        for one in of.__dataclass_fields__.values()
        if one.name != "servers"
    ]
    about = {
        "name": of.name,
        "of": of,
        "__doc__": of.__doc__,
        "__module__": of.__module__,
        "__qualname__": of.__qualname__,
    }
    KNOWN[of] = make_dataclass(of.__name__, settings, bases=(InLanguage,), namespace=about, frozen=True)
    return KNOWN[of]


def _made(of: type[Text], settings: list) -> InLanguage:
    return protocol_of(of)(*settings)
