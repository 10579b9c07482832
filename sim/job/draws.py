"""What of a job is drawn at random, the same in every world."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sim.laws import checked
from sim.laws.base import Law, Steps, joined
from sim.laws.randomness import STATES, RandomStreams, Stream, generator

if TYPE_CHECKING:
    from sim.job.scenario import Scenario

GOLDEN_RATIO = (5**0.5 - 1) / 2
NOISES = ("noise", "input_noise", "update_noise", "common_noise", "common_input_noise", "common_update_noise", "run")
COMMON = {"noise": "common_noise", "input": "common_input_noise", "update": "common_update_noise"}  # fields of Costs


class Draws:
    """The random numbers of a scenario, by replication: sleeps, noise, delays, and factors of whole runs.

    What is unknown about costs is not drawn: it is at its median in every run, and sim.answers.quantities says what else it may be.

    Args:
        scenario: whose seed, laws and costs they follow.
    """

    def __init__(self, scenario: Scenario):
        self._scenario = scenario

    @property
    def are_alike(self) -> bool:
        """Whether all replications draw the same numbers, so that one of them is all."""
        job = self._scenario
        elsewhere = (
            job.protocol.delay_std_s,
            job.network.unfairness,
            job.cluster.poll_s,  # what is left of a sleep between polls is drawn
            *vars(job.costs.background).values(),
        )
        laws = [job.stragglers, *(getattr(job.costs, name) for name in NOISES)]
        return not any(elsewhere) and all(isinstance(law, Law) and law.sole is not None for law in laws)

    def sleeps(self, replication: int, worker: int, call: int = 0) -> Stream | Steps:
        """The induced sleeps of a worker by its number, the same in every world, simulated or real; a stream where all draw a law alike.

        Args:
            call: of several sleeps in a step; 0 is the first.
        """
        found = self._sequence("sleeps", self._random(replication, call), worker)
        return found if isinstance(self._scenario.stragglers, Law) else Steps(found.first, found.sole)

    def noise(self, replication: int, worker: int) -> Stream | Steps:
        """Factors on the computing of a worker by its number: the noise of the costs times the factors of stragglers."""
        noise = Stream(self._scenario.costs.noise, self._scenario.seed, replication, worker, "noise")
        factors = self._sequence("factors", self._random(replication), worker)
        return joined([noise, self.common(replication, "noise"), factors], np.multiply, 1.0)

    def common(self, replication: int, purpose: str) -> Steps:
        """Factors that all ranks have alike in a step, on computing (noise), input or update.

        Steps walk through the law as replications do through that of runs: one step in ten is a checkpoint's in any ten.
        """
        law = getattr(self._scenario.costs, COMMON[purpose])
        if law.sole is not None:
            return Steps(sole=law.sole)
        start = generator(self._scenario.seed, replication, STATES, purpose).random()
        return Steps(lambda count: law.upper((start + np.arange(count) * GOLDEN_RATIO) % 1))

    def run_factor(self, replication: int, host: int) -> float:
        """The factor on all computation of one run on one host, by its index in the cluster's machines.

        Replications walk through the law by the golden ratio from a random start. The mean of a few is then near the law's. Drawn
        independently, 20 of them leave a prediction uncertain by a quarter of the drift.
        """
        if self._scenario.costs.run.sole is not None:
            return self._scenario.costs.run.sole
        start = generator(self._scenario.seed, 0, host, "run").random()
        return self._scenario.costs.run.quantile((start + replication * GOLDEN_RATIO) % 1)

    def _sequence(self, method: str, random: RandomStreams, worker: int) -> Stream | Steps:
        return checked.sequence(self._scenario.stragglers, method, self._scenario, random, worker)

    def _random(self, replication: int, call: int = 0) -> RandomStreams:
        of = replication if self._scenario.sleeps_of is None else self._scenario.sleeps_of
        return RandomStreams(self._scenario.seed, of, call=call)
