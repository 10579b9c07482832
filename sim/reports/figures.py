"""Figures of reports, as plotly.js describes them. Okabe and Ito's colours, each with a marker or a pattern."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from textwrap import wrap
from typing import TYPE_CHECKING

import numpy as np

from sim.answers.summary import number
from sim.reports.parts import Figure

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

BLUE, ORANGE, GREEN, RED, PURPLE, SKY, BLACK = (
    "#0072b2",
    "#e69f00",
    "#009e73",
    "#d55e00",
    "#cc79a7",
    "#56b4e9",
    "#000000",
)
SERIES = tuple(
    zip(
        (BLUE, RED, GREEN, PURPLE, ORANGE, SKY, BLACK),
        ("circle", "square", "diamond", "triangle-up", "cross", "x", "star"),
        strict=True,
    )
)
ROW_PX, LINE_PX, AROUND_PX = 26, 17, 90  # of a row, of each line of its label, and around all rows
LABEL, LEGEND = 24, 60  # characters of a line
BREAK = "<br>"
SAME = 1e-9  # share of a value by which equal ones may differ


def height(rows: int, labels: Sequence[str] = ()) -> int:
    """Pixels of a figure with so many rows, each as high as the label of most lines."""
    lines = max((one.count(BREAK) + 1 for one in labels), default=1)
    return AROUND_PX + max(ROW_PX, LINE_PX * lines + 6) * max(3, rows)


def label(text: str, width: int = LABEL) -> str:
    """The text in lines that fit a phone. plotly.js interprets tags; a user's text must have none."""
    return BREAK.join(escape(line) for line in wrap(text, width)) or " "


def titled(text: str) -> dict:
    """An axis of numbers."""
    return {"title": {"text": text}}


def rows_axis(rows: int) -> dict:
    """A vertical axis of so many rows, the first on top."""
    return {"range": [rows - 0.5, -0.5], "ticksuffix": "  ", "zeroline": False}


def histogram(values: ArrayLike, marks: dict[str, float], axis: str, caption: str = "", name: str = "") -> Figure:
    """The share of values in equal bins, percent, with lines at marked values.

    Args:
        values: of any shape.
        marks: values by what they are.
        axis: what the values are, with their unit.
    """
    values = np.asarray(values, float).ravel()
    if np.ptp(values) <= SAME * np.abs(values).max():
        values = np.full_like(values, values[0])  # rounding makes no distribution
    bins = int(np.clip(np.sqrt(len(values)), 10, 60)) if np.ptp(values) else 1
    counts, edges = np.histogram(values, bins)
    bars = {
        "type": "bar",
        "x": ((edges[1:] + edges[:-1]) / 2).tolist(),
        "y": (counts * 100 / len(values)).tolist(),
        "width": np.diff(edges).tolist(),
        "marker": {"color": SKY},
        "showlegend": False,
        "hovertemplate": "%{x:.4g}: %{y:.1f} % of them<extra></extra>",
    }
    most, dashes = float(counts.max()) * 100 / len(values), ("solid", "dot", "dash", "dashdot")
    lines = [
        {
            "type": "scatter",
            "mode": "lines",
            "x": [value, value],
            "y": [0, most],
            "name": f"{said} {number(value)}",
            "line": {"color": BLACK, "width": 1.5, "dash": dashes[place % len(dashes)]},
            "hoverinfo": "name",
        }
        for place, (said, value) in enumerate(marks.items())
    ]
    layout = {"height": 300, "bargap": 0, "xaxis": titled(axis), "yaxis": titled("% of them")}
    return Figure([bars, *lines], layout, caption, name)


