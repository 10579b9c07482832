"""A few steps of a trace: a bar for everything that each rank does, and how many seconds of a step each activity takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from sim.base.errors import RunFailed, WrongSetting
from sim.plot import COLOURS, MOST_RANKS, first_steps
from sim.recording.lanes import MAIN, lanes
from sim.reports.figures import height, rows_axis, titled
from sim.reports.parts import Figure, Section, Text
from sim.timeline import rank_name

if TYPE_CHECKING:
    import pandas as pd

    from sim.answers.result import Result
    from sim.job.scenario import Scenario
    from sim.recording.traces import Header, Trace

STEPS = 4
MOST_BARS = 6000  # with more of them a browser takes seconds to draw
PATTERNS = {"sleep": "/", "input": ".", "pack": "+", "send": "\\", "receive": "x", "reduce": "-", "update": "|"}


def sections(trace: Trace) -> list[Section]:
    """A rank's time by activity, and its first steps.

    Raises:
        WrongSetting: no step ended after warm-up.
    """
    ranks = min(trace.header.ranks, MOST_RANKS)
    rows, ends_s = first_steps(trace, ranks, STEPS)
    start_s, steps = float(rows["start_s"].min()), len(ends_s)
    while len(rows) > MOST_BARS and steps > 1:
        steps = max(1, steps * MOST_BARS // len(rows))
        rows, ends_s = first_steps(trace, ranks, steps)
    others = f" The first {ranks} of {trace.header.ranks} ranks." if ranks < trace.header.ranks else ""
    said = f"The first {f'{steps} measured steps' if steps > 1 else 'measured step'} of run {trace.header.replication}.{others}"
    return [
        Section("Where a rank's time goes", [_shares(rows, ends_s, trace.header, ranks, said)]),
        Section("The first steps", [_lanes(rows, ends_s, start_s, trace.header, ranks, said)]),
    ]


def of(found: Result, simulate: Callable[[Scenario], Result]) -> list[Section]:
    """The sections of a result: of its trace if it has one, else of its first steps, simulated for this.

    Args:
        simulate: makes a result with a trace of a job.
    """
    few = replace(found.scenario, steps=min(STEPS, found.scenario.steps))
    try:
        return sections(found.trace or simulate(few).kept_trace)
    except (WrongSetting, RunFailed) as why:
        return [Section("The first steps", [Text(f"Not drawn: {why}", "note")])]


def _shares(rows: pd.DataFrame, ends_s: np.ndarray, header: Header, ranks: int, said: str) -> Figure:
    took_s = (rows["end_s"] - rows["start_s"]).groupby([rows["activity"], rows["rank"]]).sum() / len(ends_s)
    names = _names(header, ranks)
    data = [
        _bar(activity)
        | {
            "x": [float(took_s.get((activity, rank), 0.0)) * 1e3 for rank in range(ranks)],
            "y": names,
            "hovertemplate": f"%{{y}}: {activity} %{{x:.4g}} ms a step<extra></extra>",
        }
        for activity in COLOURS
        if activity in took_s.index.get_level_values(0)
    ]
    layout = _layout(ranks) | {"barmode": "stack", "xaxis": titled("milliseconds a step")}
    layout["yaxis"] |= {"type": "category"}
    caption = f"Mean of the steps below. Activities that go on at the same time are all counted. {said}"
    return Figure(data, layout, caption, "shares")


def _lanes(rows: pd.DataFrame, ends_s: np.ndarray, start_s: float, header: Header, ranks: int, said: str) -> Figure:
    whole = {name: (rows[f"{name}_s"] * 1e9).round().astype("int64") for name in ("start", "end")}
    rows = rows.assign(lane=lanes(rows.assign(**whole)))
    if len(rows) > MOST_BARS:
        said += f" The {MOST_BARS:,} longest of {len(rows):,} activities."
        rows = rows.loc[(rows["end_s"] - rows["start_s"]).nlargest(MOST_BARS).index]
    most = rows.groupby("rank")["lane"].max().reindex(range(ranks), fill_value=0).to_numpy()
    data = []
    for activity in COLOURS:
        bars = rows[rows["activity"] == activity]
        if bars.empty:
            continue
        rank, lane = bars["rank"].to_numpy(int), bars["lane"].to_numpy(int)
        thin = 0.8 / (1 + most[rank])
        data.append(
            _bar(activity)
            | {
                "base": ((bars["start_s"] - start_s) * 1e3).tolist(),
                "x": ((bars["end_s"] - bars["start_s"]) * 1e3).tolist(),
                "y": (rank - 0.4 + (lane - MAIN + 0.5) * thin).tolist(),
                "width": thin.tolist(),
                "customdata": bars[["step", "samples", "bytes"]].to_numpy().tolist(),
                "hovertemplate": f"{activity} %{{x:.4g}} ms<br>step %{{customdata[0]}}, %{{customdata[1]}} samples, "
                "%{customdata[2]} bytes<extra></extra>",
            }
        )
    layout = _layout(ranks) | {"barmode": "overlay", "xaxis": titled("milliseconds")}
    layout["yaxis"] |= {"tickvals": list(range(ranks)), "ticktext": _names(header, ranks)}
    layout["shapes"] = [_end(float(end_s - start_s) * 1e3) for end_s in ends_s]
    caption = f"{said} A dotted line ends a step. Thinner bars go on beside what a rank does itself. Drag to zoom, double-click to go back."
    return Figure(data, layout, caption, "steps")


def _bar(activity: str) -> dict:
    fill = {
        "shape": PATTERNS.get(activity, ""),
        "size": 6,
        "solidity": 0.25,
        "fillmode": "overlay",
        "fgcolor": "#ffffff",
    }
    if activity == "receive":
        fill["fgcolor"] = "#000000"
    marker = {"color": COLOURS[activity], "pattern": fill, "line": {"width": 0}}
    return {"type": "bar", "orientation": "h", "name": activity, "marker": marker}


def _layout(ranks: int) -> dict:
    return {"height": height(ranks), "yaxis": rows_axis(ranks), "bargap": 0.2}


def _names(header: Header, ranks: int) -> list[str]:
    return [rank_name(rank, header) for rank in range(ranks)]


def _end(value: float) -> dict:
    line = {"color": "#000000", "width": 1, "dash": "dot"}
    return {"type": "line", "x0": value, "x1": value, "yref": "paper", "y0": 0, "y1": 1, "line": line}
