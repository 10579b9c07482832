"""The cores of a host: a task begins on the core with the least to do, and tasks on one core take turns."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import simpy

MOST_POLLS = 0.5  # of all cores: ranks that poll give way to ranks that work
POLL_DIGITS = 9  # of cores that polls take, which come and go
TICK_S = 4e-3  # of Linux's scheduler at 250 Hz: when a turn may end, and an idle core may take over a task
THREADS_TURN_S = 0.25e-3  # of a runtime whose threads hand work on to one another: its phases are many short tasks
MOST_TURNS = 20  # of the shortest task on a core
ROUND_OFF_S = 1e-12


def rate(tasks, cores: int, contention: float, polls=0.0):
    """The pace of each of `tasks` (a number or an array, 1 or more) on `cores`; 1 is a core that has its host to itself.

    Args:
        polls: cores that the polls of waiting ranks take meanwhile.
    """
    busy = np.minimum(tasks + polls, cores)
    left = cores - np.minimum(polls, cores * MOST_POLLS)
    return np.minimum(1.0, left / tasks) / (1 + contention * (busy - 1))


@dataclass(eq=False)
class Task:
    """Some work, and the rank that does it; None for a runtime's threads."""

    left_s: float
    done: simpy.Event
    who: object


@dataclass(eq=False)
class Core:
    """One core and its tasks in turn; the first has it, since `since_s`."""

    tasks: deque[Task] = field(default_factory=deque)
    since_s: float = 0.0
    updated_s: float = 0.0
    timer: int = 0


class Cores:
    """The cores of a host, as Linux gives them: a task has its core until it is done or its turn is over, and stays on it.

    Tasks on one core take turns. A task that has waited begins on the core with the fewest tasks; one that goes on with other work stays.
    Three equal tasks on two cores therefore take twice as long as one, and not 1.5 times. An idle core takes over the work of a runtime's
    threads at once, because any thread of a pool may do it, and a rank's task after `TICK_S`.

    Args:
        speed: of a core, relative to the one that costs were measured on.
        contention: see sim.platform.cluster.Host.
        turn_s: for which a task has the core if another one waits; longer if all have much to do, which saves events.
    """

    def __init__(
        self,
        env: simpy.Environment,
        count: int,
        speed: float = 1.0,
        contention: float = 0.0,
        turn_s: float = TICK_S,
    ):
        self.env, self.count, self.speed, self._turn_s = env, count, speed, turn_s
        self._paces = cache(lambda busy, polls: float(rate(busy, count, contention, polls)))
        self._cores = [Core() for _ in range(count)]
        self._busy, self._polls = 0, 0.0
        # Of each rank: the core on which it worked last, until when, and since when its turn was.
        self._last: dict[object, tuple[Core, float, float]] = {}

    @property
    def idle(self) -> bool:
        """Whether a core is idle."""
        return self._busy < self.count

    def work(self, seconds: float, who: object = None) -> simpy.Event:
        """An event that fires when a core has given this task `seconds` (of a core of speed 1).

        Args:
            who: the rank that works; None for a runtime's threads.
        """
        task = Task(seconds / self.speed, self.env.event(), who)
        core, until_s, since_s = self._last.get(who, (None, 0.0, 0.0))
        if core is None or until_s < self.env.now:
            core = min(self._cores, key=lambda other: (len(other.tasks), other is not core))
            self._put(core, task)
        else:
            self._put(core, task, since_s)
        return task.done

    def take(self, cores: float) -> None:
        """From now on the polls of waiting ranks take so many cores more, or less."""
        before, self._polls = self._polls, max(0.0, round(self._polls + cores, POLL_DIGITS))
        if self._busy and self._paces(self._busy, before) != self._paces(self._busy, self._polls):
            self._repace(self._busy, before)

    def _put(self, core: Core, task: Task, since_s: float | None = None) -> None:
        """Put a task on a core. The turn of a rank that goes on began with its earlier task."""
        self._advance(core)
        if since_s is None:
            core.tasks.append(task)
        else:
            core.tasks.appendleft(task)
        if core.tasks[0] is task:
            core.since_s = self.env.now if since_s is None else since_s
        if len(core.tasks) == 1:
            self._busy += 1
            self._repace(self._busy - 1, self._polls, besides=core)
        self._wake(core)

    def _repace(self, busy: int, polls: float, besides: Core | None = None) -> None:
        """Set the pace of all cores anew: the number of busy ones, or of polls, has changed."""
        if busy and self._paces(busy, polls) != self._paces(max(1, self._busy), self._polls):
            pace = self._paces(busy, polls)
            for core in self._cores:
                if core.tasks and core is not besides:
                    self._advance(core, pace)
                    self._wake(core)

    def _advance(self, core: Core, pace: float | None = None) -> None:
        """Advance a core to now, at a pace; at its present one if none is given."""
        if core.tasks:
            pace = self._paces(self._busy, self._polls) if pace is None else pace
            core.tasks[0].left_s -= (self.env.now - core.updated_s) * pace
        core.updated_s = self.env.now

    def _wake(self, core: Core) -> None:
        """Set the timer for the end of the work, or of the turn, of the task that has the core; an earlier timer is then stale."""
        core.timer += 1
        if core.tasks:
            lasts_s = core.tasks[0].left_s / self._paces(self._busy, self._polls)
            if len(core.tasks) > 1:
                turn_s = max(self._turn_s, min(task.left_s for task in core.tasks) / MOST_TURNS)
                lasts_s = min(lasts_s, core.since_s + turn_s - self.env.now)
            timer = self.env.timeout(max(0.0, lasts_s), core.timer)
            timer.callbacks.append(lambda timer: self._end(core, timer))

    def _end(self, core: Core, timer: simpy.Event) -> None:
        """The work, or the turn, of the task that has the core is over."""
        if timer.value != core.timer:
            return
        self._advance(core)
        since_s, core.since_s, task = core.since_s, self.env.now, core.tasks.popleft()
        if task.left_s > max(ROUND_OFF_S, math.ulp(self.env.now)):  # less than the clock resolves would never end
            core.tasks.append(task)
        else:
            if task.who is not None:
                self._last[task.who] = core, self.env.now, since_s
            task.done.succeed()
            if not core.tasks:
                self._idles(core)
        self._wake(core)

    def _idles(self, core: Core) -> None:
        """A core has come to the end of its tasks."""
        self._busy -= 1
        self._repace(self._busy + 1, self._polls)
        waiting = [(other, task) for other in self._cores for task in islice(other.tasks, 1, None)]
        of_nobody = [(other, task) for other, task in waiting if task.who is None]
        if of_nobody:
            self._take_over(core, *of_nobody[0])
        elif waiting:
            self.env.timeout(TICK_S).callbacks.append(lambda _: self._balance(core))

    def _balance(self, core: Core) -> None:
        """Give an idle core a waiting task of the longest queue: the one with most work left."""
        other = max(self._cores, key=lambda other: len(other.tasks))
        if not core.tasks and len(other.tasks) > 1:
            self._take_over(core, other, max(islice(other.tasks, 1, None), key=lambda task: task.left_s))

    def _take_over(self, core: Core, other: Core, task: Task) -> None:
        """Move a task that waits for another core to this one."""
        self._advance(other)
        other.tasks.remove(task)
        self._wake(other)
        self._put(core, task)
