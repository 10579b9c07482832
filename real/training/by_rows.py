"""Gradients by rows, whatever engine computes them: a workload's dense and sparse variables, apart and in its order."""

from __future__ import annotations

from typing import Any

import numpy as np

from sim.model.workload import Variable, Workload


class ByRows:
    """What gradients by rows of any engine share. A class that has it calls `_separate` first."""

    _workload: Workload
    _sparse: list[Variable]
    _dense: list[Variable]

    def _separate(self, workload: Workload) -> None:
        """Know which variables are sparse."""
        self._sparse = [variable for variable in workload.variables if variable.rows]
        self._dense = [variable for variable in workload.variables if not variable.rows]

    def by_rows(self, dense: np.ndarray, tables: list[np.ndarray], x: np.ndarray, y: np.ndarray) -> Any:
        """The gradient of a whole minibatch, by rows: a real.training.sparse_gradients.SparseGradient.

        Args:
            dense: the dense variables one after another, float32 (numbers,).
            tables: of each sparse variable the rows that the minibatch reads, float32 (n, width).
            x: what it reads, as places in these.
        """
        raise NotImplementedError

    def warm_up(self, batch: int, partitions: int | None = None) -> None:
        """Warm up as any gradients do."""
        x, y = np.zeros((batch, *self._workload.sample_shape), np.float32), np.zeros(batch, np.int32)
        dense = np.zeros(sum(variable.size for variable in self._dense), np.float32)
        tables = [np.zeros((2, *variable.shape[1:]), np.float32) for variable in self._sparse]
        for _ in range(2):
            self.by_rows(dense, tables, x, y)

    def _in_order(self, dense: list, tables: list) -> list:
        """All variables in the workload's order."""
        left = {False: list(dense), True: list(tables)}
        return [left[bool(variable.rows)].pop(0) for variable in self._workload.variables]

    def _of_dense_and_sparse(self, of_variables: list) -> tuple[list, list]:
        """What belongs to dense variables, and what to sparse ones."""
        found: dict[bool, list] = {False: [], True: []}
        for one, variable in zip(of_variables, self._workload.variables, strict=True):
            found[bool(variable.rows)].append(one)
        return found[False], found[True]
