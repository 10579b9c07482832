"""Gradients of a workload of whose sparse variables only the rows that a minibatch reads are at hand."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from real.training.gradients import Gradients
from sim.model.workload import Workload


class Looked(NamedTuple):
    """A minibatch's input, and the rows that it looks up.

    Args:
        rows: of each sparse variable, ascending, int32 (n,).
        x: the input with places in `rows` in place of numbers of rows, float32 (samples, *sample_shape).
    """

    rows: np.ndarray
    x: np.ndarray


def look_up(x: np.ndarray) -> Looked:
    """The rows that an input of words looks up; in models that can be trained, every sparse variable is indexed by the words."""
    rows, places = np.unique(x.astype(np.int32), return_inverse=True)
    return Looked(rows, places.reshape(x.shape).astype(np.float32))


class SparseGradient(NamedTuple):
    """As real.training.gradients.Gradient, apart for dense and sparse variables.

    Args:
        sum: of the dense variables one after another, float32 (numbers,).
        rows: sums for the rows that were read of each sparse variable, float32 (n, width): of its IndexedSlices, which have several
            slices for a word that occurs several times.
        computed_s: likewise.
    """

    sum: np.ndarray
    rows: list[np.ndarray]
    computed_s: float


class SparseGradients(Gradients):
    """Gradients with respect to dense variables and to rows, by the models that know nothing of that."""

    def __init__(self, workload: Workload, threads: int = 1, device: str = "cpu", gpu_index: int = 0):
        super().__init__(workload, threads, device, gpu_index)
        tf = self._tf
        self._sparse = [variable for variable in workload.variables if variable.rows]
        self._dense = [variable for variable in workload.variables if not variable.rows]
        _, x, y = self._fixed.input_signature
        flat = tf.TensorSpec((sum(variable.size for variable in self._dense),), tf.float32)
        tables = [tf.TensorSpec((None, *variable.shape[1:]), tf.float32) for variable in self._sparse]
        self._by_rows = tf.function(self._by_rows_graph, input_signature=(flat, tables, x, y), autograph=False)

    def by_rows(self, dense: np.ndarray, tables: list[np.ndarray], x: np.ndarray, y: np.ndarray) -> SparseGradient:
        """The gradient of a whole minibatch.

        Args:
            dense: the dense variables one after another, float32 (numbers,).
            tables: of each sparse variable the rows that the minibatch reads, float32 (n, width).
            x: what it reads, as places in these.
        """
        called_s = time.time()
        flat, rows, computed_s = self._by_rows(dense, tables, x, y)
        return SparseGradient(np.asarray(flat), [np.asarray(of) for of in rows], float(computed_s) - called_s)

    def warm_up(self, batch: int) -> None:
        """Warm up as any gradients do."""
        x, y = np.zeros((batch, *self._workload.sample_shape), np.float32), np.zeros(batch, np.int32)
        dense = np.zeros(sum(variable.size for variable in self._dense), np.float32)
        tables = [np.zeros((2, *variable.shape[1:]), np.float32) for variable in self._sparse]
        for _ in range(2):
            self.by_rows(dense, tables, x, y)

    def _by_rows_graph(self, flat, tables, x, y):
        tf, sizes = self._tf, [variable.size for variable in self._dense]
        parts = tf.split(flat, sizes) if sizes else []
        dense = [tf.reshape(part, variable.shape) for part, variable in zip(parts, self._dense, strict=True)]
        left, are_rows = (
            {False: dense, True: list(tables)},
            [bool(variable.rows) for variable in self._workload.variables],
        )
        gradients = self._gradients([left[sparse].pop(0) for sparse in are_rows], x, y)
        computed_s = self._clock_after(gradients)
        with tf.control_dependencies([computed_s]):
            others, rows = (
                [g for g, sparse in zip(gradients, are_rows, strict=True) if sparse is of] for of in (False, True)
            )
            flat = self._flat(others) if others else tf.zeros(0)
            return flat, [tf.identity(of) for of in rows], computed_s
