"""The page of a sweep: made of its rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from sim.answers.amount import Amount, cut_short
from sim.answers.summary import number, seconds
from sim.reports import figures
from sim.reports.page import page
from sim.reports.parts import Cell, Code, Figure, Section, Table, Text
from sim.simulation import REPLICATIONS
from sim.sweeps.columns import shown, varied

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA = "sweep-rows/1"
HEADINGS = ("samples/s", "at least", "at most", "mean step", "error")
MOST_LINES = len(figures.SERIES)  # that are told apart; of more scenarios the fastest are rows
MOST_ROWS = 20


def sweep_page(rows: pa.Table, command: str) -> str:
    """The HTML.

    Args:
        rows: of the sweep, sim.sweeps.columns says of which columns.
        command: that makes the page.
    """
    table, names = rows.to_pylist(), varied(rows)
    good = [row for row in table if row["error"] is None]
    best = max(good, key=lambda row: row["samples_per_s"])
    said = f"The fastest of {len(table)} scenarios: {_told(best, names)}, {number(best['samples_per_s'])} samples/s"
    said += f" (9 in 10 runs: {_spread(best)})"
    headings = (*map(shown, names), *HEADINGS)
    words = (*range(len(names)), len(headings) - 1)
    sections = [
        Section("The answer", [Text(said, "answer"), *(Text(line, "note") for line in _notes(table, good, best))]),
        Section("Throughput", [_figure(good, names)]),
        Section("Every scenario", [Table(headings, [_line(row, names) for row in table], "scenarios", words)]),
        Section("Reproduce it", [Code(command)]),
    ]
    return page(
        f"Sweep over {', '.join(map(shown, names)) or 'one scenario'}", sections, {"schema": SCHEMA, "rows": table}
    )


def _notes(table: Sequence[dict], good: Sequence[dict], best: dict) -> Iterator[str]:
    """Whatever was cut short or impossible, and the caveats of the fastest."""
    if cut := sum(map(_cut_short, good)):
        yield f"{cut} of {len(good)} scenarios are of fewer runs or steps than were asked for, because time ran out"
    if failed := len(table) - len(good):
        yield f"{failed} could not be simulated: see the column error"
    if best["notes"]:
        yield f"of the fastest: {best['notes']}"


def _cut_short(row: dict) -> bool:
    asked = Amount(row["runs_asked"] or REPLICATIONS, row["steps"], row["warmup"])
    return bool(cut_short(asked, Amount(row["runs_done"], row["steps_done"], row["warmup_done"])))


def _told(row: dict, names: Sequence[str]) -> str:
    return ", ".join(f"{shown(name)} {row[name]}" for name in names if row[name] is not None) or "the job"


def _pair(row: dict) -> tuple[float, float] | None:
    return None if row["samples_per_s_low"] is None else (row["samples_per_s_low"], row["samples_per_s_high"])


def _spread(row: dict) -> str:
    return " to ".join(map(number, _pair(row) or ())) or "unknown"


def _figure(rows: list[dict], names: Sequence[str]) -> Figure:
    """A line for each combination of all names but the first that has numbers, which is the axis; else a row for each scenario."""
    axis = next((name for name in names if all(_is_number(row[name]) for row in rows)), None)
    series: dict[str, list[dict]] = {}
    for row in rows:
        series.setdefault(_told(row, [name for name in names if name != axis]), []).append(row)
    if axis is None or len(series) > MOST_LINES:
        few = sorted(rows, key=lambda row: -row["samples_per_s"])[:MOST_ROWS]
        middles, pairs = [row["samples_per_s"] for row in few], [_pair(row) for row in few]
        said = [_told(row, names) for row in few]
        return figures.intervals(said, middles, pairs, "samples/s", "The fastest; bars: 9 in 10 runs.", "throughput")
    lines = {
        said: ([float(row[axis]) for row in of], [row["samples_per_s"] for row in of]) for said, of in series.items()
    }
    made = figures.lines(lines, (shown(axis), "samples/s"), "Bars: 9 in 10 runs.", "throughput")
    for drawn, of in zip(made.data, series.values(), strict=True):
        drawn["error_y"] = figures.errors(drawn["y"], [_pair(row) for row in of]) | {"color": drawn["line"]["color"]}
    return made


def _is_number(value: object) -> bool:
    try:
        float(str(value))
    except ValueError:
        return False
    return True


def _line(row: dict, names: Sequence[str]) -> Sequence[str | Cell]:
    asked = ["" if row[name] is None else str(row[name]) for name in names]
    if row["error"] is not None:
        return *asked, *[Cell("")] * 4, row["error"]
    speeds = [row["samples_per_s"], *(_pair(row) or (None, None))]
    cells = [Cell("unknown" if speed is None else number(speed), speed) for speed in speeds]
    step_s = row["step_mean_s"]
    return *asked, *cells, Cell("unknown" if step_s is None else seconds(step_s), step_s), ""
