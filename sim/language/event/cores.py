"""The cores and GPUs of hosts, which computations have in turn or share."""

from __future__ import annotations

from bisect import insort
from collections import deque
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from sim.language.hosts import MOST_TURNS, ROUND_OFF, ROUND_OFF_S, TICK_S, Device


def made(world, device: Device) -> Any:
    """A device of its kind."""
    return (Evenly if device.turn_s == 0 else InTurn if device.turn_s == float("inf") else InTurns)(world, device)


class Polled:
    """Cores on which ranks that wait poll, and so slow those that compute."""

    def __init__(self, world, device: Device):
        self._world, self._device = world, device
        self._polling = [0] * len(world.job.poll_rates)  # ranks by stage of their wait
        self._polls = 0.0  # cores that they take

    def poll(self, stage: int, more: int) -> None:
        """From now on so many ranks more, or less, are in a stage of waiting."""
        self._polling[stage] += more
        self._polls = sum(ranks * rate for ranks, rate in zip(self._polling, self._world.job.poll_rates, strict=True))


class InTurn(Polled):
    """Cores that serve one computation after another, in the order in which they are asked; polls give way to work."""

    def __init__(self, world, device: Device):
        super().__init__(world, device)
        self._queue, self._served = deque[tuple[Any, float]](), list[Any]()

    @property
    def is_busy(self) -> bool:
        """Whether no core is idle."""
        return len(self._served) >= self._device.cores

    def work(self, task, seconds: float):
        """Work for some seconds of a core."""
        self._queue.append((task, seconds))
        self._serve()
        try:
            yield "a core"
        finally:  # when it has worked, or is stopped
            if task in self._served:
                self._served.remove(task)
                self._serve()
            else:
                self._queue = deque(one for one in self._queue if one[0] is not task)

    def _serve(self) -> None:
        while self._queue and len(self._served) < self._device.cores:
            task, seconds = self._queue.popleft()
            self._served.append(task)
            self._world.at(self._world.time_s + seconds, task.key, task.waker(task.turn))


class Evenly(Polled):
    """Cores, or a GPU, that all computations share evenly, each at one core's speed at most."""

    def __init__(self, world, device: Device):
        super().__init__(world, device)
        self._done_s, self._last_s = 0.0, 0.0  # seconds that each would have had since the start, and until when
        self._ends = list[tuple[float, tuple, Any]]()  # (done_s at which one ends, key, task), in order
        self._plans = 0

    @property
    def is_busy(self) -> bool:
        """Whether no core is idle."""
        return len(self._ends) >= self._device.cores

    def work(self, task, seconds: float):
        """Work for some seconds of a core."""
        self._settle()
        entry = (self._done_s + seconds, task.key, task)
        insort(self._ends, entry)
        self._plan()
        try:
            yield "a core"
        finally:
            self._settle()
            self._ends.remove(entry)
            self._plan()

    def poll(self, stage: int, more: int) -> None:
        """From now on so many ranks more, or less, are in a stage of waiting."""
        self._settle()
        super().poll(stage, more)
        self._plan()

    @property
    def _pace(self) -> float:
        return self._device.pace(max(1, len(self._ends)), self._polls)

    def _settle(self) -> None:
        self._done_s += (self._world.time_s - self._last_s) * self._pace
        self._last_s = self._world.time_s

    def _plan(self) -> None:
        self._plans += 1
        if self._ends:
            end_s, key, task = self._ends[0]
            due_s = self._world.time_s + max(0.0, end_s - self._done_s) / self._pace
            self._world.at(due_s, key, lambda plan=self._plans: self._due(plan, task))

    def _due(self, plan: int, task) -> None:
        if plan == self._plans:
            self._done_s, self._last_s = self._ends[0][0], self._world.time_s
            task.go()


@dataclass(eq=False)
class Work:
    """A computation, and the seconds of a core that are left of it."""

    task: Any
    left_s: float
    core: Any = None  # where it is, until it is over


@dataclass(eq=False, slots=True)
class Core:
    """One core and its computations in turn; the first has it, since `since_s`."""

    works: deque[Work] = field(default_factory=deque)
    since_s: float = 0.0
    updated_s: float = 0.0
    plan: int = 0


