"""How many samples enter the updates of each step."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from sim.language.rank import Rank


class Samples:
    """Counts of one run, in samples times items of the weights: an update of a part counts for that part.

    Ranks that compute in a step and update in it may each apply the same sum, as after an allreduce: no sample then counts twice.
    """

    def __init__(self, ranks: list[Rank]):
        self._items = ranks[0].weights.items
        self._at_hand = [0.0 for _ in ranks]  # in the gradient of each rank
        self._used = [True for _ in ranks]  # whether that gradient begins anew
        self._last = [-1 for _ in ranks]  # the last step in which each has computed
        self._counts = [defaultdict[int, float](float) for _ in range(3)]
        self._computed, self._replicated, self._served = self._counts

    def computed(self, me: Rank, samples: int, items: int) -> None:
        """A rank has added the gradient of some layers' items to its own."""
        self._add(me, samples * items)
        self._computed[me.step] += samples * items
        self._last[me.rank] = me.step

    def added(self, me: Rank, samples: float) -> None:
        """A rank has added a message's gradient to its own."""
        self._add(me, samples * self._items)

    def _add(self, me: Rank, amount: float) -> None:
        held = 0.0 if self._used[me.rank] else self._at_hand[me.rank]
        self._at_hand[me.rank], self._used[me.rank] = held + amount, False

    def begin_anew(self, me: Rank) -> None:
        """The next that is added to the gradient is its first."""
        self._used[me.rank] = True

    def updated(self, me: Rank, samples: float, items: int) -> None:
        """A rank has updated so many items of its weights."""
        self.begin_anew(me)
        counts = self._replicated if self._last[me.rank] == me.step else self._served
        counts[me.step] += samples * items

    def at_hand(self, me: Rank) -> float:
        """Samples in the gradient of a rank."""
        return 0.0 if self._used[me.rank] else self._at_hand[me.rank] / self._items

    def merge(self, others: Iterable[Samples]) -> None:
        """Add what other ranks have counted, each by itself."""
        for other in others:
            for mine, theirs in zip(self._counts, other._counts, strict=True):
                for step, amount in theirs.items():
                    mine[step] += amount

    def of(self, step: int) -> float:
        """Samples that entered an update in a step."""
        served = self._served[step]
        return (served + min(self._replicated[step], max(0.0, self._computed[step] - served))) / self._items
