"""Negotiation along a binomial tree (sim.collectives.tree), each rank on a host of its own."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sim.collectives.schedule import schedule
from sim.collectives.tree import tree
from sim.vector.exchanges import Ports, play
from sim.vector.negotiation import REQUEST_BYTES, Asked, passing_s
from sim.verbs.fusion import REQUEST


class _Level(NamedTuple):
    """Parents that take a child each at the same time: so many, the first of them every `apart` ranks; their children lie between."""

    apart: int
    pairs: int


class _Kind(NamedTuple):
    """Ranks of equally many children.

    Args:
        ranks: shape (ranks,).
        children: in the order in which they are taken, shape (ranks, children).
    """

    ranks: np.ndarray
    children: np.ndarray


class TreeNegotiation:
    """Of ranks that tell the number of gradients that are ready up a tree, and the least of them down again.

    Args:
        ranks: how many.
        link: between hosts.
    """

    def __init__(self, ranks: int, link):
        self._ranks, self._link, self._occupancy_s = ranks, link, link.occupancy_s(REQUEST_BYTES)
        self._levels, left = [], ranks
        while left > 1:
            self._levels.append(_Level(ranks, left // 2))
            left -= left // 2
        numbers = np.arange(ranks)
        self._parent = numbers & (numbers - 1)
        children = [[child for child in (rank + (1 << k) for k in range(ranks.bit_length())) if child < ranks and (child & (child - 1)) == rank]
                    for rank in range(ranks)]
        kinds = sorted({len(own) for own in children} - {0})
        self._kinds = [_Kind(*self._of_kind(children, kind)) for kind in kinds]
