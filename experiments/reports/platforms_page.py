"""The page of the platforms' comparison: how fast, how accurate, and whether they agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from experiments.reports.platforms_rows import every, late, predicted_interval, windows
from sim.answers.summary import number
from sim.base import interval
from sim.reports import Cell, Code, Figure, Section, Table, Text, page
from sim.reports.figures import BLUE, ORANGE, errors, height, label, lines, rows_axis, titled
from sim.reports.parts import Part

if TYPE_CHECKING:
    from experiments.kit.agreement import Agreement
    from experiments.reports.platforms_rows import Row

SCHEMA = "platforms/1"


def platforms_page(title: str, rows: Sequence[Row], agreement: Agreement, excused: dict[str, str], command: str) -> str:
    """The HTML of the comparison.

    Args:
        excused: why a platform need not agree, by its name.
        command: that makes the page.
    """
    told = [_told(row) for row in rows]
    agreed = _agreement(agreement, excused)
    data = {"schema": SCHEMA, "platforms": told, "agreement": agreed}
    fastest = max(told, key=lambda one: one["steps_per_s"])
    off = [abs(one["error"]) for one in told if one["error"] is not None]
    said = f"{fastest['platform']} is the fastest: {number(fastest['steps_per_s'])} steps/s."
    if off:
        said += f" Predictions are {np.mean(off):.0%} off on average, {max(off):.0%} at most."
    agree = "; ".join(agreement.failures()) or "Those that must agree end with the same parameters, but for rounding."
    answer: list[Part] = [Text(said, "answer"), Text(agree, "note" if agreement.failures() else "plain"), _speeds(told)]
    sections = [
        Section("The answer", [*answer, _figure(told)]),
        Section("On the way", [_windows(rows)]),
        *([Section("Accuracy", [_accuracy(rows)])] if any(row.learnt for row in rows) else []),
        Section("Parameters after the same steps", [_agreements(agreed, agreement)]),
        Section("Reproduce it", [Code(command)]),
    ]
    return page(title, sections, data)


def _told(row: Row) -> dict:
    speed, said = late(row.step_s), None if row.predicted_s is None else late(row.predicted_s)
    return {
        "platform": row.name,
        "steps_per_s": float(speed.mean()),
        "runs": speed.tolist(),
        "predicted_steps_per_s": None if said is None else interval.middle(said),
        "interval": None if said is None else list(predicted_interval(row)),
        "error": None if said is None else row.error,
        "accuracy": {str(step): accuracy for step, _, accuracy in row.learnt},
    }


def _speeds(told: list[dict]) -> Table:
    headings = ("steps/s of the second half", "measured", "predicted", "at least", "at most", "error")
    return Table(
        headings,
        [
            (
                one["platform"],
                _number(one["steps_per_s"]),
                *map(_number, [one["predicted_steps_per_s"], *(one["interval"] or [None, None])]),
                "" if one["error"] is None else Cell(f"{one['error']:+.0%}", one["error"]),
            )
            for one in told
        ],
        "speeds",
    )


def _figure(told: list[dict]) -> Figure:
    known = [place for place, one in enumerate(told) if one["interval"]]
    middles = [told[place]["predicted_steps_per_s"] for place in known]
    data = [
        {
            "type": "scatter",
            "mode": "markers",
            "name": "measured, each run",
            "x": [speed for one in told for speed in one["runs"]],
            "y": [place for place, one in enumerate(told) for _ in one["runs"]],
            "marker": {"color": ORANGE, "size": 9, "line": {"width": 1, "color": "#000000"}},
        },
        {
            "type": "scatter",
            "mode": "markers",
            "name": "predicted, with its 90 % interval",
            "x": middles,
            "y": known,
            "error_x": errors(middles, [tuple(told[place]["interval"]) for place in known]),
            "marker": {"color": BLUE, "symbol": "diamond", "size": 9},
        },
    ]
    names = {"tickvals": list(range(len(told))), "ticktext": [label(one["platform"]) for one in told]}
    layout = {"height": height(2 * len(told)), "xaxis": titled("steps/s"), "yaxis": rows_axis(len(told)) | names}
    return Figure(data, layout, "Predicted from runs of other batches.", "speeds_figure")


def _windows(rows: Sequence[Row]) -> Table:
    length = every(rows[0].step_s.shape[1])
    speeds = [windows(row.step_s).mean(axis=0) for row in rows]
    headings = ["steps/s", *(f"{i * length}-{(i + 1) * length}" for i in range(len(speeds[0])))]
    cells = [(row.name, *map(_number, of.tolist())) for row, of in zip(rows, speeds, strict=True)]
    return Table(headings, cells, "windows")


def _accuracy(rows: Sequence[Row]) -> Figure:
    series = {}
    for row in rows:
        if row.learnt:
            steps, _, accuracies = zip(*row.learnt, strict=True)
            series[row.name] = (steps, accuracies)
    return lines(series, ("step", "accuracy on test samples"), "Each of a run of its own.", "accuracy")


def _agreement(agreement: Agreement, excused: dict[str, str]) -> list[dict]:
    must = [
        {"platform": name, "distance": _finite(agreement.furthest(name)), "why_not": None}
        for name in agreement.synchronous
    ]
    others = [
        {"platform": name, "distance": _finite(agreement.nearest(own)), "why_not": excused[name]}
        for name, own in agreement.others.items()
    ]
    planted = {
        "platform": "a step more, planted",
        "distance": _finite(agreement.nearest(agreement.control)),
        "why_not": "a fault",
    }
    return [*must, *others, planted]


def _agreements(told: list[dict], agreement: Agreement) -> Table:
    headings = ("platform", f"distance (rounding explains {agreement.tolerance:.1e})", "need not agree")
    rows = [(one["platform"], _far(one["distance"]), one["why_not"] or "") for one in told]
    return Table(headings, rows, "agreement", (0, 2))


def _finite(distance: float) -> float | None:
    return distance if np.isfinite(distance) else None


def _far(distance: float | None) -> Cell:
    return Cell("infinite" if distance is None else f"{distance:.1e}", distance)


def _number(value: float | None) -> str | Cell:
    return "" if value is None else Cell(number(value), value)
