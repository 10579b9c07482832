"""Background work: other threads of a runtime do it, no text waits for it, and it slows ranks that need the cores."""

from __future__ import annotations

from sim.language.event.task import Task
from sim.language.job import PIECES
from sim.language.rank import Rank
from sim.language.verbs import pause

THREADS = 2**20  # numbers of their texts, from which no message comes


class OtherThreads:
    """Those of one rank.

    Args:
        moments: of the pieces, round by round, as shares of the time that they are spread over.
    """

    def __init__(self, world, me: Rank, moments):
        self._world, self._me, self._moments = world, me, moments
        self._begun_s, self._round, self.slept_s, self._messages = 0.0, -2, 0.0, 0

    def begin(self) -> None:
        """A forward pass begins: the first of its round begins the round's work.

        At random moments, since at even distances workers that share cores would stay in step for ever, which real ones do not.
        """
        now_s, me = self._world.time_s, self._me
        if me.round != self._round and self._world.job.background_s:
            span_s = now_s - self._begun_s - self.slept_s
            self._round, self._begun_s, self.slept_s = me.round, now_s, 0.0
            moments_s = [now_s + span_s * share for share in next(self._moments)]
            task = Task(self._world, me, self._work(moments_s), THREADS + max(0, me.round))
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

    def _work(self, moments_s: list[float]):
        for moment_s in moments_s:
            yield from pause(self._me, moment_s)
            yield from self._me.work(seconds=self._world.job.background_s / PIECES)
