"""A picture of a sweep: throughput with its intervals, and efficiency, against what was swept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.base.files import write_whole
from sim.sweeps.columns import SWEPT

if TYPE_CHECKING:
    import pandas as pd

MOST_LABELLED = 20  # lines


def draw(rows: pd.DataFrame, names: list[str], path: str) -> None:
    """Draw it: the first name is the axis, each combination of the others a line.

    Raises:
        RunFailed: the system does not take the file.
    """
    from matplotlib.figure import Figure

    known = rows[rows["error"].isna()]
    axis, *others = (f"{SWEPT}{name}" for name in names)
    numbers = _numbers(known[axis])
    figure = Figure(figsize=(7, 7), layout="constrained")  # not pyplot's: no window system, no global state
    upper, lower = figure.subplots(2, 1, sharex=True)
    for label, line in known.groupby(others, sort=False) if others else [((), known)]:
        x = line[axis].map(float) if numbers else line[axis]
        said = ", ".join(f"{name} {value}" for name, value in zip(names[1:], label, strict=True)) or None
        speeds = line["samples_per_s"]
        around = (speeds - line["samples_per_s_low"]).fillna(0), (line["samples_per_s_high"] - speeds).fillna(0)
        upper.errorbar(x, speeds, yerr=[part.clip(lower=0) for part in around], marker="o", capsize=3, label=said)
        lower.plot(x, efficiency(line), marker="o")
    upper.set(ylabel="samples/s; bars: 9 in 10 runs", ylim=(0, None))
    lower.set(ylabel="samples/s a worker, over the first", xlabel=names[0], ylim=(0, None))
    if others and len(upper.lines) and len(known.groupby(others)) <= MOST_LABELLED:
        figure.legend(loc="outside upper center", ncols=2, frameon=False)
    write_whole(path, lambda file: figure.savefig(file, dpi=150))


def efficiency(line: pd.DataFrame) -> pd.Series:
    """Samples a second of each worker, relative to that in the line's first scenario."""
    each = line["samples_per_s"] / line["workers"].clip(lower=1)
    return each / each.iloc[0]


def _numbers(values: pd.Series) -> bool:
    try:
        values.map(float)
    except ValueError:
        return False
    return True
