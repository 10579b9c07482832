"""The random numbers of stragglers in one replication."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from sim.base.ranges import MOST_RANKS
from sim.laws import Law
from sim.randomness import Stream, generator

STATES, HOSTS, PART = (
    MOST_RANKS + 1,
    2 * (MOST_RANKS + 1),
    20 * MOST_RANKS,
)  # streams that are none of a worker's own draws


@dataclass(frozen=True)
class RandomStreams:
    """Streams of draws, by number; equal ones in every world.

    Args:
        seed: of the scenario.
        replication: of the run.
        part: of several stragglers that act together, each with random numbers of its own.
        call: of several sleeps of a rank in a step, each with draws of its own; 0 is the first.
    """

    seed: int
    replication: int
    part: int = 0
    call: int = 0

    def draws(self, law: Law, number: int) -> Stream:
        """Draws of a law: of a worker by its number, or of a host by `of_host`."""
        return Stream(law, self.seed, self.replication, self.part * PART + number, "sleep", self.call)

    def uniform(self, number: int) -> Callable[[int], np.ndarray]:
        """A function of a count: so many numbers from 0 to 1, shape (count,), on which no draws depend."""
        key = (self.seed, self.replication, self.part * PART + STATES + number, "sleep")
        return lambda count: generator(*key).random(count)

    def of_host(self, host: int) -> int:
        """The number of a host, by its index: its ranks share what is drawn for it."""
        return HOSTS + host

    def of_part(self, part: int) -> RandomStreams:
        """The streams of one of several stragglers."""
        return replace(self, part=part)
