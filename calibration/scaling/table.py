"""A table of step seconds by where the ranks sit: hosts, GPUs of each, batch, step_s; and columns that may be missing.

`minibatches` are those whose gradients are accumulated; `data` is real or synthetic; `servers` is the number of parameter servers, and
`servers_on` their place, own or workers.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from calibration.importers.rounds import shortened
from sim.base import tables
from sim.base.errors import WrongSetting
from sim.base.ranges import SHORTEST_S

NEEDED = ("hosts", "gpus_per_host", "batch", "step_s")
WHOLE = ("hosts", "gpus_per_host", "batch", "minibatches", "servers")
WORDS = {
    "data": ("synthetic", "real"),
    "servers_on": ("own", "workers"),
}  # of columns of words: those that count 0 and 1
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
        servers: parameter servers, shape (rows,); None if the table has none.
        beside: 1 where these are on the workers' hosts, 0 where each has a host of its own, shape (rows,).
        real: 1 for real data, which hosts read, and 0 for synthetic, shape (rows,); None if the table does not say.
    """

    hosts: np.ndarray
    gpus: np.ndarray
    most: np.ndarray
    batch: np.ndarray
    step_s: np.ndarray
    minibatches: np.ndarray
    servers: np.ndarray | None = None
    beside: np.ndarray | None = None
    real: np.ndarray | None = None

    def where(self, chosen: np.ndarray) -> Table:
        """Some of the rows, by a mask or places."""
        return Table(*(None if column is None else column[chosen] for column in self))  # type: ignore[arg-type]

    @property
    def minibatch(self) -> np.ndarray:
        """Samples of a GPU and minibatch, shape (rows,)."""
        return self.batch / self.minibatches

    @property
    def size(self) -> int:
        """The number of rows."""
        return len(self.step_s)


def read(path: str | Path, accumulated: int | None = None) -> Table:
    """The table in a CSV or parquet file.

    Args:
        accumulated: minibatches of a step, where no column says them; 1 if None.

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
    if named and accumulated:
        raise WrongSetting("--accumulate", accumulated, f"nothing: {path} has a column {named}")
    found = table[list(NEEDED)].assign(minibatches=table[named] if named else accumulated or 1)
    for name, words in WORDS.items():
        if name in table.columns:
            found[name] = [_number(word, words, f"{path}: {name}") for word in table[name].tolist()]
    return _checked(found.assign(servers=table["servers"]) if "servers" in table.columns else found, path)


def _number(word: object, words: tuple[str, ...], column: str) -> int:
    if word not in words:
        raise WrongSetting(column, word, " or ".join(words))
    return words.index(str(word))


def _checked(table, path: Path) -> Table:
    """The columns as numbers.

    Raises:
        WrongSetting: a row with what is no number, or one that cannot be; fewer than two batches or arrangements.
    """
    allowed = f"numbers above 0 and up to {MOST:g}; whole but for step_s; steps of {SHORTEST_S:g} s or more; minibatches up to batch"
    numbers = tables.whole_table(table, path, allowed, MOST, WHOLE, _cannot_be)
    of = {name: numbers[name].to_numpy() for name in numbers}
    hosts, each = of["hosts"], of["gpus_per_host"]
    needed = hosts, hosts * each, each, of["batch"], of["step_s"], of["minibatches"]
    return Table(*needed, of.get("servers"), of.get("servers_on"), of.get("data"))


def _cannot_be(numbers):
    """The rows that have a 0, a step that is too short, or more minibatches than samples."""
    return (
        (numbers.drop(columns=[*WORDS], errors="ignore") == 0).any(axis=1)
        | (numbers["step_s"] < SHORTEST_S)
        | (numbers["minibatches"] > numbers["batch"])
    )
