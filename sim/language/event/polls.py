"""How one rank waits where ranks poll: it sees what has happened at its next poll, and its polls take cores from ranks that compute."""

from __future__ import annotations

from collections.abc import Callable

from sim.language.job import Job
from sim.platform.polling import STAGES, late_s


class Polls:
    """The polls of one rank, between which it sleeps, longer and longer (sim.platform.polling).

    Args:
        device: on which it polls.
        shares: of its sleeps that are left when a message comes, one after another.
    """

    def __init__(self, world, job: Job, device, shares):
        self._world, self._job, self._device, self._shares = world, job, device, shares
        self._waits = self._watch = self._stage = 0
        self._since_s = 0.0  # when it has begun to wait

    def begin(self, key: tuple[int, int, int]) -> None:
        """A text of the rank begins to wait."""
        self._waits += 1
        if self._waits == 1:
            self._stage, self._since_s = 0, self._world.time_s
            self._poll(self._watch, key)

    def end(self) -> None:
        """What it has waited for has happened."""
        self._waits -= 1
        if not self._waits:
            self._watch += 1
            self._device.poll(self._stage, -1)

    def late_s(self, since_s: float) -> float:
        """Seconds to the next poll, after waiting since then."""
        waited_s = self._world.time_s - since_s
        if waited_s <= 0 or self._world.text.spins:
            return 0.0
        return late_s(waited_s, self._job.oversleep_s, next(self._shares))

    def notice(self, key: tuple[int, int, int], call: Callable[[], object]) -> None:
        """Call when the rank sees what has happened: at its next poll while it waits, else now."""
        if late_s := self.late_s(self._since_s) if self._waits else 0.0:
            self._world.at(self._world.time_s + late_s, key, call)
        else:
            call()

    def _poll(self, watch: int, key: tuple[int, int, int]) -> None:
        """Poll as in this stage of the wait, while it lasts: an event for each poll would be a hundred for each message."""
        if watch == self._watch:
            self._device.poll(self._stage, 1)
            if self._stage + 1 < len(STAGES):
                over_s = self._world.time_s + STAGES[self._stage][1]
                self._world.at(over_s, key, lambda: self._next(watch, key))

    def _next(self, watch: int, key: tuple[int, int, int]) -> None:
        if watch == self._watch:
            self._device.poll(self._stage, -1)
            self._stage += 1
            self._poll(watch, key)
