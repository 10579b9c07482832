"""The sum that a library makes in one call, in place of messages of ours: MPI's own allreduce, for texts that name no algorithm."""

from __future__ import annotations

from typing import NamedTuple

from sim.language.pieces import Piece
from sim.language.rank import Rank


class Summed(NamedTuple):
    """What MpiWorld has besides the language's commands: all ranks sum a piece by MPI_Allreduce.

    They meet in a barrier before it, asleep, because a rank that waits within MPI takes a core that others need.
    """

    piece: Piece


def by_mpi(me: Rank, piece: Piece):
    """What sim.language.library.Library sums by."""
    yield Summed(piece)
