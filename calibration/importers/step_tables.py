"""Tables of step times: their columns by name, whose unit is in the name, and the numbers in them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from calibration.importers import column_ranks, spoken, stretches
from calibration.importers.rounds import shortened
from calibration.importers.table_names import (
    COMPUTE,
    ELAPSED,
    EPOCH,
    NAMES,
    RANK,
    SAMPLES,
    SECONDS,
    SHORT,
    STEP,
    Names,
    words,
)
from sim.base import tables
from sim.base.errors import WrongSetting, nearest
from sim.base.ranges import LONGEST_S, SHORTEST_S

if TYPE_CHECKING:
    import pandas as pd

    from calibration.importers.about import About

SOURCE = "--from steps"
NEEDED = (STEP, RANK, SECONDS)
UNITS_S = {
    1.0: ("s", "sec", "secs", "second", "seconds"),
    1e-3: ("ms", "msec", "msecs", "millis", "millisecond", "milliseconds"),
    1e-6: ("us", "usec", "usecs", "micros", "microsecond", "microseconds", "\u00b5s", "\u03bcs"),
    1e-9: ("ns", "nsec", "nanosecond", "nanoseconds"),
}
THINGS = "images?|imgs?|samples?|tokens?|sequences?|examples?|it|its|iters?|iterations?|steps?|batch(es)?|flops?|bytes?"
RATE = re.compile(rf"(per |\b({THINGS})\s*/\s*)(s|sec|secs|second|seconds|ms)\b")  # of a name in words, or as it is
MOST_LISTED = 30  # names of columns
WITHOUT_UNIT = ("time", "duration", "latency")  # the last word
SINCE_START = {"elapsed", "wall", "runtime", "total", "eta", "epoch", "timestamp"}  # words of times that are no step's
CLOCKS = ("elapsed", "runtime", "timestamp")  # the last word of such a name without a unit
OF_STEPS = {"step", "iter", "iteration"}  # but with one of these they are
A_STEP = {*OF_STEPS, "it", "batch", "update"}  # that a unit may be of, as in ms/step
OF_COMPUTING = {"compute", "computing", "computation"}
HOSTS, OF_HOST = ("host", "hostname", "node", "node rank"), ("local rank", "gpu")  # which tell the rank together
WHOLE = (STEP, RANK, SAMPLES)
MOST, MOST_ROWS = 1e9, 10**7  # of steps, ranks and samples; and of rows
USUAL_S = (1e-6, 100.0)  # of the median step, where the name has no unit or says seconds


class Column(NamedTuple):
    """A column of seconds.

    Args:
        unit_s: its unit in seconds.
        sure: whether its name says the unit and can be no other.
        elapsed: whether it is known to be since a start.
    """

    name: str
    unit_s: float
    sure: bool
    elapsed: bool = False


def read(path: Path, about: About) -> tuple[pd.DataFrame, list[str]]:
    """The columns that are used, as numbers, and notes. Columns: step, rank, seconds, and compute_s and samples if there are any.

    Raises:
        WrongSetting: the file cannot be read, a column is missing, or a number cannot be.
    """
    said = about.names
    table, spoken_of = spoken.read(path, SOURCE, NEEDED, about)
    table.columns = [str(name).strip() for name in table.columns]
    if not len(table) <= MOST_ROWS:
        raise WrongSetting(f"{path}: rows", len(table), f"1 to {MOST_ROWS:,}")
    cut = path.suffix == ".csv" and len(table) > 1 and bool(table.iloc[-1].isna().any())
    cut = cut and not path.read_bytes().endswith((b"\n", b"\r"))
    table, of_ranks = column_ranks.by_row(table[:-1] if cut else table, said)
    for ours, theirs in said.columns.items():
        if theirs not in table.columns:
            allowed = f"{', '.join(map(str, table.columns[:MOST_LISTED]))}{nearest(theirs, table.columns)}"
            raise WrongSetting(f"{path}: --columns {ours}", theirs, f"a column of it: {allowed}")
    found, notes = _named(table, path, said)
    seconds = found.attrs["seconds"]
    found, of_blank = _filled(found, table[seconds.name].isna())
    numbers, of_starts = stretches.of(_numbers(found, path), path, seconds.elapsed, SECONDS in said.columns)
    if (short := numbers[SECONDS] < SHORTEST_S).any():
        row = numbers.iloc[int(np.argmax(short))]
        given = f"{row[SECONDS]:g} s of step {row[STEP]:g}"
        raise WrongSetting(f"{path}: row {int(np.argmax(short)) + 1}", given, f"seconds from {SHORTEST_S:g}")
    _check_lengths(numbers, seconds, path)
    numbers.attrs["gaps"] = bool(of_blank)
    return numbers, [*of_ranks, *notes, *spoken_of, *["the last row left out: cut"] * cut, *of_blank, *of_starts]


def _filled(table: pd.DataFrame, blank: pd.Series) -> tuple[pd.DataFrame, list[str]]:
    """Without the steps in which a rank has no time, and a note; unchanged if fewer than two steps would be left."""
    left = blank | table[STEP].isin(table[STEP][blank])
    if not blank.any() or table[STEP][~left].nunique() < 2:
        return table, []
    found = table[~left].reset_index(drop=True)
    of, kept = table[STEP][left].nunique(), found[STEP].nunique()
    return found, [f"{of} of {of + kept} steps left out: a rank's time is blank"]


def _named(table: pd.DataFrame, path: Path, said: Names) -> tuple[pd.DataFrame, list[str]]:
    """The columns by our names, times as seconds; and what was read as what."""
    import pandas as pd

    names, notes = list(table.columns), []
    seconds, computing = _times(names, path, said)
    of = {ours: next((name for name in names if words(name) in NAMES[ours]), None) for ours in NAMES}
    of |= {ours: theirs for ours, theirs in said.columns.items() if ours in of}
    if of[EPOCH]:  # whose batches are counted
        of[STEP] = of[STEP] or next((name for name in names if words(name) == "batch"), None)
    if of[RANK] is None and spoken.SPEAKER in names:
        of[RANK] = spoken.SPEAKER
        notes.append("ranks are those that the launcher has put before the rows")
    if of[RANK] is None and (
        places := [name for some in (HOSTS, OF_HOST) for name in names if words(name) in some][:2]
    ):
        table = table.assign(**{RANK: table.groupby(places).ngroup()})
        of[RANK] = RANK
        notes.append(f"ranks are those of {' and '.join(places)}: {table[RANK].nunique()}")
    if of[STEP] is None and (of[RANK] or len(names) > 1):
        raise WrongSetting(f"{path}: columns", shortened([*names]), ", ".join(NEEDED))
    if not len(table):
        raise WrongSetting(f"{path}: rows", 0, f"1 to {MOST_ROWS:,}")
    found = pd.DataFrame({ours: table[name] for ours, name in of.items() if name is not None})
    for ours, one in ((SECONDS, seconds), (COMPUTE, computing)):
        if one:
            values = pd.to_numeric(table[one.name].astype(str), errors="coerce")
            if one.elapsed and values.isna().all():
                times = pd.to_datetime(table[one.name], errors="coerce", format="mixed", utc=True)
                values = times.map(pd.Timestamp.timestamp, "ignore")
            if one.elapsed and values.max() * one.unit_s > MOST:  # of a clock
                table = table.assign(**{one.name: values - values.min()})
                values = table[one.name]
            found[ours] = values * one.unit_s if one.unit_s != 1 else table[one.name]
            unit = next(name for name in UNITS_S[one.unit_s] if name.endswith("seconds"))
            notes += [f"{one.name} read as {unit}"] * (one.name != ours)
    if of[RANK] is None:
        found[RANK] = 0
        notes.append("no column rank: taken as the log of one rank")
    if of[STEP] is None:
        found[STEP] = np.arange(len(table))
        notes.append("no column step: rows are taken as steps, in order")
    if EPOCH in found and not pd.api.types.is_numeric_dtype(found[EPOCH].dropna()):
        del found[EPOCH]
    found.attrs["seconds"] = seconds
    return found[[name for name in (*NEEDED, COMPUTE, SAMPLES, EPOCH) if name in found.columns]], notes


def _times(names: Sequence[str], path: Path, said: Names) -> tuple[Column, Column | None]:
    """The columns of a step's seconds, and of the seconds in it that were computing."""
    given = [said.columns.get(ours) for ours in (SECONDS, COMPUTE, ELAPSED)]
    for one in filter(None, given):
        if RATE.search(words(one)) or RATE.search(one.lower()):
            raise WrongSetting("--columns", one, "a column of times, and none of rates")
    seconds, computing, since = (Column(one, 1.0, False) if one else None for one in given)
    if seconds and since:
        raise WrongSetting("--columns elapsed", since.name, f"no such column beside seconds={seconds.name}")
    seconds = seconds or (since._replace(elapsed=True) if since else None)
    if not seconds:
        left = able([name for name in names if name not in said.columns.values()])
        seconds, found = _of_steps(left, names, path)
        computing = computing or found
    return _in_unit(seconds, said.unit, path), _in_unit(computing, said.unit, path) if computing else None


