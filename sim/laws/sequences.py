"""Stragglers whose steps depend on one another, on the rank or on its host, and several at once; a new kind is added here."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, Field, field_validator, model_validator

from sim.base.errors import WrongSetting
from sim.base.ranges import MOST_RANKS, Draw, Probability, RanksIfAny
from sim.laws.base import NOTHING, ONES, Law, Steps, Stragglers, joined
from sim.laws.checked import Own
from sim.laws.distributions import LAWS, MOST_VALUES, AnyLaw, Constant

if TYPE_CHECKING:
    from sim.laws.randomness import RandomStreams

LEAST_FACTOR, MOST_FACTOR = 1e-3, 1e3
MOST_SLOW, MOST_PARTS = 10**4, 20


class SleepsOrFactors(Stragglers):
    """Stragglers that either sleep or compute slower, by their `slows_computing`."""

    def sleeps(self, scenario, random, worker):
        return NOTHING if self.slows_computing else self.steps(scenario, random, worker, 0.0)

    def factors(self, scenario, random, worker):
        return self.steps(scenario, random, worker, 1.0) if self.slows_computing else ONES

    def steps(self, scenario, random: RandomStreams, worker: int, neutral: float) -> Any:
        """Seconds, or factors, of a worker in each step; `neutral` where it is not slow."""
        raise NotImplementedError

    def scaled(self, factor):
        if self.slows_computing:
            raise ValueError("no factor of a law that is a factor already")
        return self.longer(factor)

    def longer(self, factor: float) -> Stragglers:
        """The same with sleeps `factor` times as long."""
        raise NotImplementedError


def _law(value: Any) -> Any:
    """A number, with its unit or without, is a constant law."""
    return Constant.model_validate({"value": value}) if isinstance(value, int | float | str) else value


LawOrNumber = Annotated[AnyLaw, BeforeValidator(_law)]


class Effect(SleepsOrFactors):
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
    def slows_computing(self) -> bool:
        return self.factor is not None

    @property
    def mean(self) -> float:
        return 0.0 if self.slows_computing else self.slow_share * self.law.mean

    def number(self, scenario, random: RandomStreams, worker: int) -> int:
        """The number of the random streams that the worker draws from."""
        return worker if self.by == "rank" else random.of_host(scenario.hosts[scenario.rank_of(worker)])

    def longer(self, factor):
        return self.model_copy(update={"seconds": self.law.scaled(factor)})

    def unreal(self):
        if self.factor:
            return "stragglers that sleep: a real rank's computing cannot be slowed down by a factor"
        return "stragglers by rank: which ranks share a host is not known before a real run" * (self.by == "host")


class Independent(Effect):
    """Each step draws anew; the draws of a step may be shared by the ranks of a host.

    A plain law, such as lognormal(mean=50ms, cv=1), is the same as independent(seconds=lognormal(mean=50ms, cv=1)).
    """

    kind: Literal["independent"] = "independent"

    def steps(self, scenario, random, worker, neutral):
        return random.draws(self.law, self.number(scenario, random, worker))


class Markov(Effect):
    """A Markov chain of two states for each rank, or host: slow, in which it draws from the law, and not.

    The chain begins in its stationary state: slow with probability p_slow / (p_slow + p_recover). It is slow for
    1 / p_recover steps on average.

    Args:
        p_slow: probability that a rank becomes slow, each step.
        p_recover: probability that a slow one recovers, each step.
    """

    kind: Literal["markov"] = "markov"
    p_slow: Probability
    p_recover: Probability

    @model_validator(mode="after")
    def _some_state_is_stationary(self):
        if not self.p_slow + self.p_recover:
            raise ValueError(
                "p_slow or p_recover above 0: a rank that never changes may be slow or not; use slow-ranks"
            )
        return self

    @property
    def slow_share(self) -> float:
        return self.p_slow / (self.p_slow + self.p_recover)

    def steps(self, scenario, random, worker, neutral):
        number = self.number(scenario, random, worker)
        states, draws = random.uniform(number), random.draws(self.law, number)
        return Steps(lambda count: np.where(self.slow(states(count)), draws.first(count), neutral))

    def slow(self, uniform: np.ndarray) -> np.ndarray:
        """Whether the chain is slow in each step, from a number between 0 and 1 for each; shape as theirs.

        A number below both p_slow and 1 - p_recover makes it slow whatever it was, one above both makes it not slow. One in
        between keeps the state if p_slow is the smaller, and changes it otherwise.
        """
        low, high = sorted((self.p_slow, 1 - self.p_recover))
        made = np.where(uniform < low, 1, np.where(uniform >= high, 0, -1))
        made[0] = uniform[0] < self.slow_share
        steps = np.arange(len(made))
        last = np.maximum.accumulate(np.where(made >= 0, steps, 0))
        changes = (steps - last) * (self.p_slow > 1 - self.p_recover)
        return (made[last] + changes) % 2 == 1


class Persistent(Effect):
    """A rank, or host, keeps its draw from one step to the next with a probability, or else draws anew.

    In every step the values have the law, and their autocorrelation at lag k is persistence^k. With 1 a draw lasts for
    the whole run.

    Args:
        persistence: the probability that a draw is kept.
    """

    kind: Literal["persistent"] = "persistent"
    persistence: Probability

    def steps(self, scenario, random, worker, neutral):
        number = self.number(scenario, random, worker)
        fates, draws = random.uniform(number), random.draws(self.law, number)

        def values(count: int) -> np.ndarray:
            drawn_in = np.where(fates(count) >= self.persistence, np.arange(count), 0)
            return draws.first(count)[np.maximum.accumulate(drawn_in)]

        return Steps(values)


class SlowRanks(Effect):
    """The ranks that are named draw from the law in every step, all others never.

    Args:
        rank: one, or a list; numbered as in traces, where a master or the servers come first.
    """

    kind: Literal["slow-ranks"] = "slow-ranks"
    rank: tuple[RanksIfAny, ...] = Field(min_length=1, max_length=MOST_SLOW)
    by: Literal["rank"] = "rank"

    @field_validator("rank", mode="before")
    @classmethod
    def _one_or_several(cls, value):
        return (value,) if isinstance(value, int) and not isinstance(value, bool) else value

    def check(self, scenario):
        first, last = scenario.servers, scenario.ranks - 1
        wrong = [rank for rank in self.rank if not first <= rank <= last]
        if wrong:
            before = {0: "", 1: ": 0 is the master"}.get(first, f": 0 to {first - 1} are servers")
            if first == 1 and scenario.protocol.has_servers:
                before = ": 0 is the server"
            allowed = f"{first} to {last}, the ranks of the workers{before}" if first <= last <= MOST_RANKS else "none"
            raise WrongSetting("--stragglers: slow-ranks: rank", wrong[0], allowed)

    def steps(self, scenario, random, worker, neutral):
        slow = scenario.rank_of(worker) in self.rank
        return random.draws(self.law, worker) if slow else Steps(sole=neutral)


class Replay(SleepsOrFactors):
    """Recorded seconds or factors of ranks, step by step.

    The first worker has the first row. Further workers than rows begin with the first row again, and further steps with the
    first step. Each replication goes on where the one before it ended. A text that sleeps several times in a step sleeps the same
    seconds each time.

    Args:
        values: shape (ranks, steps). Files name a table instead: file = "steps.csv", with columns rank, step and seconds or
            factor; or a trace, whose sleeps are replayed.
        unit: seconds of sleep, or factor on computing.
    """

    kind: Literal["replay"] = "replay"
    values: tuple[tuple[Draw, ...], ...] = Field(min_length=1, max_length=MOST_VALUES)
    unit: Literal["seconds", "factor"] = "seconds"

    @model_validator(mode="after")
    def _as_many_steps_each(self):
        lengths = {len(row) for row in self.values}
        if len(lengths) != 1 or not max(lengths):
            raise ValueError("as many steps, and at least one, of each rank")
        if len(self.values) * max(lengths) > MOST_VALUES:
            raise ValueError(f"at most {MOST_VALUES:,} values, ranks times steps")
        return self

    @property
    def slows_computing(self) -> bool:
        return self.unit == "factor"

    @property
    def mean(self) -> float:
        return 0.0 if self.slows_computing else float(np.mean(self.values))

    def steps(self, scenario, random, worker, neutral):
        row = np.array(self.values[(worker - 1) % len(self.values)])
        begun = random.replication * scenario.rounds % len(row)
        return Steps(lambda count: np.resize(np.roll(row, -begun), count))

    def longer(self, factor):
        return Replay(values=np.multiply(self.values, factor).tolist())

    def notes(self, scenario):
        ranks, steps = len(self.values), len(self.values[0])
        said = []
        if scenario.workers > ranks:
            said.append(f"{scenario.workers} workers begin with the first of {ranks} recorded ranks again")
        if scenario.rounds > steps:
            said.append(f"{scenario.rounds} steps (warm-up too) begin with the first of {steps} recorded steps again")
        return [f"replayed stragglers wrap around: {', and '.join(said)}"] if said else []

    def unreal(self):
        return "replayed seconds: a real rank's computing cannot be slowed down by a factor" * self.slows_computing


_PARTS: tuple[type[Stragglers], ...] = (*LAWS.values(), Independent, Markov, Persistent, SlowRanks, Replay, Own)
if TYPE_CHECKING:
    _Any = Stragglers  # a union that is made in a loop is none to a type checker
else:
    _Any = reduce(or_, _PARTS)


class Together(Stragglers):
    """Sleeps add up, and factors multiply; each part has random numbers of its own.

    Args:
        of: the parts, written with a plus between them on a command line.
    """

    kind: Literal["together"] = "together"
    of: tuple[Annotated[_Any, Field(discriminator="kind")], ...] = Field(min_length=1, max_length=MOST_PARTS)

    @property
    def mean(self) -> float:
        return sum(part.mean for part in self.of)

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
