"""Tables with a column for each rank, as Weights and Biases exports a panel of several runs: read as a row for each rank and step."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from calibration.importers.table_names import NAMES, RANK, Names, words

if TYPE_CHECKING:
    import pandas as pd

OF_INTERVAL = ("__MIN", "__MAX")  # columns beside one that has the same name, of W&B
NUMBERED = re.compile(
    r"(?i)(?:(?<=rank)|(?<=worker)|(?<=process)|(?<=gpu)|(?<=local_rank))([-_ :=.#\[]*)(\d{1,6})(?!\d)"
)


def by_row(table: pd.DataFrame, said: Names) -> tuple[pd.DataFrame, list[str]]:
    """The table with a column `rank`, and notes; unchanged if it has no columns of ranks.

    Columns are of ranks if their names differ by the number behind `rank`, `worker`, `process` or `gpu`, or in the place of the `*` in
    a name that the user says. The name of all of them has a `*` there.
    """
    import pandas as pd

    names = [str(name) for name in table.columns]
    doubled = [name for name in names if name.endswith(OF_INTERVAL) and name[: -len(OF_INTERVAL[0])] in names]
    left_out = f"{len(doubled)} columns __MIN and __MAX left out: least and most of the interval of a row"
    notes = [left_out] * bool(doubled)
    table, names = table.drop(columns=doubled), [name for name in names if name not in doubled]
    patterns = [re.compile(re.escape(one).replace(r"\*", r"(\d+)")) for one in said.columns.values() if "*" in one]
    found: dict[str, dict[int, str]] = {}
    for name in names:
        if one := next(filter(None, (pattern.fullmatch(name) for pattern in patterns)), None):
            found.setdefault(name[: one.start(1)] + "*" + name[one.end(1) :], {})[int(one[1])] = name
        elif not patterns and (one := NUMBERED.search(name)):
            found.setdefault(name[: one.start(2)] + "*" + name[one.end(2) :], {})[int(one[2])] = name
    most = max((set(of) for of in found.values()), key=len, default=set())
    if RANK in names or len(most) < 2:
        return table, notes
    kept = {name: of for name, of in found.items() if set(of) == most}
    ranked = [of[rank] for of in found.values() for rank in of]
    rest = [name for name in names if name not in ranked]
    parts = [
        table[rest].assign(**{RANK: rank, **{name: table[of[rank]] for name, of in kept.items()}})
        for rank in sorted(most)
    ]
    notes.append(f"{', '.join(kept)}: taken as a column for each of {len(most)} ranks")
    bare = {name: f"{name} time" for name in kept if words(name) in NAMES[RANK]}
    return pd.concat(parts, ignore_index=True).rename(columns=bare), notes
