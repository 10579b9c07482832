"""Tables that a user brings, as CSV or parquet: their columns of numbers, checked.

A CSV's columns are apart by commas, semicolons or tabs, as its heading has them. Numbers may have a comma as decimal mark, and marks
between thousands, as spreadsheets of many countries write them.
"""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from sim.base.errors import WrongSetting, nearest
from sim.base.files import check_size, reading

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import numpy as np
    import pandas as pd

ENDINGS = (".csv", ".csv.gz", ".parquet")
APART = ";\t,|"
BROKEN = (ValueError, TypeError, KeyError, EOFError, zlib.error, csv.Error, OverflowError, MemoryError, RecursionError)
QUOTED = re.compile(r'"[^"]*"')
BLANK = {"", "na", "n/a", "nan", "null", "none", "-", "#n/a"}
PACKED, WIDE = b"\x1f\x8b", (b"\xff\xfe", b"\xfe\xff")  # how files that gzip packed, and those in UTF-16, begin
SPACES = re.compile(r"(?<=\d)['\u2019 \u00a0\u202f](?=\d{3}(?!\d))")  # between thousands
STYLES = {  # of numbers, by their decimal mark; the other one may be between thousands
    point: re.compile(rf"[+-]?(?:\d+|[1-9]\d{{0,2}}(?:\{other}\d{{3}})+)?(?:\{point}\d*)?(?:[eE][+-]?\d+)?")
    for point, other in (".,", ",.")
}


def read(path: str | Path, what: str, columns: Sequence[str] = ()) -> pd.DataFrame:
    """The table in a file.

    Args:
        what: the option that names the file.
        columns: that it needs, for complaints.

    Raises:
        WrongSetting: the file does not exist, has another format, is empty, or is broken.
    """
    if not str(path).endswith(ENDINGS):
        raise WrongSetting(what, str(path), f"a table that ends in {' or '.join(ENDINGS)}")
    with reading(what, path):
        check_size(what, path)
        try:
            if str(path).endswith(".parquet"):
                import pandas as pd

                return pd.read_parquet(path)
            return parsed(_text(Path(path).read_bytes()).splitlines(keepends=True), path)
        except BROKEN as error:
            if isinstance(error, WrongSetting):
                raise
            said = " ".join(str(error).split())[:100] or type(error).__name__
            allowed = f"a table with the columns {', '.join(columns)}" if columns else "a table that can be read"
            raise WrongSetting(what, str(path), f"{allowed} ({said})") from error


def _text(found: bytes) -> str:
    """The text of a file in UTF-8, in UTF-16 with its mark, or as spreadsheets of western Europe write it."""
    found = gzip.decompress(found) if found.startswith(PACKED) else found
    if found.startswith(WIDE):
        return found.decode("utf-16")
    try:
        return found.decode("utf-8-sig")
    except UnicodeDecodeError:
        return found.decode("cp1252")


def apart(heading: str) -> str:
    """What is between the columns of a table with this heading: the mark that it has most often."""
    plain = QUOTED.sub("", heading)
    found = max(APART, key=plain.count)
    return found if found in plain else ","


def parsed(lines: Iterable[str], path: str | Path) -> pd.DataFrame:
    """The table in the lines of a CSV, its heading first; columns of numbers as numbers, NaN where a cell is blank.

    Raises:
        WrongSetting: no heading, a name that is there twice, or a row with more cells than the heading.
    """
    import pandas as pd

    lines = [line for line in lines if line.strip()]
    said = re.fullmatch(r"sep=(.)\s*", lines[0]) if lines else None  # which Excel takes
    lines = lines[1:] if said else lines
    if not lines:
        raise ValueError("it is empty")
    mark = said[1] if said else apart(lines[0])
    rows = csv.reader(lines, delimiter=mark)
    names = [name.strip() or f"column {at}" for at, name in enumerate(next(rows), 1)]
    if again := [name for name in names if names.count(name) > 1]:
        raise WrongSetting(f"{path}: columns", again[0], "each of them once")
    cells = []
    for row in rows:
        if any(cell.strip() for cell in row[len(names) :]):
            hint = "; numbers with a point as decimal mark, or semicolons between the columns" * (mark == ",")
            allowed = f"{len(names)} cells, as in the heading{hint}"
            raise WrongSetting(f"{path}: line {rows.line_num + bool(said)}", mark.join(row)[:80], allowed)
        cells.append([*row[: len(names)], *[""] * (len(names) - len(row))])
    found = _numbers([[row[at] for row in cells] for at in range(len(names))], mark)
    return pd.DataFrame(dict(zip(names, found, strict=True)), columns=names)


