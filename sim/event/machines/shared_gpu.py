"""A GPU whose ranks compute in time slices: those that compute at once all go on at one pace."""

from __future__ import annotations

import math
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import simpy

ROUND_OFF_S = 1e-12


def pace(ranks, switching: float):
    """The pace of each of `ranks` (a number or an array, 1 or more) that compute at once; 1 is a rank that has the GPU to itself.

    Processes take turns on a GPU: kernels of two do not run at once (NVIDIA, "Multi-Process Service", on time slicing). Of a slice,
    changing from one process to the next takes the same share however many there are.

    Args:
        switching: see sim.platform.cluster.Host.
    """
    return np.where(np.asarray(ranks) > 1, np.minimum(1.0, 1.0 / (np.asarray(ranks) * (1 + switching))), 1.0)


class SharedGpu:
    """Slices are much shorter than a gradient's time: all ranks that compute go on together, and whoever has least left ends first.

    Args:
        speed: relative to the GPU that costs were measured on.
        switching: see sim.platform.cluster.Host.
    """

    def __init__(self, env: simpy.Environment, speed: float, switching: float):
        self.env, self._speed, self._switching = env, speed, switching
        self._works: list[tuple[float, int, simpy.Event]] = []  # a heap, by the progress at which they end
        self._progress_s = self._updated_s = 0.0  # of a rank that has computed since the start
        self._numbers, self._timer = count(), 0

    def work(self, seconds: float) -> simpy.Event:
        """An event that fires when the GPU has given a rank so many seconds (of a GPU of speed 1, of its own)."""
        self._advance()
        done = self.env.event()
        heappush(self._works, (self._progress_s + seconds / self._speed, next(self._numbers), done))
        self._wake()
        return done

    @property
    def _pace(self) -> float:
        return float(pace(len(self._works), self._switching))

    def _advance(self) -> None:
        if self._works:
            self._progress_s += (self.env.now - self._updated_s) * self._pace
        self._updated_s = self.env.now

    def _wake(self) -> None:
        """Set the timer for the first that ends; an earlier timer is then stale."""
        self._timer += 1
        if self._works:
            left_s = max(0.0, self._works[0][0] - self._progress_s) / self._pace
            self.env.timeout(left_s, self._timer).callbacks.append(self._end)

    def _end(self, timer: simpy.Event) -> None:
        if timer.value != self._timer:
            return
        self._advance()
        least_s = max(ROUND_OFF_S, math.ulp(self.env.now), math.ulp(self._progress_s))
        ended = []
        while self._works and self._works[0][0] - self._progress_s <= least_s:
            ended.append(heappop(self._works)[2])
        self._wake()
        for done in ended:
            done.succeed()
