"""Gradients of sparse variables in NumPy, which have rows alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Slices:
    """Some rows of a table (TensorFlow's IndexedSlices), each once.

    Args:
        rows: their numbers, ascending, int32 (n,).
        values: float32 (n, width).
    """

    rows: np.ndarray
    values: np.ndarray

    def __add__(self, other: Slices) -> Slices:
        """The rows that either has, and their sums."""
        rows = np.union1d(self.rows, other.rows)
        values = np.zeros((len(rows), self.values.shape[1]), np.float32)
        values[np.searchsorted(rows, self.rows)] = self.values
        values[np.searchsorted(rows, other.rows)] += other.values
        return Slices(rows, values)
