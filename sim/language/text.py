"""A protocol in the language: a class of its few settings, whose call is the text that every rank runs."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import Field, dataclass, fields
from typing import Any, ClassVar, get_origin

from sim.base.errors import Default, WrongSetting
from sim.base.ranges import LONGEST_S, MOST_BYTES, check, check_integer, check_kind
from sim.language.rank import Rank


class Text:
    """A protocol. Subclasses are frozen dataclasses of settings, one file each in sim/texts.

    Args:
        name: by which commands know it.
        servers: ranks before the workers that hold parameters for them; a setting where a text has any number.
        serves: all: servers hold all layers; sparse: those whose gradients are rows alone, and workers the others.
        delay_std_s: see Delayed.
        data: own: a rank has a minibatch of its own in each of its rounds; shared: all ranks have the same one in a step.
        backup: workers whose gradients an update does not wait for.
        names: those that a setting may be, of settings that are names.
        least: of settings that are numbers, where it is not 0.
        infinite: settings that may be so.
        alone: whether a single process may train in its stead (`--workers 0`).
        in_step: whether all ranks end a step together, so that rank 0's step is that of all.
        by_arrival: whether the order in which gradients come decides what becomes of them.
        stale: whether gradients of an update may be of other weights than those that it changes.
        each: whether rank 0 updates with each gradient by itself: a step is then as many updates as there are workers.
        joins: whether the gradient of a minibatch is copied as a whole, from a device and before it is sent; else layer by layer, while
            others are computed.
        micros: the setting that says how many micro-batches a minibatch has.
        loops: these are turns of one loop in a graph, and no computations by themselves.
        layerwise: servers update each layer by itself.
        keeps: what a rank keeps of weights, their gradients and the optimiser's state. whole: all; parts: a part of each layer, and whole
            layers while they are computed, as sim.texts.fsdp; layers: its own, as sim.texts.pipeline.
    """

    name: ClassVar[str]
    __dataclass_fields__: ClassVar[dict[str, Field]]  # of every subclass
    __dataclass_params__: ClassVar[Any]
    servers: int = 0
    serves: ClassVar[str] = "all"
    delay_std_s: float = 0.0
    data: ClassVar[str] = "own"
    backup: int = 0
    alone: ClassVar[bool] = False
    in_step: ClassVar[bool] = False
    by_arrival: ClassVar[bool] = False
    stale: ClassVar[bool] = False
    each: ClassVar[bool] = False
    names: ClassVar[Mapping[str, Collection[str]]] = {}
    least: ClassVar[dict[str, float]] = {"servers": 1}
    infinite: ClassVar[Collection[str]] = ()
    joins: ClassVar[bool] = True
    micros: ClassVar[str] = ""
    loops: bool = False
    layerwise: ClassVar[bool] = False
    keeps: ClassVar[str] = "whole"

    def __init_subclass__(cls, **named):
        """A text without a name is called as its class is."""
        super().__init_subclass__(**named)
        cls.name = vars(cls).get("name", cls.__name__)

    def check_settings(self) -> None:
        """Refuse settings that no job can have.

        Raises:
            WrongSetting: naming the setting.
        """
        for one in fields(self):
            setting, value, least = f"--set {one.name}", getattr(self, one.name), self.least.get(one.name, 0)
            kind, in_seconds = kind_of(one), one.name.endswith("_s")
            if (value is None and "None" in str(one.type)) or (value == math.inf and one.name in self.infinite):
                continue
            if one.name in self.names:
                require(value in self.names[one.name], setting, value, ", ".join(self.names[one.name]))
            elif kind == "int":
                check_integer(setting, value, int(least), MOST_BYTES)
            elif kind == "float":
                most = LONGEST_S if in_seconds else MOST_BYTES
                check(setting, value, least, most, "seconds" if in_seconds else "a number")
            elif kind == "bool":
                check_kind(setting, value, bool, "true or false")

    def checked(self, job) -> None:
        """Refuse settings and jobs that the protocol cannot have.

        Raises:
            WrongSetting: naming the setting.
        """
        self.check_settings()
        for one in fields(self):
            if one.name == self.micros:
                value = getattr(self, one.name)
                given = Default(value) if value == one.default else value
                require(
                    1 <= value <= job.batch, f"--set {one.name}", given, f"an integer from 1 to the batch, {job.batch}"
                )
        require(self.servers < job.ranks, "ranks", job.ranks, f"an integer from {self.servers + 1} with {self.name}")
        self.check(job)

    @property
    def spins(self) -> bool:
        """Whether ranks that wait poll without sleeping in between: within MPI's allreduce, which is what `auto` is in a real run."""
        return not self.servers and self.joins and getattr(self, "algorithm", "") == "auto"

    def gradients_per_update(self, workers: int) -> int:
        """Gradients whose sum makes an update."""
        return 1 if self.each else max(1, workers - self.backup)

    def check(self, job) -> None:
        """Refuse further jobs.

        Raises:
            WrongSetting: naming the setting.
        """

    def __call__(self, me: Rank):
        """The text of a rank: a generator."""
        raise NotImplementedError


@dataclass(frozen=True)
class Delayed(Text):
    """A protocol whose messages may be held back where they have come, so that they overtake one another.

    Args:
        delay_std_s: by |N(0, delay_std_s)| seconds each.
    """

    delay_std_s: float = 0.0

    by_arrival, stale = True, True


def kind_of(setting: Field) -> str:
    """The type of a setting by its name, without `| None`."""
    kind = setting.type
    name = kind.__name__ if isinstance(kind, type) and get_origin(kind) is None else str(kind)
    return name.removesuffix(" | None").strip()


def require(ok: bool, setting: str, given: object, allowed: str) -> None:
    """Refuse a setting that is not right.

    Raises:
        WrongSetting: if not `ok`.
    """
    if not ok:
        raise WrongSetting(setting, given, allowed)
