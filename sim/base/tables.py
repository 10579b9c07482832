"""Tables that a user brings, as CSV or parquet: their columns of numbers, checked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sim.base.errors import WrongSetting
from sim.base.files import check_size, reading
from sim.base.nearest import nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import pandas as pd

ENDINGS = (".csv", ".csv.gz", ".parquet")


def read(path: str | Path, what: str, columns: Sequence[str] = ()) -> pd.DataFrame:
    """The table in a file.

    Args:
        what: the option that names the file.
        columns: that it needs, for complaints.

    Raises:
        WrongSetting: the file does not exist, has another format, is empty, or is broken.
    """
    import pandas as pd

    if not str(path).endswith(ENDINGS):
        raise WrongSetting(what, str(path), f"a table that ends in {' or '.join(ENDINGS)}")
    with reading(what, path):
        check_size(what, path)
        try:
            return pd.read_parquet(path) if str(path).endswith(".parquet") else pd.read_csv(path)
        except (ValueError, TypeError, KeyError, OverflowError, MemoryError, RecursionError) as error:
            said = " ".join(str(error).split())[:100] or type(error).__name__
            allowed = f"a table with the columns {', '.join(columns)}" if columns else "a table that can be read"
            raise WrongSetting(what, str(path), f"{allowed} ({said})") from error


def numbers(table: pd.DataFrame, column: str, path: str | Path, least: float = 0.0, most: float = 1e6) -> np.ndarray:
    """One column as numbers without gaps; shape (rows,).

    Raises:
        WrongSetting: there are no rows, the column is missing, or a value is no number from `least` to `most`.
    """
    import numpy as np
    import pandas as pd

    if column not in table.columns:
        names = ", ".join(map(str, table.columns[:20]))
        raise WrongSetting(
            f"{path}: column", column, f"{names or 'a table with columns'}{nearest(column, table.columns)}"
        )
    if not len(table):
        raise WrongSetting(f"{path}: {column}", None, "at least one row")
    values = table[column]
    if not pd.api.types.is_numeric_dtype(values) or pd.api.types.is_bool_dtype(values):
        text = pd.to_numeric(values.astype(str), errors="coerce").isna()
        first = int(np.argmax(text)) if text.any() else 0
        raise WrongSetting(f"{path}: {column}, row {first + 1}", str(values.iloc[first]), "numbers alone")
    found = values.to_numpy(float, na_value=np.nan)
    wrong = ~((found >= least) & (found <= most))
    if wrong.any():
        first = int(np.argmax(wrong))
        raise WrongSetting(
            f"{path}: {column}, row {first + 1}", float(found[first]), f"numbers from {least:g} to {most:g}"
        )
    return found


def matrix(path: str | Path, column: str, what: str) -> list[list[float]]:
    """A column by rank and step: rows are the ranks in order, and columns their steps in order; shape (ranks, steps).

    Raises:
        WrongSetting: see `read` and `numbers`; a rank lacks a step that another one has, or has it twice.
    """
    import numpy as np

    table = read(path, what)
    ranks, steps = (numbers(table, name, path, most=1e12) for name in ("rank", "step"))
    values = numbers(table, column, path)
    rows, row = np.unique(ranks, return_inverse=True)
    columns, place = np.unique(steps, return_inverse=True)
    if len(rows) * len(columns) != len(values) or len(np.unique(row * len(columns) + place)) != len(values):
        given = f"{len(values)} rows of {len(rows)} ranks and {len(columns)} steps"
        raise WrongSetting(f"{path}: rows", given, "one row for each rank and step")
    found = np.empty((len(rows), len(columns)))
    found[row, place] = values
    return found.tolist()
