"""The newest weights of a job that trains, and the moments at which they are new."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from real.learning.vectors import Cell, Vector
from sim.language.pieces import Piece
from sim.language.rank import Rank

if TYPE_CHECKING:
    from real.learning.values import ModelValues, Whole


class Versions:
    """What has been learned so far: of each item the weights of the first of the ranks that update it.

    There is a version when a step is over in which something was updated, of the weights that ranks had at the end of their rounds, since
    the last of them has changed its own. Where each gradient is an update there is one with each of rank 0's.

    Args:
        made: called with each: how many there are so far, when its weights were made, seconds, and samples in all updates.
        each: whether each gradient is an update.
    """

    def __init__(self, made: Callable[[Versions, int, float, int], object], each: bool = False):
        self._made, self._each = made, each
        self.samples: Callable[[int], float] = float  # that entered updates in a step (sim.language.samples.Samples.of)
        self._owners: dict[tuple[int, int], int] = {}  # the first rank that updates some items
        self._changed_s: dict[int, float] = {}  # when each rank's weights have changed
        self._ended = Counter[int]()  # ranks, by step
        self._ends_s = defaultdict[int, float](float)  # of steps that are not over
        self._rounds = defaultdict[int, dict[int, Sequence[Cell]]](dict)  # weights after these, by rank
        self._seen: dict[int, Sequence[Cell]] = {}  # those of the step that is over
        self._updated = set[int]()  # steps with an update
        self._count, self._applied = 0, 0.0

    def begin(self, ranks: list[Rank], values: ModelValues) -> None:
        """The ranks are made."""
        self._ranks, self._values = ranks, values

    @cached_property
    def _leading(self) -> int:
        """Ranks that go through rounds; known once the first has ended one."""
        return sum(one.leads for one in self._ranks)

    @property
    def newest(self) -> Whole:
        """The newest weights."""
        items = self._ranks[0].weights.items
        found = Vector(*self._cells(min(self._owners.values(), default=0)))
        for (start, stop), rank in sorted(self._owners.items(), key=lambda one: -one[1]):
            found.write(start, Vector(*self._cells(rank)).read(start, stop))
        return self._values.whole(found.read(0, items))

    def _cells(self, rank: int) -> Sequence[Cell]:
        me = self._ranks[rank]
        return self._seen.get(rank) or self._values.cells(me, me.weights)

    # ---- told by values

    def changed(self, me: Rank, piece: Piece) -> None:
        """A rank has changed a vector."""
        if piece.vector == "weights":
            self._changed_s[me.rank] = me.now()

    def updated(self, me: Rank, piece: Piece, samples: float) -> None:
        """A rank has updated its weights."""
        key = piece.start, piece.stop
        self._owners[key] = min(me.rank, self._owners.get(key, me.rank))
        self._updated.add(me.step)
        self.changed(me, piece)
        if self._each and me.rank == me.master:
            self._version(me.now(), samples)

    def ended(self, me: Rank) -> None:
        """A rank that goes through rounds has ended one."""
        step = me.step
        if self._each:
            return
        if me.rank in self._owners.values():
            self._rounds[step][me.rank] = self._values.cells(me, me.weights)
        self._ended[step] += 1
        self._ends_s[step] = max(self._ends_s[step], self._changed_s.get(me.rank, 0.0))
        if self._ended[step] == self._leading:
            self._seen, end_s, samples = self._rounds.pop(step, {}), self._ends_s.pop(step), self.samples(step)
            if step in self._updated:
                self._version(end_s, samples)
            else:
                self._applied += samples
            self._seen = {}

    def _version(self, end_s: float, samples: float) -> None:
        self._count, self._applied = self._count + 1, self._applied + samples
        self._made(self, self._count, end_s, round(self._applied))
