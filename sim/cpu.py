"""The cores of a host, shared equally by the ranks that work on them."""

from __future__ import annotations

import heapq
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import simpy

MOST_LOOKS = 0.5  # of all cores: those who look give way to those who work
LOOK_DIGITS = 9  # of cores that looks take, which come and go


def rate(tasks, cores: int, contention: float, looks=0.0):
    """What each of `tasks` (a number or an array, 1 or more) on `cores` gets of a core that has its host to itself.

    Args:
        looks: what ranks that wait take of the cores meanwhile, in cores.
    """
    busy = np.minimum(tasks + looks, cores)
    left = cores - np.minimum(looks, cores * MOST_LOOKS)
    return np.minimum(1.0, left / tasks) / (1 + contention * (busy - 1))


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
        self._rates = cache(lambda tasks, looks: float(rate(tasks, count, contention, looks)))
        self._tasks: list[tuple[float, int, simpy.Event]] = []
        self._virtual_s, self._updated_s, self._arrivals, self._timer, self._looks = 0.0, 0.0, 0, 0, 0.0

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

    def take(self, cores: float) -> None:
        """From now on, ranks that wait take so many cores more, or less, for their looks."""
        self._advance()
        self._looks = max(0.0, round(self._looks + cores, LOOK_DIGITS))
        if self._tasks:
            self._wake()

    def _rate(self) -> float:
        return self._rates(len(self._tasks), self._looks)

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
