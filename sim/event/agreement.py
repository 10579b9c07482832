"""How all ranks agree on the gradients to sum next."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

from sim.event.clock import Clock
from sim.verbs.fusion import agreement_s


class Agreement:
    """Ranks that ask which gradients all have. All know some time after the last one has asked."""

    def __init__(self, scenario, clock: Clock):
        self._scenario, self._clock = scenario, clock
        self._asking: list[
            Any
        ] = []  # of each rank: its number, how many gradients it has ready, and the event by which it knows

    def ask(self, rank, by_name: bool):
        """Wait until all know how many gradients all have; they go on in the order of their numbers."""
        asking, known = self._asking, self._clock.event()
        asking.append((rank.rank, rank.ready, known))
        if len(asking) == self._scenario.workers:
            least, (base_s, named_s) = min(one[1] for one in asking), agreement_s(self._scenario, by_name)
            self._clock.after(base_s + named_s * (least - rank.book.reduced), self._tell, least)
        return rank.mechanics.waits.until(known)

    def _tell(self, least: int) -> None:
        asking, self._asking = self._asking, []
        for *_, known in sorted(asking, key=itemgetter(0)):
            known.succeed(least)
