"""What one rank does in an allreduce, for counts, bounds and fits: the commands of its algorithm, which is followed without a world."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from sim.base.errors import WrongSetting
from sim.language import commands
from sim.language.collectives import ALGORITHMS, NAMES
from sim.language.library import UNKNOWN, choices
from sim.language.pieces import Handle, Message, Piece
from sim.language.rank import Rank
from sim.model.sizes import ITEM_BYTES


class Move(NamedTuple):
    """A message that is posted (to) or taken (from); without a peer, a wait until all that was posted has left.

    Args:
        adds: what is taken is added to what the rank has.
    """

    to: int | None = None
    frm: int | None = None
    piece: Piece = Piece("gradient", 0, 0)
    adds: bool = False

    @property
    def bytes(self) -> int:
        """Bytes of the message."""
        return ITEM_BYTES * self.piece.items


class _Member(Rank):
    """As much of a rank as an algorithm asks for."""

    def __init__(self, rank: int, hosts: Sequence[int]):
        self.rank, self.n, self._hosts = rank, len(hosts), hosts

    def host(self, rank: int) -> int:
        """The host of a rank."""
        return self._hosts[rank]


def moves(algorithm: str, rank: int, hosts: Sequence[int], items: int) -> Iterator[Move]:
    """The moves of a rank in an allreduce of all ranks, in order.

    Args:
        algorithm: one of NAMES; auto is what Open MPI takes (Scenario.algorithm says it of other libraries).
        hosts: the host of each rank, shape (ranks,).
        items: of the vector.

    >>> [(move.to, move.frm, move.bytes) for move in moves("ring", 0, [0, 1], 4)]
    [(1, None, 8), (None, 1, 8), (None, None, 0), (1, None, 8), (None, 1, 8), (None, None, 0)]
    """
    text = ALGORITHMS[named(algorithm, hosts, items)](
        _Member(rank, hosts), Piece("gradient", 0, items), range(len(hosts))
    )
    given: Any = None
    frm: Any = None
    while True:
        try:
            command: Any = text.send(given)
        except StopIteration:
            return
        given, kind = None, type(command)
        if kind is commands.Post:
            given = Handle()
            yield Move(to=command.to, piece=command.piece)
        elif kind is commands.Take and command.into is None:  # added once what was posted has left
            given, frm = Message(command.frm, 0, 0), command.frm
        elif kind is commands.Take:
            yield Move(frm=command.frm, piece=command.into, adds=command.adds)
        elif kind is commands.Mix:
            yield from (Move(frm=frm, piece=command.into, adds=True), Move())
            frm = None
        elif frm is None:
            yield Move()


def named(algorithm: str, hosts: Sequence[int], items: int) -> str:
    """The algorithm that is run: what Open MPI takes if it may choose; the ring for hierarchies of one rank a host."""
    if algorithm == UNKNOWN:
        raise WrongSetting("--set algorithm", UNKNOWN, f"one of {', '.join(NAMES)}, where one run is followed")
    if algorithm == "hierarchical" and len(set(hosts)) == len(hosts):
        return "ring"
    if algorithm == "auto":
        return next(name for below, name in choices(len(hosts)) if ITEM_BYTES * items < below)
    return algorithm
