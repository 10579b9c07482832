"""The output of an experiment as data: `experiments.run NAME` leaves it in NAME.json, and docs/data has the files that pages show."""

from __future__ import annotations

import datetime
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field

from sim.base.files import validated, write_text

if TYPE_CHECKING:
    from rich.table import Table as Printed


class Table(BaseModel):
    """A table as it was printed: rows of texts, as many in each as there are columns."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str
    columns: list[str]
    rows: list[list[str]]


class Kept(BaseModel):
    """The result of one run of an experiment.

    Args:
        experiment: its name.
        command: that ran it.
        date: when it ended.
        machine: that it ran on.
        fitted: the measurements that the model was fitted on; no others were.
        shown: tables and lines in the order in which they were printed.
        cells: figures of each predicted and measured cell, for experiments that read them (decisions).
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    schema_: Literal["result/1"] = Field(default="result/1", alias="schema")
    experiment: str
    command: str
    date: datetime.date
    machine: str
    fitted: str
    shown: list[Table | str]
    cells: list[dict[str, str | float]] = []

    @property
    def tables(self) -> list[Table]:
        """The tables alone."""
        return [part for part in self.shown if isinstance(part, Table)]


def of(shown: list[Printed | str | list[dict]], experiment: str, command: str, fitted: str, out: Path) -> Kept:
    """What was shown, with today's date and this machine, and without its paths.

    Args:
        out: the folder of the experiment's files, which is `results/NAME` in what is kept.
    """
    return Kept(
        experiment=experiment,
        command=command,
        date=datetime.datetime.now(datetime.UTC).date(),
        machine=f"{os.cpu_count()} cores",
        fitted=fitted,
        shown=[part(one, out) for one in shown if not isinstance(one, list)],
        cells=[cell for one in shown if isinstance(one, list) for cell in one],
    )


def write(found: Kept, path: Path) -> None:
    """Write a result whole, or not at all.

    Raises:
        WrongSetting: a folder that cannot be written.
    """
    text = found.model_dump_json(by_alias=True, indent=1, exclude=set() if found.cells else {"cells"})
    write_text(path, f"{text}\n")


def read(path: Path) -> Kept:
    """A result that was kept.

    Raises:
        WrongSetting: a key that is missing or wrong.
    """
    import json

    return validated(Kept, json.loads(path.read_text()), str(path))


def part(printed: Printed | str, out: Path) -> Table | str:
    """A table or a line as it is kept."""
    return _placeless(printed.strip(), out) if isinstance(printed, str) else _data(printed)


def _placeless(line: str, out: Path) -> str:
    """A line without the paths of this machine."""
    return line.replace(str(out), f"results/{out.name}").replace(sys.executable, "python")


def _data(table: Printed) -> Table:
    columns = [[_text(cell) for cell in column.cells] for column in table.columns]
    headings = [_text(column.header) for column in table.columns]
    return Table(
        title=_text(table.title or ""), columns=headings, rows=[list(row) for row in zip(*columns, strict=True)]
    )


def _text(cell: object) -> str:
    return " ".join(str(cell).split())
