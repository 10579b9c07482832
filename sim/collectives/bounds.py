"""The bounds of a vector's pieces, for vectors of many sizes at once: an algorithm's exchanges are laid out once."""

from __future__ import annotations

import operator
from collections import defaultdict
from functools import cached_property

import numpy as np

START, STOP = 0, 1  # the numbers of the bounds of the whole


class Bounds:
    """All bounds that an algorithm computes from those of the whole vector; equal ones are there once."""

    def __init__(self):
        self._known: dict[tuple, int] = {("start",): START, ("stop",): STOP}
        self._depths = [0, 0]  # how many steps lead to each

    @property
    def whole(self) -> slice:
        """The whole vector; algorithms cut it as they would one of numbers."""
        return slice(Bound(self, START), Bound(self, STOP))

    def of(self, operation, left, right) -> Bound:
        """The bound that an operation makes of two bounds or integers."""
        sides = [side.number if isinstance(side, Bound) else self._number((side,), 0) for side in (left, right)]
        depth = 1 + max(self._depths[side] for side in sides)
        return Bound(self, self._number((operation, *sides), depth))

    def fixed(self, value: int) -> Bound:
        """A bound that does not depend on the whole."""
        return Bound(self, self._number((value,), 0))

    @property
    def formulas(self) -> list[tuple]:
        """Of each bound, by its number: an operation and the numbers of its sides, an integer, or the name of an end of the whole."""
        return list(self._known)

    def _number(self, key: tuple, depth: int) -> int:
        if key not in self._known:
            self._known[key] = len(self._depths)
            self._depths.append(depth)
        return self._known[key]

    @cached_property
    def _steps(self) -> list[tuple]:
        """Operations that can be done at once, in order: operation, numbers of the results, of the left sides, of the right."""
        alike = defaultdict(list)
        for key, number in self._known.items():
            if len(key) == 3:
                alike[self._depths[number], key[0].__name__].append((key[0], number, *key[1:]))
        return [(done[0][0], *np.array([one[1:] for one in done]).T) for _, done in sorted(alike.items())]

    @cached_property
    def _integers(self) -> list[tuple[int, int]]:
        """Integers that bounds follow from, and their numbers."""
        return [
            (key[0], number) for key, number in self._known.items() if len(key) == 1 and number not in (START, STOP)
        ]

    def values(self, starts: np.ndarray, stops: np.ndarray) -> np.ndarray:
        """The values of every bound, in the order in which they were made, for wholes from `starts` to `stops`; shape (bounds, wholes)."""
        found = np.empty((len(self._depths), len(starts)), int)
        found[START], found[STOP] = starts, stops
        for integer, number in self._integers:
            found[number] = integer
        for operation, numbers, left, right in self._steps:
            found[numbers] = operation(found[left], found[right])
        return found


class Bound:
    """An integer that follows from the bounds of the whole.

    Args:
        bounds: all of them.
        number: of this one among them.
    """

    __slots__ = ("_bounds", "number")

    def __init__(self, bounds: Bounds, number: int):
        self._bounds, self.number = bounds, number

    def __add__(self, other):
        return self._bounds.of(operator.add, self, other)

    def __sub__(self, other):
        return self._bounds.of(operator.sub, self, other)

    def __mul__(self, other):
        return self._bounds.of(operator.mul, self, other)

    def __floordiv__(self, other):
        return self._bounds.of(operator.floordiv, self, other)

    __radd__, __rmul__ = __add__, __mul__
