"""A run that has taken long enough ends early, with the steps that are complete."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from sim.base.errors import RunFailed
from sim.protocols import name_of

if TYPE_CHECKING:
    from sim.job.scenario import Scenario


class Patience:
    """Reads the clock at each update of rank 0. At least one step of warm-up and one measured step are always done.

    Protocols that apply each gradient by itself do the whole warm-up: their workers begin together and need time to separate.

    Args:
        within_s: seconds of the wall clock.
    """

    def __init__(self, scenario: Scenario, within_s: float = math.inf):
        self._scenario = scenario
        each = scenario.updates_per_step > 1
        self.least_warmup = scenario.warmup if each else min(scenario.warmup, 1)
        self.over, self._updates = False, 0
        hurried = within_s < math.inf
        self._least = (self.least_warmup + 1) * scenario.updates_per_step if hurried else math.inf
        self._until_s = time.monotonic() + within_s

    @property
    def warmup(self) -> int:
        """Steps that are not measured; fewer than was asked for if the run ended among them."""
        ended = self._updates <= self._scenario.warmup * self._scenario.updates_per_step
        return self.least_warmup if ended else self._scenario.warmup

    def check_complete(self) -> None:
        """Refuse a run that has ended by itself before its last step.

        Raises:
            RunFailed: it made fewer updates than its steps need, or more.
        """
        due = self._scenario.updates
        if self._updates != due:
            allowed = "none: its text has to `yield from me.update()`" if not self._updates else f"{self._updates}"
            said = f"{due} updates are due in {self._scenario.rounds} steps, warm-up included"
            raise RunFailed(f"{name_of(self._scenario.protocol)}: {said}; rank 0 made {allowed}")

    def ends_after(self, updates: int) -> bool:
        """So many updates have been made; whether the run is over with them."""
        self._updates = updates
        self.over = self.over or (updates >= self._least and time.monotonic() > self._until_s)
        return self.over

    def updated(self) -> bool:
        """Rank 0 has made an update; whether the run is over with it."""
        self._updates += 1
        self.over = self.over or (self._updates >= self._least and time.monotonic() > self._until_s)
        return self.over