def _in_unit(column: Column, unit: str | None, path: Path) -> Column:
    """The column in the unit that its name says, or else the user.

    Raises:
        WrongSetting: both do, and differ.
    """
    named = None if column.name == SECONDS else unit_of(column.name)
    if unit is None:
        return column if named is None else column._replace(unit_s=named, sure=True)
    if named not in (None, SHORT[unit]):
        raise WrongSetting("--unit", unit, f"the unit of the column {column.name!r} of {path}, or no --unit")
    return Column(column.name, SHORT[unit], True)


def unit_of(name: str) -> float | None:
    """Seconds of the unit that a column's name says at its end, or before the step that it is of: `ms/step`, `time (s) per iter`."""
    said = words(name).split()
    if said and said[-1] in A_STEP:
        said = said[: -2 if said[-2:-1] == ["per"] else -1]
    return next((unit_s for unit_s, known in UNITS_S.items() if said and said[-1] in known), None)


def able(names: Sequence[str]) -> list[Column]:
    """The columns that may be times of steps, or since a start."""
    found = []
    for name in names:
        said = words(name).split()
        if not said or RATE.search(" ".join(said)) or RATE.search(name.lower()):
            continue
        since = bool(SINCE_START & set(said)) and not OF_STEPS & set(said)
        if (unit_s := unit_of(name)) is not None:
            found.append(Column(name, unit_s, name != SECONDS, since))
        elif said[-1] in WITHOUT_UNIT or (since and said[-1] in CLOCKS):
            found.append(Column(name, 1.0, False, since))
    return found


