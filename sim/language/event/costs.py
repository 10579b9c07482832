"""What the work of one rank takes, as far as that depends on what the rank has done before."""

from __future__ import annotations

import math

from sim.language.job import Job
from sim.language.rank import Rank
from sim.model.costs import COLD_AFTER_S, COLD_FROM_S


class Costs:
    """Seconds of a core of speed 1, of one rank.

    Args:
        servers: of the text.
        world: whose clock is read.

    Attributes:
        slept: the rank has slept since it fetched a minibatch.
        warm_s: when its last pass or update ended.
    """

    def __init__(self, job: Job, me: Rank, servers: int, world):
        self._job, self._me, self._world = job, me, world
        self._noise, self._input, self._update = (
            job.noise(me.rank, servers, of) for of in ("noise", "input", "update")
        )
        self.slept, self.warm_s = False, 0.0
        self._fetched, self._updates = -1, 0  # the round whose whole minibatch is there, and updates made

    def fetch_s(self, share: float) -> float:
        """Of fetching a share of this round's minibatch, if that is not there."""
        number, job = max(0, self._me.round), self._job
        if self._fetched == number:
            return 0.0
        self._fetched = number if share == 1 else self._fetched
        slept, self.slept = self.slept, False
        return self._input[number] * job.input_s * share + (job.resume_s if slept else 0.0)

    def pass_s(self, seconds: float, opens: bool) -> float:
        """Of a pass that takes so many without noise; it may begin a gradient."""
        cold_s = self._cold(self._job.cold_s) if opens else 0.0
        return seconds * self._noise[max(0, self._me.round)] + cold_s

    def update_s(self, items: float) -> float:
        """Of the optimiser on so many items."""
        number, self._updates = self._updates, self._updates + 1
        seconds = self._job.update_base_s + self._job.update_s * items
        return seconds * self._update[number] + self._cold(self._job.update_cold_s)

    def _cold(self, cold_s: float) -> float:
        """Of a rank whose caches have gone cold: as much more with each doubling of the time since it was warm."""
        if not cold_s:
            return 0.0
        idle_s = min(max(self._world.time_s - self.warm_s, COLD_FROM_S), COLD_AFTER_S)
        return cold_s * (math.log(idle_s / COLD_FROM_S) / math.log(COLD_AFTER_S / COLD_FROM_S))
