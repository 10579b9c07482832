"""The effect of a straggler while it is slow: it sleeps longer, or its computing takes a factor longer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, model_validator

from sim.laws.base import Law, Stragglers
from sim.laws.constant import Constant
from sim.laws.kinds import AnyLaw
from sim.laws.steps import NOTHING, ONES, Steps

if TYPE_CHECKING:
    from sim.laws.randomness import RandomStreams

LEAST_FACTOR, MOST_FACTOR = 1e-3, 1e3


def _law(value: Any) -> Any:
    """A number, with its unit or without, is a constant law."""
    return Constant.model_validate({"value": value}) if isinstance(value, int | float | str) else value


LawOrNumber = Annotated[AnyLaw, BeforeValidator(_law)]


class Effect(Stragglers):
    """Stragglers that have either `seconds` or a `factor`.

    Args:
        seconds: of sleep, a law or one number.
        factor: on computing, a law or one number.
        by: rank: each has its own draws; host: all ranks of a host share them.
    """

    seconds: LawOrNumber | None = None
    factor: LawOrNumber | None = None
    by: Literal["rank", "host"] = "rank"

    @model_validator(mode="after")
    def _one_of_both(self):
        if (self.seconds is None) == (self.factor is None):
            raise ValueError('seconds, as in seconds = "50 ms", or a factor on computing; one of both')
        if self.factor is not None and not LEAST_FACTOR <= self.factor.mean <= MOST_FACTOR:
            raise ValueError(f"a factor of mean {LEAST_FACTOR:g} to {MOST_FACTOR:g}")
        return self

    @property
    def law(self) -> Law:
        """The law of the seconds, or of the factor, of a worker while it is slow."""
        found: Any = self.factor if self.seconds is None else self.seconds
        return found

    @property
    def slow_share(self) -> float:
        """The expected share of workers' steps in which the law is drawn."""
        return 1.0

    @property
    def mean(self) -> float:
        return self.slow_share * self.seconds.mean if self.seconds else 0.0

    @property
    def mean_factor(self) -> float:
        return 1 + self.slow_share * (self.factor.mean - 1) if self.factor else 1.0

    @property
    def slows_computing(self) -> bool:
        return self.factor is not None

    def sleeps(self, scenario, random, worker):
        return self.steps(scenario, random, worker, 0.0) if self.seconds else NOTHING

    def factors(self, scenario, random, worker):
        return self.steps(scenario, random, worker, 1.0) if self.factor else ONES

    def steps(self, scenario, random: RandomStreams, worker: int, neutral: float) -> Steps:
        """Draws of the law where and while the worker is slow, else `neutral`."""
        raise NotImplementedError

    def number(self, scenario, random: RandomStreams, worker: int) -> int:
        """The number of the random streams that the worker draws from."""
        return worker if self.by == "rank" else random.of_host(scenario.hosts[scenario.rank_of(worker)])

    def scaled(self, factor):
        if self.seconds is None:
            raise ValueError("no factor of a law that is a factor already")
        return self.model_copy(update={"seconds": self.seconds.scaled(factor)})

    def unreal(self):
        if self.factor:
            return "stragglers that sleep: a real rank's computing cannot be slowed down by a factor"
        return "stragglers by rank: which ranks share a host is not known before a real run" * (self.by == "host")
