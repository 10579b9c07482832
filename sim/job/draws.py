"""What of a job is drawn at random, the same in every world."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from sim.laws import FoldedMixture, checked
from sim.laws.steps import Sleeps, Steps, joined
from sim.platform.cluster import Host
from sim.random_streams import RandomStreams
from sim.randomness import Stream, generator

if TYPE_CHECKING:
    from sim.job.scenario import Scenario

GOLDEN_RATIO = (5**0.5 - 1) / 2
SILVER_RATIO, BRONZE_RATIO = 2**0.5 - 1, (13**0.5 - 3) / 2  # so that walks through several laws do not keep step
NICKEL_RATIO = (29**0.5 - 5) / 2  # the fourth of these means, 5**0.5 - 2, does keep step with the first


class Draws:
    """The random numbers of a scenario, by replication: sleeps, noise, delays, and factors of whole runs.

    Args:
        scenario: whose seed, laws and costs they follow.
    """

    def __init__(self, scenario: Scenario):
        self._scenario = scenario

    def sleeps(self, replication: int, worker: int, call: int = 0) -> Stream | Steps:
        """The induced sleeps of a worker by its number, the same in every world, simulated or real.

        Args:
            call: of several sleeps in a step; 0 is the first.
        """
        return self._sequence("sleeps", self._random(replication, call), worker)

    def every_sleep(self, replication: int, worker: int) -> Sleeps:
        """The same, one after another, however many there are in a step."""
        return Sleeps(partial(self.sleeps, replication, worker))

    def noise(self, replication: int, worker: int) -> Stream | Steps:
        """Factors on the computing of a worker by its number: the noise of the costs times the factors of stragglers."""
        noise = Stream(self._scenario.costs.noise, self._scenario.seed, replication, worker, "noise")
        return joined([noise, self._sequence("factors", self._random(replication), worker)], np.multiply, 1.0)

    def delays(self, replication: int, worker: int) -> Stream | None:
        """The induced delays of what a worker, or master (0), receives, the same in every world; None without."""
        std_s = self._scenario.protocol.delay_std_s
        law = FoldedMixture.model_validate({"components": [{"mean_s": 0.0, "std_s": std_s, "weight": 1}]})
        return Stream(law, self._scenario.seed, replication, worker, "delay") if std_s > 0 else None

    def run_factor(self, replication: int, host: int) -> float:
        """The factor on all computation of one run on one host, by its index in the cluster's machines.

        Replications walk through the law by the golden ratio from a random start. The mean of a few is then near the law's. Drawn
        independently, 20 of them leave a prediction uncertain by a quarter of the drift.
        """
        if self._scenario.costs.run.sole is not None:
            return self._scenario.costs.run.sole
        start = generator(self._scenario.seed, 0, host, "run").random()
        return self._scenario.costs.run.quantile((start + replication * GOLDEN_RATIO) % 1)

    def error_factor(self, replication: int) -> float:
        """The factor on all work of one run for the error of its profile, median 1; replications walk through it likewise.

        On GPUs that are known by name alone the error is large. The first replication then has the median, and later pairs are at
        equal distances from it: the answer of a few replications would otherwise have a large error.
        """
        if self._scenario.on_named_gpus:
            place = ((replication + 1) // 2 * SILVER_RATIO + 0.5) % 1
            return math.exp(self._scenario.costs.error * _normal(place) * (-1) ** replication)
        return math.exp(self._off(self._scenario.costs.error, replication, 0, SILVER_RATIO))

    def resume_s(self, replication: int) -> float:
        """Further seconds of the first work after a sleep in one run, as far as its profile knows; may be negative."""
        return self._scenario.costs.resume_s + self._off(
            self._scenario.costs.resume_error_s, replication, 2, NICKEL_RATIO
        )

    def contention(self, replication: int, host: Host) -> float:
        """The contention between busy cores of a host in one replication, with calibration's uncertainty.

        Some draws are below 0, because ignorance would otherwise make jobs slower. All busy cores together never work twice as fast.
        """
        off = math.exp(self._off(host.contention_error, replication, 1, BRONZE_RATIO))
        return max(-0.5 / host.cores, (1 + host.contention) * off - 1)

    def _off(self, deviation: float, replication: int, number: int, ratio: float) -> float:
        """Normal, of mean 0; replications walk through it, as through the law of runs."""
        if not deviation:
            return 0.0
        start = generator(self._scenario.seed, 0, number, "error").random()
        return deviation * _normal((start + replication * ratio) % 1)

    def _sequence(self, method: str, random: RandomStreams, worker: int) -> Stream | Steps:
        return checked.sequence(self._scenario.stragglers, method, self._scenario, random, worker)

    def _random(self, replication: int, call: int = 0) -> RandomStreams:
        of = replication if self._scenario.sleeps_of is None else self._scenario.sleeps_of
        return RandomStreams(self._scenario.seed, of, call=call)


def _normal(share: float) -> float:
    """The quantile of a normal distribution."""
    from scipy.special import ndtri

    return float(ndtri(share))
