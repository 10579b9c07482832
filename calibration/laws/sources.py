"""Seconds by rank from a CSV or parquet table, or from a trace."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sim.base import tables
from sim.recording import traces
from sim.recording.seconds import by_rank_and_step

LEAST_S = 1e-12  # a value of a law
ALL = 0  # the rank of values of which nothing says whose they are


class Measured(NamedTuple):
    """Measured values.

    Args:
        values: above 0 of each rank, in the order of its steps; seconds.
        by_rank: whether it is known whose they are.
        zeros: how many more values are 0, as of ranks that did not sleep in a step.
    """

    values: dict[int, np.ndarray]
    by_rank: bool
    zeros: int

    @property
    def all(self) -> np.ndarray:
        """The values above 0 of all ranks, shape (count,)."""
        return np.concatenate([np.empty(0), *self.values.values()])

    @property
    def with_zeros(self) -> np.ndarray:
        """All values of all ranks, shape (count,)."""
        return np.concatenate([self.all, np.zeros(self.zeros)])


def read(path: str, column: str | None = None, by: str | None = None) -> Measured:
    """The values in a file.

    Args:
        column: of a table (default: seconds), or the activity in a trace (default: compute).
        by: the column of a table that says whose each value is.

    Raises:
        WrongSetting: no such file or column, or values that are no seconds.
    """
    if traces.is_trace(path):
        return _of_trace(path, column or "compute")
    table = tables.read(path, "FILE")
    values = tables.numbers(table, column or "seconds", path)
    whose = tables.numbers(table, by, path, most=1e12) if by else np.full(len(values), ALL)
    steps = tables.numbers(table, "step", path, most=1e12) if "step" in table.columns else np.arange(len(values))
    order = np.argsort(steps, kind="stable")
    return _measured(values[order], whose[order].astype(int), by is not None)


def _of_trace(path: str, activity: str) -> Measured:
    trace = traces.read(path)
    seconds = by_rank_and_step(trace, activity, trace.header.warmup).stack().dropna()
    return _measured(seconds.to_numpy(), seconds.index.get_level_values(0).to_numpy(), True)


def _measured(values: np.ndarray, whose: np.ndarray, by_rank: bool) -> Measured:
    above = values >= LEAST_S
    found = {int(rank): values[above & (whose == rank)] for rank in np.unique(whose)}
    return Measured({rank: series for rank, series in found.items() if len(series)}, by_rank, int((~above).sum()))
