"""Vectors of ranks that train: items of arrays, of gradients that nobody has computed yet, and of sums of these.

Nothing here is ever written to but a rank's list of cells: a message carries references, and what nobody refers to is freed.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterator, Sequence
from itertools import count
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np

_serials = count()


class Node:
    """What cells refer to; its number is never another's."""

    __slots__ = ("__weakref__", "serial")

    def __init__(self):
        self.serial = next(_serials)

    @property
    def key(self) -> Hashable:
        """Equal of nodes of equal values."""
        return self.serial


class Held(Node):
    """An array.

    Args:
        values: float32 (items,).
        state: the optimiser's behind them, if it has made them.

    Attributes:
        next: what updates have made of it, by all that they were made from: ranks that do the same have the same.
    """

    __slots__ = ("next", "state", "values")

    def __init__(self, values: np.ndarray, state: State | None = None):
        super().__init__()
        self.values, self.state = values, state
        self.next: WeakValueDictionary[tuple, Held] = WeakValueDictionary()


class State(Node):
    """An optimiser's.

    Args:
        arrays: as the optimiser gives them.
    """

    __slots__ = ("arrays",)

    def __init__(self, arrays: list[np.ndarray]):
        super().__init__()
        self.arrays = arrays


class Gradient(Node):
    """A pass through the model's layers, and the gradient of its samples once all layers are passed.

    Args:
        samples: their places in the training set, shape (samples,).
        cells: the weights of the layers so far.

    Attributes:
        sums: arrays, by the numbers of the gradients that they sum, of which this one is the first.
    """

    __slots__ = ("cells", "samples", "sums", "whole")

    def __init__(self, samples: np.ndarray, cells: tuple[Cell, ...] = ()):
        super().__init__()
        self.samples, self.cells = samples, cells
        self.whole: Any = None  # all weights of the cells, once asked for
        self.sums: dict[frozenset[int], np.ndarray] = {}


class Sum(Node):
    """A sum of gradients.

    Args:
        terms: factors, and gradients or sums of them.
    """

    __slots__ = ("_factors", "_key", "_terms")

    def __init__(self, terms: Sequence[tuple[float, Gradient | Sum]]):
        super().__init__()
        self._terms, self._factors = terms, dict[Gradient, float]()
        self._key: frozenset[tuple[int, float]] | None = None

    @property
    def factors(self) -> dict[Gradient, float]:
        """Of each gradient, in the order in which they were added."""
        found, left = self._factors, [(1.0, one, times) for times, one in reversed(self._terms)]
        while left:
            factor, one, times = left.pop()
            if isinstance(one, Sum) and one._terms:
                left += [(factor * times, term, by) for by, term in reversed(one._terms)]
            else:
                for gradient, by in factors(one).items():
                    found[gradient] = found.get(gradient, 0.0) + factor * times * by
        self._terms = ()
        return found

    @property
    def key(self) -> Hashable:
        """Equal of sums of the same gradients, in whatever order."""
        self._key = self._key or frozenset((one.serial, factor) for one, factor in self.factors.items())
        return self._key


def factors(node: Node | None) -> dict[Gradient, float]:
    """Of each gradient in a node."""
    if isinstance(node, Sum):
        return node.factors
    return {node: 1.0} if isinstance(node, Gradient) else {}


class Lost(Node):
    """Items that were dropped."""


LOST = Lost()


class Cell(NamedTuple):
    """Items start to stop - 1 of a vector: those of a node from `first` on; zeros without one."""

    start: int
    stop: int
    node: Node | None
    first: int = 0

    @property
    def key(self) -> Hashable:
        """Equal of cells of equal values, that begin at the same place."""
        return self.stop, self.node and self.node.key, self.first

    def part(self, start: int, stop: int, move: int = 0) -> Cell:
        """The items between two places, if there are some, moved."""
        if start <= self.start and self.stop <= stop and not move:
            return self
        low, high = max(self.start, start), min(self.stop, stop)
        return Cell(low + move, high + move, self.node, self.first + low - self.start)


def joined(cells: Sequence[Cell]) -> list[Cell]:
    """The same; neighbours of a node are one."""
    found: list[Cell] = []
    for cell in cells if len(cells) > 1 else ():
        last = found[-1] if found else cell._replace(node=LOST, start=-1)
        if last.node is cell.node and (not cell.node or last.first - last.start == cell.first - cell.start):
            found[-1] = last._replace(stop=cell.stop)
        else:
            found.append(cell)
    return found or list(cells)


def aligned(some: Sequence[Cell], others: Sequence[Cell]) -> Iterator[tuple[Cell, Cell]]:
    """Both lists cut where either is cut, cell by cell; they have as many items."""
    k = m = start = 0
    while k < len(some) and m < len(others):
        stop = min(some[k].stop, others[m].stop)
        yield some[k].part(start, stop), others[m].part(start, stop)
        k, m, start = k + (some[k].stop == stop), m + (others[m].stop == stop), stop


class Vector:
    """A vector.

    Args:
        cells: side by side, from 0 on.
    """

    def __init__(self, *cells: Cell):
        self._cells = list(cells)
        self._starts = [cell.start for cell in cells]

    def read(self, start: int, stop: int, to: int = 0) -> list[Cell]:
        """The cells of some items, which begin at `to`."""
        some = self._cells[bisect_right(self._starts, start) - 1 : bisect_left(self._starts, stop)]
        return joined([cell.part(start, stop, to - start) for cell in some]) if start < stop else []

    def write(self, start: int, cells: Sequence[Cell]) -> None:
        """Put cells that begin at 0 to `start`."""
        if not cells:
            return
        stop = start + cells[-1].stop
        if start == 0 and stop == self._cells[-1].stop:
            self._cells, self._starts = list(cells), [cell.start for cell in cells]
            return
        k, m = bisect_right(self._starts, start) - 1, bisect_left(self._starts, stop)
        ends = self._cells[k].part(0, start), self._cells[m - 1].part(stop, self._cells[m - 1].stop)
        new = [ends[0], *(cell.part(0, cell.stop, start) for cell in cells), ends[1]]
        self._cells[k:m] = new = [cell for cell in new if cell.start < cell.stop]
        self._starts[k:m] = [cell.start for cell in new]
