"""Parameters as ranks hold them, gradients that are known by their minibatches alone, and sums of them.

Nothing here is ever written to: a message carries a reference, and what nobody refers to is freed. So live versions are kept, and no more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Held:
    """Parameters that one rank updates: all, a server's, or a worker's own.

    Args:
        values: float32 (numbers,); nobody writes to them.
        state: the optimiser's behind them; empty at the start, and where the optimiser keeps it.
    """

    __slots__ = ("next", "state", "values")

    def __init__(self, values: np.ndarray, state: Sequence[np.ndarray] = ()):
        self.values, self.state = values, state
        self.next: dict[
            tuple[int, ...], Held
        ] = {}  # made of them by sums that several ranks share, by the numbers of these calls


class Whole:
    """All parameters of the model, in pieces that several ranks may have made.

    Args:
        pieces: the parameters that each of these ranks updates.
        places: of each piece, where its numbers are in the flat vector.
    """

    __slots__ = ("__weakref__", "_vector", "pieces", "places")

    def __init__(self, pieces: Sequence[Held], places: Sequence[np.ndarray | slice]):
        self.pieces, self.places = pieces, places
        self._vector: np.ndarray | None = None

    @property
    def vector(self) -> np.ndarray:
        """The flat vector, float32 (parameters,)."""
        if self._vector is None:
            if len(self.pieces) == 1:
                self._vector = self.pieces[0].values
            else:
                self._vector = np.empty(sum(piece.values.size for piece in self.pieces), np.float32)
                for piece, place in zip(self.pieces, self.places, strict=True):
                    self._vector[place] = piece.values
        return self._vector


class Gradient:
    """A gradient, or a part of one, that is computed when a sum of it is needed.

    Args:
        whole: the parameters that it is of.
        samples: their places in the training set, shape (samples,).
    """

    __slots__ = ("samples", "whole")

    def __init__(self, whole: Whole, samples: np.ndarray):
        self.whole, self.samples = whole, samples


class Shared:
    """A sum that several ranks have: one call of a collective.

    Args:
        number: of the call, since the start.
        piece: of the vector that is summed.
    """

    __slots__ = ("entered", "gradients", "number", "piece", "taken")

    def __init__(self, number: int, piece: slice):
        self.number, self.piece, self.entered, self.taken = number, piece, 0, 0
        self.gradients: list[Gradient] = []


class Carried(NamedTuple):
    """The contents of a message.

    Args:
        held: a server's or a master's parameters.
        gradients: of a worker, those that its gradient sums.
        piece: numbers of the vector that ranks exchange.
    """

    held: Held | None = None
    gradients: tuple[Gradient, ...] = ()
    piece: np.ndarray | None = None
