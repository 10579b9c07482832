"""Ranks that are slow for a while."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import model_validator

from sim.base.ranges import Probability
from sim.laws.effect import Effect
from sim.laws.steps import Steps


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
