"""Where pieces of a vector begin and end, for vectors of many sizes at once: an algorithm's exchanges are laid out once."""

from __future__ import annotations

import operator

import numpy as np


class Bounds:
    """All that an algorithm works out from the bounds of the whole vector, in order; what is worked out twice is there once."""

    def __init__(self):
        self._steps: list[tuple] = [(None, "start", None), (None, "stop", None)]
        self._known: dict[tuple, int] = {}

    @property
    def whole(self) -> slice:
        """The whole vector; algorithms cut it as they would one of numbers."""
        return slice(Bound(self, 0), Bound(self, 1))

    def of(self, operation, left, right) -> Bound:
        """What an operation makes of two bounds or integers."""
        key = (operation, *(side.number if isinstance(side, Bound) else (side,) for side in (left, right)))
        if key not in self._known:
            self._known[key] = len(self._steps)
            self._steps.append(key)
        return Bound(self, self._known[key])

    def values(self, starts: np.ndarray, stops: np.ndarray) -> np.ndarray:
        """Of every bound, in the order in which they were made, for wholes from `starts` to `stops`; shape (bounds, wholes)."""
        found = np.empty((len(self._steps), len(starts)), int)
        found[0], found[1] = starts, stops
        for number, (operation, *sides) in enumerate(self._steps[2:], 2):
            left, right = (side[0] if isinstance(side, tuple) else found[side] for side in sides)
            found[number] = operation(left, right)
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