def intervals(
    names: Sequence[str],
    middles: Sequence[float],
    pairs: Sequence[tuple[float, float] | None],
    axis: str,
    caption: str = "",
    name: str = "",
    reference: float | None = None,
) -> Figure:
    """A point and its interval in a row each, the first on top.

    Args:
        pairs: low and high; None where there is no interval.
        axis: what the numbers are, with their unit.
        reference: where a line is drawn across the rows.
    """
    labels = [label(name) for name in names]
    points = {
        "type": "scatter",
        "mode": "markers",
        "x": list(middles),
        "y": list(range(len(labels))),
        "error_x": errors(middles, pairs),
        "marker": {"color": BLUE, "size": 10, "symbol": "diamond"},
        "showlegend": False,
    }
    layout = {
        "height": height(len(names), labels),
        "xaxis": titled(axis),
        "yaxis": rows_axis(len(names)) | {"tickvals": list(range(len(labels))), "ticktext": labels},
        "shapes": [] if reference is None else [_across(reference)],
    }
    return Figure([points], layout, caption, name)


def errors(middles: Sequence[float], pairs: Sequence[tuple[float, float] | None]) -> dict:
    """Error bars from intervals, where there are any."""
    pairs = [pair if pair and np.isfinite(pair).all() else None for pair in pairs]
    return {
        "type": "data",
        "symmetric": False,
        "array": [pair and max(0.0, pair[1] - middle) for middle, pair in zip(middles, pairs, strict=True)],
        "arrayminus": [pair and max(0.0, middle - pair[0]) for middle, pair in zip(middles, pairs, strict=True)],
        "thickness": 2,
        "width": 5,
        "color": BLUE,
    }


def scatter(
    groups: dict[str, dict], axes: tuple[str, str], caption: str = "", name: str = "", diagonal: bool = True
) -> Figure:
    """Points with vertical intervals, a colour and a marker a group.

    Args:
        groups: by their name, x, y, pairs (low and high of y, or None) and text, each of as many as there are points.
        axes: what x and y are, with their unit.
        diagonal: whether x and y are alike, and the line is drawn on which both are equal.
    """
    data = []
    for (said, of), (colour, symbol) in zip(groups.items(), _repeated(len(groups)), strict=True):
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": label(said, LEGEND),
                "x": list(of["x"]),
                "y": list(of["y"]),
                "text": [escape(text) for text in of["text"]],
                "error_y": errors(of["y"], of["pairs"]) | {"color": colour, "thickness": 1},
                "marker": {"color": colour, "symbol": symbol, "size": 8},
                "hovertemplate": "%{text}<br>%{x:.4g} and %{y:.4g}<extra></extra>",
            }
        )
    every = [value for of in groups.values() for value in (*of["x"], *of["y"])]
    ends = [min(every), max(every)]
    if diagonal:
        line = {"color": BLACK, "width": 1}
        data.append({"type": "scatter", "mode": "lines", "x": ends, "y": ends, "name": "equal", "line": line})
    logarithmic = {"type": "log"} if ends[0] > 0 and ends[1] > 10 * ends[0] else {}
    layout = {"height": 480, "xaxis": titled(axes[0]) | logarithmic, "yaxis": titled(axes[1]) | logarithmic}
    return Figure(data, layout, caption, name)


def lines(series: Mapping[str, tuple[Sequence, Sequence]], axes: tuple[str, str], caption: str = "", name: str = ""):
    """A line with markers a series, x and y of each by its name."""
    data = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": label(said, LEGEND),
            "x": list(x),
            "y": list(y),
            "line": {"color": colour},
            "marker": {"symbol": symbol, "size": 8},
        }
        for (said, (x, y)), (colour, symbol) in zip(series.items(), _repeated(len(series)), strict=True)
    ]
    return Figure(data, {"height": 360, "xaxis": titled(axes[0]), "yaxis": titled(axes[1])}, caption, name)


def _repeated(count: int) -> list[tuple[str, str]]:
    """Colours and markers for so many series; after seven, the markers are shifted."""
    colours, symbols = zip(*SERIES, strict=True)
    return [(colours[i % len(colours)], symbols[(i + i // len(colours)) % len(symbols)]) for i in range(count)]


def _across(value: float) -> dict:
    line = {"color": BLACK, "width": 1, "dash": "dot"}
    return {"type": "line", "x0": value, "x1": value, "yref": "paper", "y0": 0, "y1": 1, "line": line}
