"""The parts of a collective algorithm: exchanges, one after another at each rank."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from sim.model.sizes import ITEM_BYTES

NOTHING = slice(0, 0)
DENSE, ROWS, CONTROL = "dense", "rows", "control"


class Exchange(NamedTuple):
    """One rank hands a piece of its vector to `to` while it takes a piece from `source`; either may be None.

    The taken piece is added to the vector, or replaces its part, once the sent piece has left (MPI_Sendrecv, then the sum).

    Args:
        sent, taken: pieces of the vector, in items.
        adds: whether the taken piece is added.
        ahead: the rank goes on before the sent piece has left (MPI_Isend); the piece leaves by the end of the call.
        kind: dense items, rows of sparse variables, or a control message, which is no part of the vector.
    """

    to: int | None = None
    sent: slice = NOTHING
    source: int | None = None
    taken: slice = NOTHING
    adds: bool = False
    ahead: bool = False
    kind: str = DENSE

    def among(self, first: int) -> Exchange:
        """The same between ranks that are numbered from `first`."""
        to, source = (None if rank is None else rank + first for rank in (self.to, self.source))
        return self._replace(to=to, source=source)

    @property
    def sent_bytes(self) -> int:
        """Bytes handed over."""
        return ITEM_BYTES * (self.sent.stop - self.sent.start)

    @property
    def taken_bytes(self) -> int:
        """Bytes taken."""
        return ITEM_BYTES * (self.taken.stop - self.taken.start)


Exchanges = Iterator[Exchange]
# An algorithm yields the exchanges of `rank`, one of the ranks of `group`, on `whole`, the items of the vector.
Algorithm = Callable[[int, Sequence[int], slice], Exchanges]


def hand(to: int, piece: slice) -> Exchange:
    """Hand a piece over and take nothing."""
    return Exchange(to=to, sent=piece)


def post(to: int, piece: slice) -> Exchange:
    """Hand a piece over and go on at once."""
    return Exchange(to=to, sent=piece, ahead=True)


def take(source: int, piece: slice, adds: bool = False) -> Exchange:
    """Take a piece and hand nothing over."""
    return Exchange(source=source, taken=piece, adds=adds)


def swap(peer: int, sent: slice, taken: slice, adds: bool = False) -> Exchange:
    """Hand a piece to a peer and take one from it."""
    return Exchange(peer, sent, peer, taken, adds)


def cut(whole: slice, parts: int) -> list[slice]:
    """`whole` in near-equal parts; some are empty where there are fewer items than parts."""
    size = whole.stop - whole.start
    bounds = [whole.start + size * part // parts for part in range(parts + 1)]
    return [slice(start, stop) for start, stop in pairwise(bounds)]
