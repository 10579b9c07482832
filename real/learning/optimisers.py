"""Optimisers of training in simulated time, each of which many ranks use: it goes back to the state that a rank's weights have."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from real.learning.vectors import Held, State


class Optimiser:
    """A library's, of so many numbers, that many ranks use.

    Args:
        made: by the library.
    """

    def __init__(self, made, items: int):
        made.warm_up(items)
        self._made, self._start = made, State(self._copied(made.state))
        self._newest = self._start

    @staticmethod
    def _copied(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        return [part.copy() for part in arrays]

    def updated(
        self, values: np.ndarray, state: State | None, gradient: np.ndarray, samples: float, touched: np.ndarray | None
    ) -> Held:
        """New weights, of those of which `state` is the optimiser's and the sum of gradients over so many samples."""
        state = state or self._start
        if state is not self._newest:
            self._made.restore(self._copied(state.arrays))
        values = values.copy()
        self._made.apply(values, gradient, samples)
        self._newest = made = State(self._copied(self._made.state))
        return Held(values, made)


class OfRows(Optimiser):
    """One of rows that have a gradient, which leaves the others as they are; see real.training.row_optimiser."""

    def __init__(self, made, items: int):
        self._made, self._start = made, State([np.zeros(items, np.float32)])

    def updated(self, values, state, gradient, samples, touched) -> Held:
        """New weights; `touched` says which numbers are of rows that have a gradient, shape (items,)."""
        if self._made.name == "sgd":  # whose weight decay comes to all rows in the end
            touched = np.full(values.size, True)
        values, moments = values.copy(), (state or self._start).arrays[0].copy()
        some, of_some = values[touched], moments[touched]
        self._made.apply(some, of_some, gradient[touched] / np.float32(samples))
        values[touched], moments[touched] = some, of_some
        self._made.end_update()
        return Held(values, State([moments]))
