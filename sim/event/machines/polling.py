"""How a rank waits: it is woken at once, or it polls and sleeps in between (sim.platform.polling).

A rank that polls notices a message at its next poll, and its polls take cores from ranks that compute.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import simpy

from sim.collectives.barrier import barrier
from sim.laws.randomness import BLOCK, generator
from sim.platform.polling import STAGES, late_s, polls_per_s


class Woken:
    """Waits that end at once.

    Args:
        mechanics: sim.event.machines.contended.Contended.
    """

    polled_s = 0.0  # when the rank polled last

    def __init__(self, mechanics):
        self._mechanics = mechanics

    def until(self, event: simpy.Event):
        """Wait for an event; its value."""
        if event.processed:
            return event.value
        value = yield event
        self.polled_s = self._mechanics.env.now
        return value

    def notice(self, call: Callable[[], object]) -> None:
        """Call a function when the rank notices what has happened: now."""
        call()

    def come_together(self):
        """Do nothing: a library's call begins when the last rank comes."""
        return ()


class Polling:
    """Waits by polling, less and less often, except within a library's call.

    Args:
        mechanics: sim.event.machines.contended.Contended.
    """

    def __init__(self, mechanics):
        self._mechanics, self._env, self._cluster = mechanics, mechanics.env, mechanics.scenario.cluster
        self._in_library = mechanics.scenario.protocol.in_library
        self._sleeps = not self._in_library
        self._watch, self._taken, self._waits_since_s, self.polled_s = 0, 0.0, math.inf, 0.0
        self._shares: list[float] = []
        self._rng = None

    def come_together(self):
        """Wait at the barrier before a library's call; the ranks poll."""
        if not self._in_library:
            return
        rank, self._sleeps = self._mechanics.rank, True
        first = rank.workers[0]
        for exchange in barrier(rank.rank - first, range(len(rank.workers))):
            yield from rank.exchange(exchange.among(first))
        self._sleeps = False

    def until(self, event: simpy.Event):
        """Wait for an event, until the first poll after it has fired; its value. At once if it has fired."""
        if event.processed:
            return event.value
        self._waits_since_s = self._env.now
        self._take_polls(self._watch, 0)
        value = yield event
        self._watch += 1
        self._take(0.0)  # but for the last poll
        self.polled_s, seen = self._env.now, self._env.event()
        if self._at_next_poll(seen.succeed):
            yield seen
        self._waits_since_s = math.inf
        return value

    def notice(self, call: Callable[[], object]) -> None:
        """Call a function at the next poll, which takes a core; now, if this rank does not wait or does not sleep."""
        if not self._at_next_poll(call):
            call()

    def _at_next_poll(self, call: Callable[[], object]) -> bool:
        """Whether there is one, after which to call; before it first sleeps a rank polls too."""
        waited_s = self._env.now - self._waits_since_s
        if not self._sleeps or waited_s <= 0:
            return False
        self._mechanics.after(late_s(waited_s, self._cluster.oversleep_s, self._share()), lambda: self._poll(call))
        return True

    def _poll(self, call: Callable[[], object]) -> None:
        self.polled_s = self._env.now
        if self._mechanics.one_work_a_core:
            call()
        else:
            poll = self._mechanics.cores.work(self._cluster.poll_s, self._mechanics.rank.rank)
            poll.callbacks.append(lambda _: call())

    def _share(self) -> float:
        """A random share of a sleep between polls, 0 to 1."""
        if not self._shares:
            seed, replication, number = self._mechanics.rank.random_key
            self._rng = self._rng or generator(seed, replication, number, "pause")
            self._shares = self._rng.random(BLOCK).tolist()
        return self._shares.pop()

    def _take_polls(self, watch: int, stage: int) -> None:
        """Take the share of the cores of one stage's polls while it lasts. An event for each poll would be a hundred for each message."""
        if watch != self._watch or self._mechanics.one_work_a_core:
            return
        self._take(self._cluster.poll_s * polls_per_s(stage, self._cluster.oversleep_s))
        if stage + 1 < len(STAGES):
            self._mechanics.after(STAGES[stage][1], lambda: self._take_polls(watch, stage + 1))

    def _take(self, cores: float) -> None:
        if cores != self._taken:
            self._mechanics.cores.take(cores - self._taken)
            self._taken = cores
