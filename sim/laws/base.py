"""Values by step, stragglers, which slow workers down from step to step, and their simplest case: a law of independent draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sim.base.models import Checked

if TYPE_CHECKING:
    from typing import Self

    from sim.laws.randomness import RandomStreams

LEAST = 128  # steps that are worked out at first


class Steps:
    """Values by step, as randomness.Stream has them.

    Args:
        values: of the first so many steps, shape (steps,). More of them begin with the same ones.
        sole: the value of every step, if they are all alike.
    """

    def __init__(self, values: Callable[[int], np.ndarray] | None = None, sole: float | None = None):
        self._values, self._known, self.sole = values, np.empty(0), sole

    def first(self, count: int) -> np.ndarray:
        """Values of steps 0 to count - 1, shape (count,)."""
        if self.sole is not None:
            return np.full(count, self.sole)
        if count > len(self._known) and self._values is not None:
            self._known = self._values(max(LEAST, count))
        return self._known[:count]

    def __getitem__(self, step: int) -> float:
        if self.sole is not None:
            return self.sole
        if step >= len(self._known):
            self.first(2 * step + 1)
        return float(self._known[step])


class Sleeps:
    """The sleeps of one worker, one after another: the first of each step, and further ones of the same step, which are drawn anew.

    Args:
        of_call: the sleeps by step of each call within a step, from 0.
    """

    def __init__(self, of_call: Callable[[int], Any]):
        self._of_call, self._made = of_call, [of_call(0)]
        self._step, self._call = -1, 0

    @property
    def sole(self) -> float | None:
        """The seconds of every sleep, if they are all alike."""
        return self._made[0].sole

    def next(self, step: int) -> float:
        """Seconds of the next sleep, which is in this step."""
        self._call = self._call + 1 if step == self._step else 0
        self._step = step
        if self._call == len(self._made):
            self._made.append(self._of_call(self._call))
        return self._made[self._call][step]


ONES, NOTHING = Steps(sole=1.0), Steps(sole=0.0)


def joined(parts: list, how: np.ufunc, neutral: float):
    """The values of all `parts` together, step by step.

    Args:
        how: np.add or np.multiply.
        neutral: the value that changes nothing.
    """
    parts = [part for part in parts if part.sole != neutral]
    if len(parts) < 2:
        return parts[0] if parts else ONES if neutral else NOTHING
    if all(part.sole is not None for part in parts):
        return Steps(sole=float(how.reduce([part.sole for part in parts])))
    return Steps(lambda count: how.reduce([part.first(count) for part in parts]))


class Stragglers(Checked):
    """Seconds that each worker sleeps in each step, and factors on its computing, in the job that is the `scenario`.

    `mean` is the expected sleep of a worker and step, seconds.
    """

    kind: str = "own"

    def model_post_init(self, context: object, /) -> None:
        """Its kind counts as given, so that it is written wherever a law is."""
        self.model_fields_set.add("kind")

    if TYPE_CHECKING:

        @property
        def mean(self) -> float:
            """The expected sleep of a worker and step, seconds."""

    def sleeps(self, scenario, random: RandomStreams, worker: int) -> Steps:
        """Seconds that a worker, by its number, sleeps in each step."""
        return NOTHING

    def factors(self, scenario, random: RandomStreams, worker: int) -> Steps:
        """Factors on the computing of a worker in each step."""
        return ONES

    def check(self, scenario) -> None:
        """Raise WrongSetting for a job that cannot have these stragglers."""

    @property
    def slows_computing(self) -> bool:
        """Whether there are factors on computing."""
        return type(self).factors is not Stragglers.factors

    def scaled(self, factor: float) -> Self:
        """The same with all sleeps `factor` times as long; ValueError if it has none."""
        raise NotImplementedError

    def notes(self, scenario) -> list[str]:
        """Caveats, a line each."""
        return []

    def unreal(self) -> str:
        """Why real runs cannot have it; empty if they can."""
        return ""


class Law(Stragglers):
    """A distribution of non-negative numbers. As stragglers: one draw of seconds for each worker and step.

    `mean` is the expected value, in the unit of the draws. The names of the parameters in that unit are in `in_unit`.
    """

    in_unit: ClassVar[tuple[str, ...]] = ()

    @property
    def sole(self) -> float | None:
        """The value of every draw, if they are all alike."""
        return None

    def draw(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> np.ndarray:
        """Independent draws, of the shape `size`. Fewer rows, from an equal generator, are the first ones of more rows.

        Args:
            rng: of numpy.random.default_rng.
        """
        raise NotImplementedError

    def quantile(self, share: float) -> float:
        """The value that a `share` (0 to 1) of draws do not exceed."""
        raise NotImplementedError

    def upper(self, share) -> np.ndarray:
        """The values that shares (0 to 1) of draws exceed, shape as theirs; precise where a share is small."""
        values = [self.quantile(1 - one) for one in np.ravel(share)]
        return np.reshape(values, np.shape(share))

    def sleeps(self, scenario, random, worker):
        return random.draws(self, worker)

    def scaled(self, factor):
        if not self.in_unit:
            raise ValueError(f"a law that can be scaled; {self.kind} cannot")
        longer = {name: np.multiply(getattr(self, name), factor).tolist() for name in self.in_unit}
        return type(self).model_validate(self.model_dump() | longer)
