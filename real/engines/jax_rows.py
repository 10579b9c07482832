"""Gradients by JAX of a workload of whose sparse variables only the rows that a minibatch reads are at hand."""

from __future__ import annotations

import time

import numpy as np

from real.engines.jax_gradients import JaxGradients
from real.training.sparse_gradients import SparseGradient
from sim.model.workload import Workload


class JaxSparseGradients(JaxGradients):
    """Gradients with respect to dense variables and to rows; as real.training.sparse_gradients.SparseGradients.

    XLA compiles for shapes, and minibatches read different numbers of rows. Tables are filled up with zeros to as many rows as a
    minibatch can read.
    """

    def __init__(self, workload: Workload, threads: int = 1, device: str = "cpu", gpu_index: int = 0):
        super().__init__(workload, threads, device, gpu_index)
        self._sparse = [variable for variable in workload.variables if variable.rows]
        self._dense = [variable for variable in workload.variables if not variable.rows]
        self._by_rows = self._jax.jit(self._of_rows)

    def by_rows(self, dense: np.ndarray, tables: list[np.ndarray], x: np.ndarray, y: np.ndarray) -> SparseGradient:
        """The gradient of a whole minibatch, by rows.

        Args:
            dense: the dense variables one after another, float32 (numbers,).
            tables: of each sparse variable the rows that the minibatch reads, float32 (n, width).
            x: what it reads, as places in these.
        """
        called_s = time.perf_counter()
        whole = [_filled_up(t, min(v.shape[0], x.size)) for t, v in zip(tables, self._sparse, strict=True)]
        of_dense, of_rows, loss = self._finished(self._by_rows(*self._there(dense, *whole, x, y)))
        computed_s = time.perf_counter() - called_s
        flat = np.asarray(self._joined(of_dense)) if of_dense else np.zeros(0, np.float32)
        rows = [np.asarray(of)[: len(table)] for of, table in zip(of_rows, tables, strict=True)]
        return SparseGradient(flat, rows, len(x), float(loss), computed_s)

    def warm_up(self, batch: int, partitions: int | None = None) -> None:
        """Warm up as any gradients do."""
        x, y = np.zeros((batch, *self._workload.sample_shape), np.float32), np.zeros(batch, np.int32)
        dense = np.zeros(sum(variable.size for variable in self._dense), np.float32)
        tables = [np.zeros((2, *variable.shape[1:]), np.float32) for variable in self._sparse]
        for _ in range(2):
            self.by_rows(dense, tables, x, y)

    def _of_rows(self, flat, *others):
        *tables, x, y = others
        ends = np.cumsum([variable.size for variable in self._dense])[:-1]
        parts = self._jax.numpy.split(flat, ends) if self._dense else []
        left = {False: [p.reshape(v.shape) for p, v in zip(parts, self._dense, strict=True)], True: tables}
        variables = [left[bool(variable.rows)].pop(0) for variable in self._workload.variables]
        gradients, loss = self._gradients(variables, x, y)
        sorted_out: dict[bool, list] = {False: [], True: []}
        for gradient, variable in zip(gradients, self._workload.variables, strict=True):
            sorted_out[bool(variable.rows)].append(gradient)
        return sorted_out[False], sorted_out[True], loss


def _filled_up(table: np.ndarray, rows: int) -> np.ndarray:
    """A table with as many rows."""
    return np.pad(table, [(0, rows - len(table))] + [(0, 0)] * (table.ndim - 1))
