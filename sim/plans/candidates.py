"""The knowledge about a configuration: first a bound, then results of simulations of more and more steps and runs."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from sim.answers.interval import LEVEL

if TYPE_CHECKING:
    from sim.plans.bounds import Least
    from sim.plans.configurations import Configuration
    from sim.plans.question import Question


class Effort(NamedTuple):
    """The amount of simulation for a job.

    Args:
        share: of all seconds, for one job by sim.needs; a longer job is answered from fewer runs or steps.
        optimism: factor by which an answer is improved before its candidate is thrown out for missing the target.
    """

    name: str
    steps: int
    warmup: int
    runs: int
    share: float
    optimism: float

    def affordable(self, round_s: float, within_s: float) -> Effort:
        """The part of it within the time, if a step of a run takes `round_s`: fewer steps, and then fewer runs.

        Runs are odd in number, because those after the first are at equal distances from the median (Scenario.error_factor).
        """
        rounds = within_s / round_s if round_s else math.inf
        runs = next((runs for runs in (self.runs, 3) if rounds / runs >= FEWEST_ROUNDS), 1)
        steps = min(float(self.steps), max(1.0, rounds / runs - self.warmup))
        return self._replace(runs=min(runs, self.runs), steps=int(steps), warmup=min(self.warmup, int(steps)))


EFFORTS = (
    Effort("closed form", 0, 0, 0, 0.0, 1.01),
    Effort("a few steps", 3, 1, 1, 0.03, 1.03),
    Effort("some runs", 20, 2, 3, 0.04, 1.01),
    Effort("all runs", 50, 5, 9, 0.06, 1.0),
)
NEVER_REACHED = 0.97  # of a bound: candidates that this leaves out tie with the best
HOPE = 1.07  # more runs may raise the value reached with the asked probability by so much: the interval itself is an estimate
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

    def chance(self, needed: float, optimism: float = 1.0) -> float:
        """The probability that one more run reaches so many samples a second: normal in logarithms, on each side of the middle."""
        from scipy.special import ndtr, ndtri

        mid = self.mid * optimism
        if needed <= 0 or mid <= 0:
            return float(needed <= 0)
        side = self.mid / self.low if mid >= needed else self.high / self.mid
        deviation = math.log(side) / float(ndtri((1 + LEVEL) / 2)) if side > 1 else 0.0
        distance = math.log(mid / needed)
        return float(ndtr(distance / deviation)) if deviation else float(distance >= 0)


@dataclass(eq=False)
class Candidate:
    """A configuration that may be the answer.

    Args:
        least: that a step takes.
        error: standard deviation of the logarithm of what is not known of the speed of computing.
        at_most: samples a second, by the least that a step takes.
        least_likely: the same where computing is as slow as it is with 1 less the probability that is asked for.
        effort: that it was simulated with, a place in EFFORTS.
        figures: of that; None before, and where it could not be simulated.
        problem: why it could not.
    """

    configuration: Configuration
    workers: int
    least: Least
    error: float
    at_most: float
    least_likely: float
    effort: int = 0
    figures: Figures | None = None
    problem: str | None = None
    limits: str | None = field(default=None)

    @property
    def samples_per_s(self) -> float:
        """The best knowledge: simulated, or else the bound."""
        return self.figures.mid if self.figures else self.at_most

    @property
    def usd_per_hour(self) -> float:
        """Dollars an hour of all hosts."""
        return self.configuration.usd_per_hour

    def needed(self, question: Question) -> float:
        """Samples a second that meet the target."""
        return question.needed(self.usd_per_hour)

    def key(self, question: Question) -> tuple[float, float]:
        """Its place among the others, the best first."""
        return question.key(self.usd_per_hour, self.samples_per_s * (1.0 if self.figures else NEVER_REACHED))

    def chance(self, question: Question, optimistic: bool = False) -> float:
        """The probability that it meets the target, once it was simulated."""
        assert self.figures
        return self.figures.chance(self.needed(question), EFFORTS[self.effort].optimism if optimistic else 1.0)

    def may_meet(self, question: Question) -> bool:
        """Whether it meets the target with the probability asked, if it is as good as can be hoped.

        Before it is simulated whole: if it does where computing is as slow as it is only with 1 less this probability.
        """
        if self.figures and self.chance(question, optimistic=True) >= question.probability:
            return True
        hoped = self.samples_per_s * self.least_likely / self.at_most * EFFORTS[self.effort].optimism
        return self.effort < WHOLE and hoped * (HOPE if self.figures else 1.0) >= self.needed(question)
