"""Rows of sparse variables in NumPy: where each lies, and gradients that have rows alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sim.job.scenario import Scenario
from sim.model.sizes import ITEM_BYTES


@dataclass(frozen=True)
class Part:
    """A part of a sparse variable: those rows whose number, divided by `of`, leaves `index`.

    Row r is row r // of of its part, as in tf.nn.embedding_lookup with partition_strategy="mod": frequent words, which have low
    numbers, are spread over all parts.

    Args:
        variable: its number among the sparse ones.
        server: the rank that holds the part.
        width: numbers in a row.
    """

    variable: int
    index: int
    of: int
    server: int
    width: int

    def cut(self, table: np.ndarray) -> np.ndarray:
        """Its rows of the whole variable, shape (rows of the part, width); a view."""
        return table[self.index :: self.of]

    def where(self, rows: np.ndarray) -> np.ndarray:
        """The places of those `rows`, numbers in the whole variable, that are in this part."""
        return np.flatnonzero(rows % self.of == self.index)


def parts_of(scenario: Scenario) -> list[Part]:
    """The parts of all variables on servers, in the order in which they were placed."""
    placed, found = iter(scenario.traffic.placed), []
    for number, variable in enumerate(scenario.served):
        of, width = min(scenario.variable_partitions, variable.shape[0]), variable.size // variable.shape[0]
        found += [Part(number, index, of, next(placed)[1], width) for index in range(of)]
    return found


@dataclass(frozen=True)
class Slices:
    """Some rows of a table (TensorFlow's IndexedSlices), each once.

    Args:
        rows: their numbers, ascending, int32 (n,).
        values: float32 (n, width).
    """

    rows: np.ndarray
    values: np.ndarray

    @classmethod
    def of(cls, body: np.ndarray, width: int) -> Slices:
        """The slices in the bytes of a message: numbers of rows, then values; views."""
        rows = body.size // ITEM_BYTES // (1 + width)
        values = body[ITEM_BYTES * rows :].view(np.float32)
        return cls(body[: ITEM_BYTES * rows].view(np.int32), values.reshape(rows, width))

    def __add__(self, other: Slices) -> Slices:
        """The rows that either has, and their sums."""
        rows = np.union1d(self.rows, other.rows)
        values = np.zeros((len(rows), self.values.shape[1]), np.float32)
        values[np.searchsorted(rows, self.rows)] = self.values
        values[np.searchsorted(rows, other.rows)] += other.values
        return Slices(rows, values)
