"""Gradients by JAX of a workload of whose sparse variables only the rows that a minibatch reads are at hand."""

from __future__ import annotations

import time

import numpy as np

from real.engines.jax_gradients import JaxGradients
from real.training.by_rows import ByRows
from real.training.sparse_gradients import SparseGradient
from sim.model.workload import Workload


class JaxSparseGradients(ByRows, JaxGradients):
    """Gradients with respect to dense variables and to rows; as real.training.sparse_gradients.SparseGradients.

    XLA compiles for shapes, and minibatches read different numbers of rows. Tables are filled up with zeros to as many rows as a
    minibatch can read.
    """

    def __init__(self, workload: Workload, threads: int = 1, device: str = "cpu", gpu_index: int = 0):
        super().__init__(workload, threads, device, gpu_index)
        self._separate(workload)
        self._by_rows = self._jax.jit(self._of_rows)

    def by_rows(self, dense: np.ndarray, tables: list[np.ndarray], x: np.ndarray, y: np.ndarray) -> SparseGradient:
        """The gradient of a whole minibatch: see real.training.by_rows.ByRows."""
        called_s = time.perf_counter()
        whole = [_filled_up(t, min(v.shape[0], x.size)) for t, v in zip(tables, self._sparse, strict=True)]
        of_dense, of_rows, loss = self._finished(self._by_rows(*self._there(dense, *whole, x, y)))
        computed_s = time.perf_counter() - called_s
        flat = np.asarray(self._joined(of_dense)) if of_dense else np.zeros(0, np.float32)
        rows = [np.asarray(of)[: len(table)] for of, table in zip(of_rows, tables, strict=True)]
        return SparseGradient(flat, rows, len(x), float(loss), computed_s)

    def _of_rows(self, flat, *others):
        *tables, x, y = others
        ends = np.cumsum([variable.size for variable in self._dense])[:-1]
        parts = self._jax.numpy.split(flat, ends) if self._dense else []
        dense = [part.reshape(variable.shape) for part, variable in zip(parts, self._dense, strict=True)]
        gradients, loss = self._gradients(self._in_order(dense, tables), x, y)
        return *self._of_dense_and_sparse(gradients), loss


def _filled_up(table: np.ndarray, rows: int) -> np.ndarray:
    """A table with as many rows."""
    return np.pad(table, [(0, rows - len(table))] + [(0, 0)] * (table.ndim - 1))
