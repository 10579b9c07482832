"""What the event world keeps of one rank besides its texts: when it is busy, what its work takes, its polls, and its other threads."""

from __future__ import annotations

import math
from collections.abc import Callable

from sim.language.event.task import Task
from sim.language.job import PIECES, Job
from sim.language.rank import Rank
from sim.language.verbs import in_pieces
from sim.model.costs import COLD_AFTER_S, COLD_FROM_S
from sim.platform.polling import STAGES, late_s

THREADS = 2**20  # numbers of their texts, from which no message comes


class Busy:
    """The times in which one rank computes, waits for a core, sleeps as a straggler, or moves bytes; it is idle in all others."""

    def __init__(self, world):
        self._world, self._works, self._since_s = world, 0, 0.0
        self._times = list[list[float]]()  # from, to

    def begin(self, works: int = 1) -> None:
        """A text of the rank begins to work or to sleep; 0: other threads, which leave it idle."""
        if not self._works:
            self._since_s = self._world.time_s
        self._works += works

    def end(self, works: int = 1) -> None:
        """It ends."""
        self._works -= works
        if works and not self._works:
            self.moves(self._since_s, self._world.time_s)

    def moves(self, from_s: float, to_s: float) -> None:
        """Bytes leave, or come, in this time."""
        last = self._times[-1] if self._times else None
        if last and last[0] <= from_s <= last[1]:
            last[1] = max(last[1], to_s)
        else:
            self._times.append([from_s, to_s])

    def idle_s(self, from_s: float, to_s: float) -> float:
        """Idle seconds between two times."""
        idle_s, covered_s = 0.0, from_s
        going = [[self._since_s, self._world.time_s]] if self._works else []
        for begin_s, end_s in sorted([*self._times, *going]):
            idle_s += max(0.0, min(begin_s, to_s) - covered_s)
            covered_s = max(covered_s, min(end_s, to_s))
        return idle_s + max(0.0, to_s - covered_s)


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


class Polls:
    """The polls of one rank, between which it sleeps, longer and longer (sim.platform.polling).

    Args:
        device: on which it polls.
        shares: of its sleeps that are left when a message comes, one after another.
    """

    def __init__(self, world, job: Job, device, shares):
        self._world, self._job, self._device, self._shares, self._late = world, job, device, shares, 0
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
        self._late += 1
        return late_s(waited_s, self._job.oversleep_s, self._shares[self._late - 1])

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


class OtherThreads:
    """Background work of one rank: other threads of a runtime do it, no text waits for it, and it slows ranks that need the cores.

    Args:
        moments: of the pieces, round by round, as shares of the time that they are spread over.
    """

    def __init__(self, world, me: Rank, moments):
        self._world, self._me, self._moments = world, me, moments
        self._begun_s, self._round, self.slept_s, self._messages, self._pieces = 0.0, -2, 0.0, 0, 0

    def begin(self) -> None:
        """A forward pass begins: the first of its round begins the round's work.

        At random moments, since at even distances workers that share cores would stay in step for ever, which real ones do not.
        """
        now_s, me = self._world.time_s, self._me
        if me.round != self._round and self._world.job.background_s:
            span_s = now_s - self._begun_s - self.slept_s
            self._round, self._begun_s, self.slept_s = me.round, now_s, 0.0
            self._pieces += PIECES
            moments_s = [now_s + span_s * self._moments[k] for k in range(self._pieces - PIECES, self._pieces)]
            task = Task(
                self._world,
                me,
                in_pieces(me, moments_s, self._world.job.background_s / PIECES),
                THREADS + max(0, me.round),
            )
            task.who = None
            self._world.start(task)

    def pass_on(self, seconds: float) -> None:
        """Work for some seconds for a message, from now on."""
        if seconds > 0:
            self._messages += 1
            number = 2 * THREADS + self._messages % THREADS
            task = Task(self._world, self._me, self._me.work(seconds=seconds), number)
            task.who = None
            self._world.tasks[self._me.rank, number] = task
            task.go()
