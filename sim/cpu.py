"""The cores of a host: whoever begins to work takes the one with the least to do, and those on one core share it equally."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import simpy

MOST_LOOKS = 0.5  # of all cores: those who look give way to those who work
LOOK_DIGITS = 9  # of cores that looks take, which come and go
BALANCE_S = 4e-3  # for which a core idles before it takes a task from one that has several: a tick of Linux's at 250 Hz


def rate(tasks, cores: int, contention: float, looks=0.0):
    """What each of `tasks` (a number or an array, 1 or more) on `cores` gets of a core that has its host to itself.

    Args:
        looks: what ranks that wait take of the cores meanwhile, in cores.
    """
    busy = np.minimum(tasks + looks, cores)
    left = cores - np.minimum(looks, cores * MOST_LOOKS)
    return np.minimum(1.0, left / tasks) / (1 + contention * (busy - 1))


@dataclass(eq=False)
class Core:
    """One core and its tasks, by virtual finish time: n of them each advance at 1 / n of its pace.

    Exact by virtual time: the next to finish is the one with the least virtual finish time (Kleinrock, Queueing Systems II, section 4.4).
    """

    tasks: list[tuple[float, int, simpy.Event, object]] = field(default_factory=list)
    virtual_s: float = 0.0
    updated_s: float = 0.0
    timer: int = 0


class Cores:
    """Processor sharing on each core, as Linux does it: a task stays on the core where it began.

    One that has waited begins on the core with the fewest tasks, one that goes on with other work stays; three equal tasks on two
    cores so take as long as two after one another, not half as long again. A core that idles takes over what is nobody's, for any thread
    of a pool may do it, and after `BALANCE_S` another task.

    Args:
        speed: of a core, relative to the one that costs were measured on.
        contention: see sim.cluster.Host.
    """

    def __init__(self, env: simpy.Environment, count: int, speed: float = 1.0, contention: float = 0.0):
        self.env, self.count, self.speed = env, count, speed
        self._paces = cache(lambda busy, looks: float(rate(busy, count, contention, looks)))
        self._cores = [Core() for _ in range(count)]
        self._busy, self._arrivals, self._looks = 0, 0, 0.0
        self._last: dict[object, tuple[Core, float]] = {}  # where somebody worked last, and until when

    @property
    def idle(self) -> bool:
        """Whether a core has nothing to do."""
        return self._busy < self.count

    def work(self, seconds: float, who: object = None) -> simpy.Event:
        """An event that fires when a core has given this task `seconds` (of a core of speed 1).

        Args:
            who: works; nobody in particular, a runtime's threads, if None.
        """
        core, until_s = self._last.get(who, (None, 0.0))
        if core is None or until_s < self.env.now:
            core = min(self._cores, key=lambda other: (len(other.tasks), other is not core))
        done = self.env.event()
        self._arrivals += 1
        self._advance(core)
        self._put(core, (core.virtual_s + seconds / self.speed, self._arrivals, done, who))
        return done

    def take(self, cores: float) -> None:
        """From now on, ranks that wait take so many cores more, or less, for their looks."""
        before, self._looks = self._looks, max(0.0, round(self._looks + cores, LOOK_DIGITS))
        if self._busy and self._paces(self._busy, before) != self._paces(self._busy, self._looks):
            self._repace(self._busy, before)

    def _put(self, core: Core, task: tuple) -> None:
        heapq.heappush(core.tasks, task)
        if len(core.tasks) == 1:
            self._busy += 1
            self._repace(self._busy - 1, self._looks, besides=core)
        self._wake(core)

    def _repace(self, busy: int, looks: float, besides: Core | None = None) -> None:
        """All cores go at another pace from now on than with so many busy ones, and so many looks."""
        if busy and self._paces(busy, looks) != self._paces(max(1, self._busy), self._looks):
            pace = self._paces(busy, looks)
            for core in self._cores:
                if core.tasks and core is not besides:
                    self._advance(core, pace)
                    self._wake(core)

    def _advance(self, core: Core, pace: float | None = None) -> None:
        if core.tasks:
            pace = self._paces(self._busy, self._looks) if pace is None else pace
            core.virtual_s += (self.env.now - core.updated_s) * pace / len(core.tasks)
        core.updated_s = self.env.now

    def _wake(self, core: Core) -> None:
        """Set the timer for the next task to finish; an earlier timer is then stale."""
        core.timer += 1
        if core.tasks:
            pace = self._paces(self._busy, self._looks)
            left_s = (core.tasks[0][0] - core.virtual_s) * len(core.tasks) / pace
            timer = self.env.timeout(max(0.0, left_s), core.timer)
            timer.callbacks.append(lambda timer: self._finish(core, timer))

    def _finish(self, core: Core, timer: simpy.Event) -> None:
        if timer.value != core.timer:
            return
        self._advance(core)
        finish_s, _, done, who = heapq.heappop(core.tasks)
        core.virtual_s = finish_s
        if who is not None:
            self._last[who] = core, self.env.now
        done.succeed()
        self._left(core)

    def _left(self, core: Core) -> None:
        """A task has left a core."""
        if not core.tasks:
            self._busy -= 1
            self._repace(self._busy + 1, self._looks)
            several = [other for other in self._cores if len(other.tasks) > 1]
            of_nobody = [(other, task) for other in several for task in other.tasks if task[3] is None]
            if of_nobody:
                self._take_over(core, *of_nobody[0])
            elif several:
                self.env.timeout(BALANCE_S).callbacks.append(lambda _: self._balance(core))
        self._wake(core)

    def _balance(self, core: Core) -> None:
        """A core that idles takes over the task with most left of the one that has most."""
        other = max(self._cores, key=lambda other: len(other.tasks))
        if not core.tasks and len(other.tasks) > 1:
            self._take_over(core, other, max(other.tasks))

    def _take_over(self, core: Core, other: Core, task: tuple) -> None:
        """A task of another core's goes on here."""
        self._advance(other)
        other.tasks.remove(task)
        heapq.heapify(other.tasks)
        self._wake(other)
        self._advance(core)
        self._put(core, (core.virtual_s + task[0] - other.virtual_s, *task[1:]))
