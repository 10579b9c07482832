"""The cores of a host, and how long each rank is at work."""

from __future__ import annotations

from bisect import insort
from collections import deque
from typing import Any


class Busy:
    """The time in which any text of one rank computes, works or sleeps."""

    def __init__(self, world):
        self._world = world
        self._works, self._since_s, self._total_s = 0, 0.0, 0.0
        self._marked = 0.0, 0.0  # the time of the mark, and busy seconds until then

    def begin(self) -> None:
        """A text of the rank begins to work."""
        if not self._works:
            self._since_s = self._world.time_s
        self._works += 1

    def end(self) -> None:
        """It ends."""
        self._works -= 1
        if not self._works:
            self._total_s += self._world.time_s - self._since_s

    def _until_now(self) -> float:
        return self._total_s + (self._world.time_s - self._since_s if self._works else 0.0)

    def mark(self) -> None:
        """Idle seconds count from now on."""
        self._marked = self._world.time_s, self._until_now()

    def idle(self) -> tuple[float, float]:
        """Idle seconds since the mark, and all seconds since then."""
        own_s = self._world.time_s - self._marked[0]
        return max(0.0, own_s - (self._until_now() - self._marked[1])), own_s


class InTurn:
    """Cores that serve one computation after another, in the order in which they are asked.

    Args:
        count: of cores.
    """

    def __init__(self, world, count: int):
        self._world, self._count = world, count
        self._queue, self._served = deque[tuple[Any, float]](), list[Any]()

    def work(self, task, seconds: float):
        """Work for some seconds of a core."""
        self._queue.append((task, seconds))
        self._serve()
        try:
            yield "a core"
        finally:  # when it has worked, or is stopped
            if task in self._served:
                self._served.remove(task)
                self._world.busy[task.me.rank].end()
                self._serve()
            else:
                self._queue = deque(one for one in self._queue if one[0] is not task)

    def _serve(self) -> None:
        while self._queue and len(self._served) < self._count:
            task, seconds = self._queue.popleft()
            self._served.append(task)
            self._world.busy[task.me.rank].begin()
            self._world.at(self._world.time_s + seconds, task.key, task.waker(task.turn))


class Shared:
    """Cores that all computations share evenly, each at one core's speed at most.

    Args:
        count: of cores.
    """

    def __init__(self, world, count: int):
        self._world, self._count = world, count
        self._done_s, self._last_s = (
            0.0,
            0.0,
        )  # seconds that each computation would have had since the start, and until when
        self._ends, self._plans = (
            list[tuple[float, tuple, Any]](),
            0,
        )  # of computations: (done_s at which one ends, key, task), in order

    def work(self, task, seconds: float):
        """Work for some seconds of a core."""
        self._settle()
        entry = (self._done_s + seconds, task.key, task)
        insort(self._ends, entry)
        self._world.busy[task.me.rank].begin()
        self._plan()
        try:
            yield "a core"
        finally:
            self._settle()
            self._ends.remove(entry)
            self._world.busy[task.me.rank].end()
            self._plan()

    @property
    def _rate(self) -> float:
        return min(1.0, self._count / max(1, len(self._ends)))

    def _settle(self) -> None:
        self._done_s += (self._world.time_s - self._last_s) * self._rate
        self._last_s = self._world.time_s

    def _plan(self) -> None:
        self._plans += 1
        if self._ends:
            end_s, key, task = self._ends[0]
            due_s = self._world.time_s + max(0.0, end_s - self._done_s) / self._rate
            self._world.at(due_s, key, lambda plan=self._plans: self._due(plan, task))

    def _due(self, plan: int, task) -> None:
        if plan == self._plans:
            self._done_s, self._last_s = self._ends[0][0], self._world.time_s
            task.go()