def _numbers(columns: list[list[str]], mark: str) -> list[pd.Series]:
    """Each column as numbers, or as text where a cell is none; blank cells are NaN or None.

    A column whose numbers may have either decimal mark has that of the others. Of columns that semicolons separate it is the comma.
    """
    import pandas as pd

    def numeric(cells: Sequence[str | None]) -> pd.Series:
        return pd.to_numeric(pd.Series(cells, dtype=object), errors="coerce")

    found = [numeric(cells) for cells in columns]
    if all(one.count() == len(cells) for one, cells in zip(found, columns, strict=True)):
        return found
    stripped = [[cell.strip() for cell in cells] for cells in columns]
    plain = [[None if cell.lower() in BLANK else SPACES.sub("", cell) for cell in cells] for cells in stripped]
    able = [
        {point for point, style in STYLES.items() if all(cell is None or style.fullmatch(cell) for cell in cells)}
        for cells in plain
    ]
    told = {point for points in able if len(points) == 1 for point in points}
    found = []
    for cells, points in zip(plain, able, strict=True):
        commas = any("," in (cell or "") for cell in cells)
        usual = told if len(told) == 1 else {","} if commas and mark == ";" else set() if commas else {"."}
        point = next(iter(points & usual if len(points) > 1 else points), None)
        if point is None:
            found.append(pd.Series(cells, dtype=object))
            continue
        between = "." if point == "," else ","
        found.append(numeric([cell and cell.replace(between, "").replace(point, ".") for cell in cells]))
    return found


def numbers(table: pd.DataFrame, column: str, path: str | Path, least: float = 0.0, most: float = 1e6) -> np.ndarray:
    """One column as numbers without gaps; shape (rows,).

    Raises:
        WrongSetting: there are no rows, the column is missing, or a value is no number from `least` to `most`.
    """
    if column not in table.columns:
        names = ", ".join(map(str, table.columns[:20])) or "a table with columns"
        raise WrongSetting(f"{path}: column", column, names + nearest(column, table.columns))
    if not len(table):
        raise WrongSetting(f"{path}: {column}", None, "at least one row")
    allowed = f"numbers from {least:g} to {most:g}"
    found = whole_table(table[[column]], f"{path}: {column}", allowed, most, wrong=lambda of: of[column] < least)
    return found[column].to_numpy()


def whole_table(
    table: pd.DataFrame,
    path: str | Path,
    allowed: str,
    most: float,
    whole: Sequence[str] = (),
    wrong: Callable[[pd.DataFrame], pd.Series] = lambda found: found.isna().any(axis=1),
) -> pd.DataFrame:
    """All columns as numbers without gaps, each from 0 to `most`.

    Args:
        allowed: for complaints.
        whole: columns of whole numbers, as far as there are such columns.
        wrong: which rows cannot be besides, shape (rows,).

    Raises:
        WrongSetting: naming the first row that cannot be.
    """
    import numpy as np
    import pandas as pd

    found = table.apply(lambda column: pd.to_numeric(column.astype(str), errors="coerce")).astype(float)
    bad = ~((found >= 0) & (found <= most)).all(axis=1) | wrong(found)
    bad |= (found.filter(items=whole) % 1 != 0).any(axis=1)
    if bad.any():
        row = int(np.argmax(bad.to_numpy()))
        given = ", ".join(f"{name}={cell}" for name, cell in table.iloc[row].items())[:120]
        hint = "; with a decimal point, where a comma may be either" * any("," in str(cell) for cell in table.iloc[row])
        raise WrongSetting(f"{path}: row {row + 1}", given, allowed + hint)
    return found


def matrix(path: str | Path, column: str, what: str) -> list[list[float]]:
    """A column by rank and step: rows are the ranks in order, and columns their steps in order; shape (ranks, steps).

    Raises:
        WrongSetting: see `read` and `numbers`; a rank lacks a step that another one has, or has it twice.
    """
    import pandas as pd

    table = read(path, what)
    ranks, steps = (numbers(table, name, path, most=1e12) for name in ("rank", "step"))
    values = numbers(table, column, path)
    found = pd.Series(values, [ranks, steps])
    if found.index.has_duplicates or (by_rank := found.unstack()).isna().any(axis=None):
        given = f"{len(values)} rows of {len(set(ranks))} ranks and {len(set(steps))} steps"
        raise WrongSetting(f"{path}: rows", given, "one row for each rank and step")
    return by_rank.to_numpy().tolist()


def flattened(table: dict, path: str = "") -> Iterator[tuple[str, str]]:
    """Dotted paths of everything in a JSON object, and the values as text; what is null is left out."""
    for name, value in table.items():
        items = {str(i): item for i, item in enumerate(value)} if isinstance(value, list) else value
        if isinstance(items, dict):
            yield from flattened(items, f"{path}{name}.")
        elif value is not None:
            yield f"{path}{name}", str(value)
