"""Stretches of a log in which steps follow one another: resumed runs, steps that each epoch counts anew, times since a start.

A run that is resumed does steps again that it had done before; both times are times of steps. A column of times since the start of a run,
or of each epoch, is read as the differences between rows.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from calibration.importers.table_names import EPOCH, RANK, SECONDS, STEP
from sim.base.errors import WrongSetting

if TYPE_CHECKING:
    import pandas as pd

STRETCH = "stretch"
LEAST_ROWS = 6  # of a rank, that grow throughout and are taken as times since the start: 1 in 720 by chance
LEAST_OF_A_START = 5  # rows of the mean stretch between two starts
ABOUT = 2.0  # a factor: how far times since a start are from the number of steps, times the median step


def of(table: pd.DataFrame, path: Path, elapsed: bool, sure: bool) -> tuple[pd.DataFrame, list[str]]:
    """The table in order, by a column `stretch`, with seconds of each step; and notes.

    Args:
        table: columns step, rank and seconds, and epoch if there is one, as numbers, in the order of the file.
        elapsed: whether seconds are known to be since a start; or else numbers tell.
        sure: whether the user has said that they are of a step.

    Raises:
        WrongSetting: a rank has a step twice, one after the other; or times that may be either.
    """
    table, notes = _numbered(table, path)
    table = table.sort_values([RANK, STRETCH, STEP], kind="stable", ignore_index=True)
    if not (elapsed or _grows(table, path, sure)):
        return table, notes
    found, of_differences = _differences(table, path)
    return found, [*notes, *of_differences]


def _numbered(table: pd.DataFrame, path: Path) -> tuple[pd.DataFrame, list[str]]:
    """With the number of each row's stretch, where steps are there several times."""
    if not table.duplicated([STEP, RANK]).any():
        return table.assign(**{STRETCH: 0}), []
    if EPOCH in table and not table.duplicated([EPOCH, STEP, RANK]).any():
        numbers = np.unique(table[EPOCH], return_inverse=True)[1]
        return table.assign(**{STRETCH: numbers}), [f"steps are counted anew in each of {numbers.max() + 1} epochs"]
    before = table.groupby(RANK)[STEP].diff()
    if (again := (before == 0)).any() or (before < 0).sum() * 2 > len(table):
        row = int(np.argmax(again if again.any() else table.duplicated([STEP, RANK])))
        given = f"step {table[STEP].iloc[row]:g} of rank {table[RANK].iloc[row]:g} again"
        allowed = f"each of {table[RANK].nunique()} ranks once in each step; --columns rank=NAME says which column has the rank"
        raise WrongSetting(f"{path}: row {row + 1}", given, allowed)
    numbers = (before < 0).groupby(table[RANK]).cumsum()
    row = int(np.argmax(before < 0))
    said = f"steps go back to {table[STEP].iloc[row]:g} at row {row + 1}, as where a run is resumed or an epoch begins"
    twice = int(table.duplicated([STEP, RANK]).sum())
    return table.assign(**{STRETCH: numbers}), [
        f"{said}: {numbers.max() + 1} stretches, all rows of which are steps, {twice} of them again"
    ]


def _grows(table: pd.DataFrame, path: Path, sure: bool) -> bool:
    """Whether seconds of every rank grow from row to row by about one step's, but for few starts.

    Raises:
        WrongSetting: they grow throughout, and start far above that.
    """
    by_rank = table.groupby(RANK)[SECONDS]
    rows, grown = by_rank.size().min(), by_rank.diff()
    starts = int((grown <= 0).groupby(table[RANK]).sum().max()) + 1
    if rows < LEAST_ROWS or rows < LEAST_OF_A_START * starts:
        return False
    usual_s = float((grown / _between(table))[grown > 0].median())
    since = table.groupby([table[RANK], _starts(table)])
    expected_s = usual_s * (since[STEP].last() - since[STEP].first() + 1)
    if (since[SECONDS].last() / expected_s).between(1 / ABOUT, ABOUT).all():
        return True
    if starts == 1 and not sure:
        given = f"{table[SECONDS].iloc[0]:.6g} s, growing in each of {rows} rows"
        allowed = "seconds of single steps: --columns seconds=NAME says that they are; or times since the start: --columns elapsed=NAME"
        raise WrongSetting(f"{path}: times", given, allowed)
    return False


def _starts(table: pd.DataFrame) -> pd.Series:
    """How often seconds of the rank have begun anew up to each row."""
    of_rank = table.groupby(RANK)
    anew = (of_rank[SECONDS].diff() < 0) | (of_rank[STRETCH].diff() > 0)
    return anew.groupby(table[RANK]).cumsum()


def _between(table: pd.DataFrame) -> pd.Series:
    """Steps since the row before of the rank."""
    return table.groupby(RANK)[STEP].diff().clip(lower=1)


def _differences(table: pd.DataFrame, path: Path) -> tuple[pd.DataFrame, list[str]]:
    """Seconds of a step between a row and the one before. The first row after a start stays if it is as long as a step.

    Raises:
        WrongSetting: two rows have one time.
    """
    table = table.assign(**{STRETCH: _starts(table)})
    grown = table.groupby([RANK, STRETCH])[SECONDS].diff()
    if grown.count() * 2 < len(table):
        given = f"{len(table)} rows, {grown.count()} of which grow"
        raise WrongSetting(f"{path}: times since the start", given, "times that grow")
    if (grown <= 0).any():
        row = int(np.argmax(grown <= 0))
        given = f"{table[SECONDS].iloc[row]:.9g} s at step {table[STEP].iloc[row]:g}, and at the one before"
        raise WrongSetting(f"{path}: times since the start", given, "times that grow, with more digits")
    each_s, first = grown / _between(table), grown.isna()
    usual_s = float(each_s.median())
    firsts, every = table[SECONDS][first], int(_between(table)[~first].median())
    whole = every == 1 and bool(firsts.between(usual_s / ABOUT, usual_s * ABOUT).all())
    found = table.assign(**{SECONDS: each_s.where(~first, table[SECONDS])})
    starts = int(table[STRETCH].max()) + 1
    notes = [
        f"times since {f'each of {starts} starts' if starts > 1 else 'the start'} are read as their differences, "
        f"{usual_s:.4g} s a step in the median"
    ]
    if not whole:
        found = found[~first].reset_index(drop=True)
        notes.append(
            f"the first row of each start left out: when its step began is not known (it has {float(firsts.median()):.4g} s)"
        )
    return found, notes