def likeliest(able: Sequence[Column]) -> list[Column]:
    """Of columns that may be times, those of whole steps: the one named so, or else all; since a start only if there is no other."""
    able = [one for one in able if not OF_COMPUTING & set(words(one.name).split())]
    rest = [one for one in able if not one.elapsed] or able
    best = [one for one in rest if one.name == SECONDS] or [
        one for one in rest if OF_STEPS & set(words(one.name).split())
    ]
    return best if len(best) == 1 else rest


def _of_steps(able: list[Column], names: Sequence[str], path: Path) -> tuple[Column, Column | None]:
    """Of these the one of a step's seconds, or else the only one since a start; and that of computing in it.

    Raises:
        WrongSetting: there is no such one, or there are several.
    """
    computing = [one for one in able if OF_COMPUTING & set(words(one.name).split())]
    rest = likeliest(able)
    if len(rest) != 1 or len(computing) > 1:
        wanted = "one column of a step's seconds: seconds, one that ends in _s, _ms or _us, or --columns seconds=NAME, "
        wanted += "or 'seconds=rank-* step time' for a column of each rank"
        raise WrongSetting(f"{path}: columns", shortened([*names]), f"{', '.join(NEEDED)}; {wanted}")
    return rest[0], computing[0] if computing else None


def _numbers(table: pd.DataFrame, path: Path) -> pd.DataFrame:
    allowed = f"numbers from 0 to {MOST:g}; seconds from {SHORTEST_S:g}, "
    allowed += f"and compute_s within them; {', '.join(name for name in table.columns if name in WHOLE)} whole"
    return tables.whole_table(table, path, allowed, MOST, WHOLE, lambda found: found.get(COMPUTE, 0) > found[SECONDS])


def _check_lengths(table: pd.DataFrame, column: Column, path: Path) -> None:
    """Refuse steps that are likely of another unit, or that no step takes."""
    median_s = float(table[SECONDS].median())
    least_s, most_s = (SHORTEST_S, LONGEST_S) if column.sure else USUAL_S
    if not (least_s <= median_s <= most_s and table[SECONDS].max() <= LONGEST_S):
        given = f"a median step of {median_s / column.unit_s:g}"
        allowed = f"steps of {least_s:g} s to {most_s:g} s"
        unit = "" if column.sure else "; --unit ms or us says another unit, and --unit s that they are seconds"
        raise WrongSetting(f"{path}: {column.name}", given, allowed + unit)
