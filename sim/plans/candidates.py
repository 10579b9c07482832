"""The knowledge about a configuration: first a bound, then results of simulations of more and more steps and runs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from sim.base.interval import LEVEL

if TYPE_CHECKING:
    from collections.abc import Callable

    from sim.answers.bounds import Least
    from sim.plans.configurations import Configuration
    from sim.plans.question import Question
    from sim.plans.until import Work


class Effort(NamedTuple):
    """The amount of simulation for a job.

    Args:
        share: of all seconds, for one job by sim.needs; a longer job is answered from fewer runs or steps.
        optimism: factor by which the whole effort may find more samples a second: 1.08 were seen after a few steps (kbatch-async), and
            the mean of three runs is up to 7 % below that of nine where a network is as busy as computing.
    """

    name: str
    steps: int
    warmup: int
    runs: int
    share: float
    optimism: float

    def affordable(self, needed: Callable[[int], tuple[float, float]], within_s: float) -> Effort:
        """The part of it within the time: fewer steps, and then fewer runs.

        Args:
            needed: seconds of so many runs before any step, and of a step of all of them.
        """
        for runs in sorted({self.runs, min(3, self.runs), 1}, reverse=True):
            once_s, step_s = needed(runs)
            rounds = (within_s - once_s) / step_s if step_s else math.inf
            if rounds >= FEWEST_ROUNDS:
                break
        steps = min(float(self.steps), max(1.0, rounds - self.warmup))
        warmup = min(self.warmup, max(SETTLED, int(steps)))
        return self._replace(runs=runs, steps=int(steps), warmup=warmup)


SETTLED = 2  # steps before a job runs evenly: workers of ps-sync have two tokens at first, and their second gradients are dropped
EFFORTS = (
    Effort("closed form", 0, 0, 0, 0.0, 1.01),
    Effort("a few steps", 3, SETTLED, 1, 0.03, 1.1),  # one run does not show the spread of runs
    Effort("some runs", 20, SETTLED, 3, 0.04, 1.07),
    Effort("all runs", 50, 5, 9, 0.06, 1.0),
)
NEVER_REACHED = 0.97  # of a bound: candidates that this leaves out tie with the best
FEWEST_ROUNDS = 8  # of a run; jobs that cannot afford them have fewer runs
WHOLE = len(EFFORTS) - 1


@dataclass(frozen=True)
class Figures:
    """Samples a second, simulated.

    Args:
        low, high: ends of the 90 % interval for one more run; equal to mid without an interval.
        why_none: the reason for no interval.
        steps, warmup, runs: that were simulated.
        goodput: share that failures leave.
        slower: logarithm by which a step may take longer whatever is simulated: at least this is in the interval of more runs.
    """

    low: float
    mid: float
    high: float
    why_none: str | None = None
    world: str = ""
    steps: int = 0
    warmup: int = 0
    runs: int = 0
    goodput: float = 1.0
    slower: float = 0.0

    def chance(self, needed: float, error: float = 0.0) -> float:
        """The probability that one more run reaches so many samples a second: normal in logarithms, on each side of the middle.

        Args:
            error: standard deviation of the logarithm of what is needed, independent of the speed.
        """
        from scipy.special import ndtr, ndtri

        mid = self.mid
        if needed <= 0 or mid <= 0:
            return float(needed <= 0)
        side = mid / self.low if mid >= needed else self.high / mid
        of_speed = math.log(side) / float(ndtri((1 + LEVEL) / 2)) if side > 1 else 0.0
        deviation = math.hypot(of_speed, error)
        distance = math.log(mid / needed)
        return float(ndtr(distance / deviation)) if deviation else float(distance >= 0)

    @property
    def narrowest(self) -> Figures:
        """The same where runs tell all that they may; what they do not tell stays unknown."""
        return replace(self, low=max(self.low, self.mid * math.exp(-self.slower)))


@dataclass(eq=False)
class Candidate:
    """A configuration that may be the answer.

    Args:
        question: that it may answer.
        least: that a step takes.
        error: standard deviation of the logarithm of what is not known of the speed of computing.
        at_most: samples a second, by the least that a step takes.
        least_likely: the same where computing is as slow as it is with 1 less the probability that is asked for.
        effort: that it was simulated with, a place in EFFORTS.
        figures: of that; None before, and where it could not be simulated.
        problem: why it could not.
        p_best: the probability that it is better than the best of every other kind of host; None where there is no other.
        work: until the target, where it differs by the configuration.
    """

    configuration: Configuration
    question: Question
    workers: int
    least: Least
    error: float
    at_most: float
    least_likely: float
    effort: int = 0
    figures: Figures | None = None
    problem: str | None = None
    p_best: float | None = None
    work: Work | None = None

    @property
    def samples_per_s(self) -> float:
        """The best knowledge: simulated, or else the bound."""
        return self.figures.mid if self.figures else self.at_most

    @property
    def usd_per_hour(self) -> float:
        """Dollars an hour of all hosts."""
        return self.configuration.usd_per_hour

    @property
    def samples(self) -> float | None:
        """Of its own whole training; None where all configurations have the same."""
        return self.work.samples if self.work else None

    @property
    def error_of_samples(self) -> float:
        """Standard deviation of their logarithm."""
        return self.work.error if self.work else 0.0

    @property
    def needed(self) -> float:
        """Samples a second that meet the target."""
        return self.question.needed(self.usd_per_hour, self.samples)

    @property
    def key(self) -> tuple[float, float]:
        """Its place among the others, the best first: as good as the whole effort may find it."""
        return self.key_at(self.hoped)

    def key_at(self, samples_per_s: float) -> tuple[float, float]:
        """Its place, were it so fast; less is better: money and then time, or time and then money."""
        usd, time = self.cost_at(samples_per_s), (self.samples or 1) / samples_per_s
        return (usd, time) if self.question.cheapest else (time, usd)

    def cost_at(self, samples_per_s: float) -> float:
        """USD of the whole training, or of an hour, were it so fast."""
        hours = self.hours_at(samples_per_s)
        return self.usd_per_hour if hours is None else hours * self.usd_per_hour

    def hours_at(self, samples_per_s: float) -> float | None:
        """The time of the whole training, were it so fast; None if it has no end."""
        return self.question.hours(samples_per_s, self.samples)

    @property
    def hoped(self) -> float:
        """Samples a second that the whole effort may find, or near the bound."""
        return self.samples_per_s * (EFFORTS[self.effort].optimism if self.figures else NEVER_REACHED)

    @property
    def chance(self) -> float:
        """The probability that it meets the target, once it was simulated."""
        assert self.figures
        return self.figures.chance(self.needed, self.error_of_samples)

    @property
    def meets(self) -> bool:
        """Whether it meets the target with the probability asked, by what was simulated."""
        return self.chance >= self.question.probability

    @property
    def may_meet(self) -> bool:
        """Whether it meets the target with the probability asked; before it is simulated whole, whether it still may.

        It may if neither bound is below the target: the closed form where computing is as slow as it is with 1 less this
        probability, and the simulated speed with as narrow an interval as more runs may leave. What links and predictions are not known
        to stays in it.
        """
        if self.figures and self.effort == WHOLE:
            return self.meets
        needed = self.needed / EFFORTS[self.effort].optimism
        if self.least_likely < needed or not self.figures:
            return self.least_likely >= needed
        return self.figures.narrowest.chance(needed, self.error_of_samples) >= self.question.probability
