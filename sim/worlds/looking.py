"""What waiting is: a rank that does not spin in MPI naps and looks (sim.naps).

What it waits for it sees at its next look, and its looks take the cores from whoever computes.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import simpy

from sim.collectives.barrier import barrier
from sim.naps import STAGES, late_s, looks_per_s
from sim.randomness import BLOCK, generator


class Looking:
    """Verbs of a rank that waits. The event world gives `world`, `machine`, `scenario`, `now_s`, `luck` and `swap`."""

    def begin_looking(self) -> None:
        """Before the first wait."""
        self._naps = self.naps and not self.scenario.protocol.in_library
        self._watch, self._taken, self._waits_since_s, self.looked_s = 0, 0.0, math.inf, 0.0
        self._shares: list[float] = []
        self._rng = None

    @property
    def naps(self) -> bool:
        """Whether ranks nap while they wait, but for those in a library's call."""
        return self.scenario.cluster.look_s > 0

    def come_together(self):
        """Before a library's call: a barrier whose ranks nap."""
        first, self._naps = self.scenario.servers, True
        for exchange in barrier(self.rank - first, range(self.scenario.workers)):
            yield from self.swap(exchange.among(first))
        self._naps = False

    def until(self, event: simpy.Event):
        """The event's value, at the first look after it has fired; at once if it has."""
        if event.processed:
            return event.value
        self._waits_since_s = self.now_s
        self._take_looks(self._watch, 0)
        value = yield event
        self._watch += 1
        self._take(0.0)  # but for the last look
        self.looked_s, seen = self.now_s, self.world.env.event()
        if self._at_next_look(seen.succeed):
            yield seen
        self._waits_since_s = math.inf
        return value

    def notice(self, call: Callable[[], object]) -> None:
        """Call at the next look, which takes a core; now, if this rank does not wait, or does not nap."""
        if not self._at_next_look(call):
            call()

    def _at_next_look(self, call: Callable[[], object]) -> bool:
        """Whether there is one, after which to call; before its first nap a rank looks too."""
        waited_s = self.now_s - self._waits_since_s
        if not self._naps or waited_s <= 0:
            return False
        nap_s = late_s(waited_s, self.scenario.cluster.oversleep_s, self._share())
        self.world.env.timeout(nap_s).callbacks.append(lambda _: self._look(call))
        return True

    def _look(self, call: Callable[[], object]) -> None:
        self.looked_s = self.now_s
        if self.world.one_work_a_core:
            call()
        else:
            look = self.machine.cores.work(self.scenario.cluster.look_s, self.rank)
            look.callbacks.append(lambda _: call())

    def _share(self) -> float:
        """Of a nap, by chance."""
        if not self._shares:
            self._rng = self._rng or generator(*self.luck, "nap")
            self._shares = self._rng.random(BLOCK).tolist()
        return self._shares.pop()

    def _take_looks(self, watch: int, stage: int) -> None:
        """Take what looks of one stage of a wait take, all the while: look by look there would be a hundred events for each message."""
        cluster, (_, lasts_s) = self.scenario.cluster, STAGES[stage]
        if watch != self._watch or not self.naps or self.world.one_work_a_core:
            return
        self._take(cluster.look_s * looks_per_s(stage, cluster.oversleep_s))
        if stage + 1 < len(STAGES):
            self.world.env.timeout(lasts_s).callbacks.append(lambda _: self._take_looks(watch, stage + 1))

    def _take(self, cores: float) -> None:
        if cores != self._taken:
            self.machine.cores.take(cores - self._taken)
            self._taken = cores
