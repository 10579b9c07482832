"""A table of runs to a target that a user brings: `batch`, samples of a step of all workers, and `steps`, updates to the target."""

from __future__ import annotations

from sim import tables
from sim.base.errors import WrongSetting
from sim.efficiency import law

OPTION = "--until"
COLUMNS = ("batch", "steps")
MOST = 1e12


def read(path: str) -> law.Law:
    """The law of a table in a file; several rows of one batch are repeated runs.

    Raises:
        WrongSetting: there is no such file or column, a value is no number from 1, or all rows are of one batch.
    """
    table = tables.read(path, OPTION, COLUMNS)
    batches, steps = (tables.numbers(table, name, f"{OPTION} {path}", least=1, most=MOST) for name in COLUMNS)
    if len(set(batches)) < 2:
        given = f"one batch, {batches[0]:g}"
        raise WrongSetting(f"{OPTION} {path}: batch", given, "two batches or more, which say what a larger one saves")
    return law.fit(batches, steps)
