"""Draws that last."""

from __future__ import annotations

from typing import Literal

import numpy as np

from sim.base.ranges import Probability
from sim.laws.effect import Effect
from sim.laws.steps import Steps


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
        return Steps(lambda count: draws.first(count)[self._drawn_in(fates(count))])

    def _drawn_in(self, uniform: np.ndarray) -> np.ndarray:
        """The step in which the value of each step was drawn, from a number between 0 and 1 for each."""
        steps = np.arange(len(uniform))
        return np.maximum.accumulate(np.where(uniform >= self.persistence, steps, 0))
