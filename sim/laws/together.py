"""Several stragglers at once."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from pydantic import Field

from sim.laws.base import Stragglers
from sim.laws.independent import Independent
from sim.laws.kinds import LAWS
from sim.laws.markov import Markov
from sim.laws.own import Own
from sim.laws.persistent import Persistent
from sim.laws.replay import Replay
from sim.laws.slow_ranks import SlowRanks
from sim.laws.steps import joined

MOST_PARTS = 20
_PARTS: tuple[type[Stragglers], ...] = (*LAWS.values(), Independent, Markov, Persistent, SlowRanks, Replay, Own)
if TYPE_CHECKING:
    _Any = Stragglers  # a union that is made in a loop is none to a type checker
else:
    _Any = reduce(or_, _PARTS)
AnyPart = Annotated[_Any, Field(discriminator="kind")]


class Together(Stragglers):
    """Sleeps add up, and factors multiply; each part has random numbers of its own.

    Args:
        of: the parts, written with a plus between them on a command line.
    """

    kind: Literal["together"] = "together"
    of: tuple[AnyPart, ...] = Field(min_length=1, max_length=MOST_PARTS)

    @property
    def mean(self) -> float:
        return sum(part.mean for part in self.of)

    @property
    def mean_factor(self) -> float:
        return float(np.prod([part.mean_factor for part in self.of]))

    @property
    def slows_computing(self) -> bool:
        return any(part.slows_computing for part in self.of)

    def sleeps(self, scenario, random, worker):
        return joined([part.sleeps(scenario, random.of_part(n), worker) for n, part in enumerate(self.of)], np.add, 0.0)

    def factors(self, scenario, random, worker):
        parts = [part.factors(scenario, random.of_part(n), worker) for n, part in enumerate(self.of)]
        return joined(parts, np.multiply, 1.0)

    def check(self, scenario):
        for part in self.of:
            part.check(scenario)

    def scaled(self, factor):
        return Together(of=tuple(part.scaled(factor) for part in self.of))

    def notes(self, scenario):
        return [note for part in self.of for note in part.notes(scenario)]

    def unreal(self):
        return next((why for part in self.of if (why := part.unreal())), "")


_ALL: tuple[type[Stragglers], ...] = (*_PARTS, Together)
KINDS: dict[str, type[Stragglers]] = {part.model_fields["kind"].default: part for part in _ALL}
AnyStragglers = Annotated[_Any | Together, Field(discriminator="kind")]
