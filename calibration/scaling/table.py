"""A table of step seconds by where the ranks sit: hosts, GPUs of each, batch, step_s; and minibatches, where gradients are accumulated."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from calibration.importers.rounds import shortened
from sim.base import tables
from sim.base.errors import WrongSetting
from sim.base.ranges import SHORTEST_S

NEEDED = ("hosts", "gpus_per_host", "batch", "step_s")
WHOLE = ("hosts", "gpus_per_host", "batch", "minibatches")
ACCUMULATED = ("minibatches", "accumulation")  # names of the column of minibatches, which may be missing
UNITS_S = {"step_ms": 1e-3, "step_us": 1e-6}  # other names of step_s
SOURCE = "--from scaling"
MOST, MOST_ROWS = 1e6, 10**6  # of hosts, GPUs, samples and seconds; rows


class Table(NamedTuple):
    """Mean seconds of a step, a row for each arrangement and batch.

    Args:
        hosts: shape (rows,).
        gpus: on all hosts together, shape (rows,).
        most: on the host that has most, shape (rows,).
        batch: samples of a GPU and step, shape (rows,).
        step_s: seconds, shape (rows,).
        minibatches: of a GPU and step, whose gradients are accumulated and summed once; shape (rows,).
    """

    hosts: np.ndarray
    gpus: np.ndarray
    most: np.ndarray
    batch: np.ndarray
    step_s: np.ndarray
    minibatches: np.ndarray

    def where(self, chosen: np.ndarray) -> Table:
        """Some of the rows, by a mask of shape (rows,)."""
        return Table(*(column[chosen] for column in self))

    @property
    def minibatch(self) -> np.ndarray:
        """Samples of a GPU and minibatch, shape (rows,)."""
        return self.batch / self.minibatches

    @property
    def size(self) -> int:
        """The number of rows."""
        return len(self.step_s)


def read(path: str | Path) -> Table:
    """The table in a CSV or parquet file.

    Raises:
        WrongSetting: no such table, a column that is missing, or numbers that cannot be.
    """
    import pandas as pd

    path, needed = Path(path), ", ".join(NEEDED)
    table = tables.read(path, SOURCE, NEEDED)
    for name, unit_s in UNITS_S.items():
        if name in table.columns and "step_s" not in table.columns:
            table["step_s"] = pd.to_numeric(table[name].astype(str), errors="coerce") * unit_s
    if any(name not in table.columns for name in NEEDED):
        raise WrongSetting(f"{path}: columns", shortened([str(name) for name in table.columns]), needed)
    if not 0 < len(table) <= MOST_ROWS:
        raise WrongSetting(f"{path}: rows", len(table), f"1 to {MOST_ROWS:,}")
    named = next((name for name in ACCUMULATED if name in table.columns), None)
    minibatches = table[named] if named else 1
    return _checked(table[list(NEEDED)].assign(minibatches=minibatches), path)


def _checked(table, path: Path) -> Table:
    """The columns as numbers.

    Raises:
        WrongSetting: a row with what is no number, or one that cannot be; fewer than two batches or arrangements.
    """
    allowed = f"numbers above 0 and up to {MOST:g}; whole but for step_s; steps of {SHORTEST_S:g} s or more; minibatches up to batch"
    numbers = tables.whole_table(table, path, allowed, MOST, WHOLE, _cannot_be)
    hosts, each, batch, step_s, minibatches = (numbers[name].to_numpy() for name in numbers)
    return Table(hosts, hosts * each, each, batch, step_s, minibatches)


def _cannot_be(numbers):
    """The rows that have a 0, a step that is too short, or more minibatches than samples."""
    return (numbers == 0).any(axis=1) | (numbers["step_s"] < SHORTEST_S) | (numbers["minibatches"] > numbers["batch"])
