"""The random numbers of the ranks of one run. Draws that are equal at all ranks exist once."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from sim.event.ranks.drawn import Drawn
from sim.laws import Law
from sim.laws.randomness import Stream
from sim.laws.steps import Sleeps, joined


class RandomStreams:
    """The random numbers of all ranks of a run.

    Args:
        replication: its number.
    """

    def __init__(self, scenario, replication: int):
        self.scenario, self.replication = scenario, replication
        self._delayed = scenario.protocol.delay_std_s > 0
        self._alike: dict[tuple[str, float], Drawn] = {}

    def of(self, law: Law, number: int, purpose: str, factor: float = 1.0) -> Drawn:
        """The draws of a law for one rank's purpose, times what all ranks have alike; one object for all ranks if they do not differ.

        Args:
            number: of the rank, as the worker's that it is (see Scenario.worker_number).
        """
        found = self._alike.get((purpose, factor))
        if found is None:
            common = self.scenario.draws.common(self.replication, purpose)
            drawn = joined([Stream(law, *self.key(number), purpose), common], np.multiply, 1.0)
            found = Drawn(drawn, factor, self.scenario.rounds)
            if law.sole is not None:
                self._alike[purpose, factor] = found
        return found

    def key(self, number: int) -> tuple[int, int, int]:
        """The key of a rank's streams: seed, replication and number."""
        return self.scenario.seed, self.replication, number

    def sleeps(self, number: int) -> Sleeps:
        """A rank's induced sleeps, seconds."""
        draws = self.scenario.draws
        return self._sleepless or Sleeps(lambda call: Drawn(draws.sleeps(self.replication, number, call)))

    @cached_property
    def _sleepless(self) -> Sleeps | None:
        """The sleeps of all ranks, if there are none."""
        law = self.scenario.stragglers
        sleepless = isinstance(law, Law) and law.sole == 0
        return self.scenario.draws.every_sleep(self.replication, 0) if sleepless else None

    def factors(self, number: int, run_factor: float) -> Drawn:
        """Factors on a rank's computing: the noise of the costs, times those of stragglers, times that of the run."""
        if self.scenario.stragglers.slows_computing:
            return Drawn(self.scenario.draws.noise(self.replication, number), run_factor)
        return self.of(self.scenario.costs.noise, number, "noise", run_factor)

    @cached_property
    def resume_s(self) -> float:
        """Further seconds of the first work after a sleep."""
        return self.scenario.costs.resume_s

    def delays(self, number: int) -> Stream | None:
        """Induced delays of what a rank receives, seconds; None without."""
        return self.scenario.draws.delays(self.replication, number) if self._delayed else None
