"""A table of step seconds by where the ranks sit: hosts, GPUs of each, batch, step_s; and columns that may be missing.

`minibatches` are those whose gradients are accumulated; `data` is real or synthetic; `servers` is the number of parameter servers, and
`servers_on` their place, own or workers.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from calibration.importers import step_tables
from calibration.importers.rounds import shortened
from calibration.importers.table_names import words
from sim.base import tables
from sim.base.errors import WrongSetting
from sim.base.ranges import SHORTEST_S

if TYPE_CHECKING:
    import pandas as pd

NEEDED = ("hosts", "gpus_per_host", "batch", "step_s")
WHOLE = ("hosts", "gpus_per_host", "minibatches", "servers")
WORDS = {"data": ("synthetic", "real"), "servers_on": ("own", "workers")}  # by column, the words that count 0 and 1
ACCUMULATED = ("minibatches", "accumulation")  # names of the column of minibatches, which may be missing
# Words of other names, besides nodes for hosts: gpus are those of all hosts. And of rates, of all GPUs, or of one if they end so.
OTHERS = {"gpus host": "gpus_per_host", "batch size": "batch", "gpus": "gpus", "total gpus": "gpus"}
RATE = re.compile(r"(?:samples?|images?|imgs?|examples?|sequences?) (?:per )?s(?:ec)?( (?:per )?gpu)?")
SOURCE = "--from scaling"
MOST, MOST_ROWS = 1e6, 10**6  # of hosts, GPUs, samples and seconds; rows
MOST_OTHERS = 1e15  # of rates, and of seconds in another unit


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


def evenly(size: int, most: int) -> np.ndarray:
    """Up to so many places of a table of that size, at even distances."""
    return np.unique(np.linspace(0, size - 1, min(size, most)).astype(int))


def read(path: str | Path) -> Table:
    """The table in a CSV or parquet file.

    Raises:
        WrongSetting: no such table, a column that is missing, or numbers that cannot be.
    """
    path = Path(path)
    table = _named(tables.read(path, SOURCE, NEEDED), path)
    if not 0 < len(table) <= MOST_ROWS:
        raise WrongSetting(f"{path}: rows", len(table), f"1 to {MOST_ROWS:,}")
    named = next((name for name in ACCUMULATED if name in table.columns), None)
    found = table[list(NEEDED)].assign(minibatches=table[named] if named else 1)
    for name, allowed in WORDS.items():
        if name in table.columns:
            found[name] = [_number(word, allowed, f"{path}: {name}") for word in table[name].tolist()]
    return _checked(found.assign(servers=table["servers"]) if "servers" in table.columns else found, path)


def _number(word: object, words: tuple[str, ...], column: str) -> int:
    if word not in words:
        raise WrongSetting(column, word, " or ".join(words))
    return words.index(str(word))


def _named(table: pd.DataFrame, path: Path) -> pd.DataFrame:
    """The table with our names and seconds, whatever it has for the same, such as nodes, GPUs of all hosts, ms/step and images/s.

    Raises:
        WrongSetting: a column is missing, or none or several are a step's seconds.
    """
    import pandas as pd

    theirs = [str(name) for name in table.columns]
    known = {words(name): name for name in (*NEEDED, *ACCUMULATED)} | OTHERS
    ours = [name if name in NEEDED else known.get(words(name).replace("node", "host"), name) for name in theirs]
    table = table.set_axis(ours, axis=1)

    def column(name: str) -> pd.Series:
        return pd.Series(tables.numbers(table, name, path, most=MOST_OTHERS), table.index)

    twice = len(set(ours)) < len(ours)
    if not twice and {"hosts", "gpus"} <= set(ours) and "gpus_per_host" not in ours:
        table = table.assign(gpus_per_host=column("gpus") / column("hosts"))
    if not twice and "step_s" not in ours:
        able = [one for one in step_tables.able(ours) if step_tables.unit_of(one.name) and not one.elapsed]
        rates = {name: rate for name in ours if (rate := RATE.fullmatch(words(name)))}
        if len(found := step_tables.likeliest(able)) == 1:
            table = table.assign(step_s=column(found[0].name) * found[0].unit_s)
        elif not found and len(rates) == 1 and {"hosts", "gpus_per_host", "batch"} <= set(table.columns):
            ((name, said),) = rates.items()
            gpus = 1 if said[1] else column("hosts") * column("gpus_per_host")
            table = table.assign(step_s=column("batch") * gpus / column(name))
    if twice or any(name not in table.columns for name in NEEDED):
        allowed = f"{', '.join(NEEDED)}, each once; or one column of another unit, as step_ms, or of a rate, as images/s or images/s/gpu"
        raise WrongSetting(f"{path}: columns", shortened(theirs), allowed)
    return table


def _checked(table, path: Path) -> Table:
    """The columns as numbers.

    Raises:
        WrongSetting: a row with what is no number, or one that cannot be; fewer than two batches or arrangements.
    """
    allowed = f"numbers above 0, up to {MOST:g}; hosts and GPUs whole; steps of {SHORTEST_S:g} s or more; minibatches up to batch, whole"
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