class InTurns(Polled):
    """Cores as Linux gives them: a computation stays on the core where it began, with the fewest others, which take turns there.

    A text that goes on with other work stays on its core, in its turn; other texts of its rank are threads, which have other cores. A core
    that idles takes over waiting work of a runtime's threads at once, a rank's after a tick: the one of the longest queue with most left.
    Three equal computations on two cores therefore take almost twice as long as one. A turn is longer if all have much to do, which saves
    events.
    """

    def __init__(self, world, device: Device):
        super().__init__(world, device)
        self._cores, self._busy, self._works = [Core() for _ in range(device.cores)], 0, 0

    @property
    def is_busy(self) -> bool:
        """Whether no core is idle."""
        return self._busy >= self._device.cores

    def work(self, task, seconds: float):
        """Work for some seconds of a core."""
        work, (core, until_s, since_s) = Work(task, seconds), task.worked
        if core is not None and until_s == self._world.time_s:
            self._put(core, work, since_s)
        else:
            self._put(self._of_the_fewest(core), work)
        try:
            yield "a core"
        finally:
            if core := work.core:  # it is stopped
                self._take_away(core, work)
                if not core.works:
                    self._idles(core, task.key)

    def _of_the_fewest(self, last: Core | None) -> Core:
        """The core of the fewest computations: the one where the text worked last, or the first."""
        if last is not None and not last.works:
            return last
        if not self.is_busy:
            return next(one for one in self._cores if not one.works)
        return min(self._cores, key=lambda one: (len(one.works), one is not last))

    def poll(self, stage: int, more: int) -> None:
        """From now on so many ranks more, or less, are in a stage of waiting."""
        before = self._polls
        super().poll(stage, more)
        self._repace(self._busy, before)

    def _put(self, core: Core, work: Work, since_s: float | None = None) -> None:
        """Put a computation on a core, last, or first in a turn that has begun."""
        self._advance(core)
        self._works += 1
        work.core = core
        if since_s is None:
            core.works.append(work)
        else:
            core.works.appendleft(work)
        if core.works[0] is work:
            core.since_s = self._world.time_s if since_s is None else since_s
        if len(core.works) == 1:
            self._busy += 1
            self._repace(self._busy - 1, self._polls, core)
        self._wake(core)

    def _take_away(self, core: Core, work: Work) -> None:
        self._advance(core)
        if core.works[0] is work:
            core.since_s = self._world.time_s
        self._works -= 1
        core.works.remove(work)
        self._wake(core)

    def _repace(self, busy: int, polls: float, besides: Core | None = None) -> None:
        """The number of busy cores, or of polls, has changed from these: all cores go at another pace."""
        if busy and (pace := self._device.pace(busy, polls)) != self._device.pace(max(1, self._busy), self._polls):
            for core in self._cores:
                if core.works and core is not besides:
                    self._advance(core, pace)
                    self._wake(core)

    def _advance(self, core: Core, pace: float | None = None) -> None:
        """Advance a core to now, at the present pace or another one."""
        if core.works:
            pace = pace or self._device.pace(self._busy, self._polls)
            core.works[0].left_s -= (self._world.time_s - core.updated_s) * pace
        core.updated_s = self._world.time_s

    def _wake(self, core: Core) -> None:
        """Plan the end of the work, or of the turn, of the one that has the core; an earlier plan is void."""
        core.plan += 1
        if core.works:
            lasts_s = core.works[0].left_s / self._device.pace(self._busy, self._polls)
            if len(core.works) > 1:
                turn_s = max(self._device.turn_s, min(work.left_s for work in core.works) / MOST_TURNS)
                lasts_s = min(lasts_s, core.since_s + turn_s - self._world.time_s)
            due_s = self._world.time_s + max(0.0, lasts_s)
            self._world.at(due_s, core.works[0].task.key, lambda plan=core.plan: self._due(core, plan))

    def _due(self, core: Core, plan: int) -> None:
        """The work, or the turn, of the one that has the core is over."""
        if plan != core.plan:
            return
        self._advance(core)
        now_s = self._world.time_s
        since_s, core.since_s, work = core.since_s, now_s, core.works.popleft()
        if work.left_s > max(ROUND_OFF_S, now_s * ROUND_OFF):
            core.works.append(work)
            self._wake(core)
            return
        self._works -= 1
        work.core = None
        if work.task.who is not None:
            work.task.worked = core, now_s, since_s
        if not core.works:
            self._idles(core, work.task.key)
        self._wake(core)
        work.task.go()

    def _idles(self, core: Core, key: tuple[int, int, int]) -> None:
        """A core has come to the end of its computations."""
        self._busy -= 1
        self._repace(self._busy + 1, self._polls)
        if self._works == self._busy:
            return
        waiting = [(other, work) for other in self._cores for work in islice(other.works, 1, None)]
        of_nobody = [one for one in waiting if one[1].task.who is None]
        if of_nobody:
            self._take_over(core, *of_nobody[0])
        else:
            self._world.at(self._world.time_s + TICK_S, key, lambda: self._balance(core))

    def _balance(self, core: Core) -> None:
        other = max(self._cores, key=lambda other: len(other.works))
        if not core.works and len(other.works) > 1:
            self._take_over(core, other, max(islice(other.works, 1, None), key=lambda work: work.left_s))

    def _take_over(self, core: Core, other: Core, work: Work) -> None:
        """Move a computation that waits for another core to this one."""
        self._take_away(other, work)
        self._put(core, work)
