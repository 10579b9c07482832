"""The cores of a host, shared equally by the ranks that work on them."""

from __future__ import annotations

import heapq
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import simpy


def rate(tasks, cores: int, contention: float):
    """What each of `tasks` (a number or an array, 1 or more) on `cores` gets of a core that has its host to itself."""
    return np.minimum(1.0, cores / tasks) / (1 + contention * (np.minimum(tasks, cores) - 1))


class Cores:
    """Egalitarian processor sharing: n tasks on c cores each run at min(1, c / n) of a core, less what busy cores cost others.

    Kept exact by virtual time: every task at work advances at one rate, so the next to finish is the one with the least
    virtual finish time (Kleinrock, Queueing Systems II, section 4.4).

    Args:
        speed: of a core, relative to the one that costs were measured on.
        contention: see sim.cluster.Host.
    """

    def __init__(self, env: simpy.Environment, count: int, speed: float = 1.0, contention: float = 0.0):
        self.env, self.count, self.speed = env, count, speed
        self._rates = cache(lambda tasks: float(rate(tasks, count, contention)))
        self._tasks: list[tuple[float, int, simpy.Event]] = []
        self._virtual_s, self._updated_s, self._arrivals, self._timer = 0.0, 0.0, 0, 0

    @property
    def idle(self) -> bool:
        """Whether a core has nothing to do."""
        return len(self._tasks) < self.count

    def work(self, seconds: float) -> simpy.Event:
        """An event that fires when a core has given this task `seconds` (of a core of speed 1)."""
        self._advance()
        done = self.env.event()
        self._arrivals += 1
        heapq.heappush(self._tasks, (self._virtual_s + seconds / self.speed, self._arrivals, done))
        self._wake()
        return done

    def _rate(self) -> float:
        return self._rates(len(self._tasks))

    def _advance(self) -> None:
        if self._tasks:
            self._virtual_s += (self.env.now - self._updated_s) * self._rate()
        self._updated_s = self.env.now

    def _wake(self) -> None:
        """Set the timer for the next task to finish; an earlier timer is then stale."""
        self._timer += 1
        if self._tasks:
            left_s = (self._tasks[0][0] - self._virtual_s) / self._rate()
            timer = self.env.timeout(max(0.0, left_s), self._timer)
            timer.callbacks.append(self._finish)

    def _finish(self, timer: simpy.Event) -> None:
        if timer.value != self._timer:
            return
        self._advance()
        finish_s, _, done = heapq.heappop(self._tasks)
        self._virtual_s = finish_s
        done.succeed()
        self._wake()
