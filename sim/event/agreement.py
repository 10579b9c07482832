"""How all ranks agree on the gradients to sum next."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

from sim.event.clock import Clock
from sim.verbs.fusion import agreement_s


class Agreement:
    """Ranks that ask which gradients all have. All know some time after the last one has asked, and go on in the order of their numbers."""

    def __init__(self, scenario, clock: Clock):
        self._scenario, self._clock = scenario, clock
        self._asking: list[
            Any
        ] = []  # of each rank: its number, its clock, how many gradients it has ready, and its thread

    def ask(self, rank, ready: int, by_name: bool):
        """Wait until all know how many gradients all have."""
        asking = self._asking
        asking.append((rank.rank, rank.clock_s, ready, rank.thread))
        if len(asking) == self._scenario.workers:
            self._asking = []
            least, (base_s, named_s) = min(one[2] for one in asking), agreement_s(self._scenario, by_name)
            at_s = max(one[1] for one in asking) + base_s + named_s * (least - rank.book.reduced)
            for *_, thread in sorted(asking, key=itemgetter(0)):
                self._clock.call(at_s, thread.go, (at_s, least))
        rank.clock_s, least = yield
        return least
