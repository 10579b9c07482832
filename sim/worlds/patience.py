"""A run that has taken long enough ends early, with the steps that are complete."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import simpy


class Patience:
    """Looks at the clock at each update of rank 0.

    Args:
        least: updates that there must be whatever the time: one step after the warm-up.
        within_s: seconds of the wall clock.
    """

    def __init__(self, env: simpy.Environment, least: int, within_s: float = math.inf):
        self.over, self._least, self._updates = env.event(), least, 0
        self._until_s = time.monotonic() + within_s

    def updated(self) -> None:
        """Rank 0 has made an update."""
        self._updates += 1
        if self._updates >= self._least and time.monotonic() > self._until_s and not self.over.triggered:
            self.over.succeed()
