"""Pictures of a run: what each rank did, and how its step times and minibatches are distributed.

`python -m sim.plots TRACE -o FILE` makes one of a recorded trace.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sim import command
from sim.answers.outcome import of_trace
from sim.base.errors import WrongSetting
from sim.base.files import check_outputs, write_whole
from sim.timeline import rank_name

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from sim.answers.outcome import Outcome
    from sim.recording.traces import Header, Trace

ENDINGS = (".png", ".pdf", ".svg")
STEPS_SHOWN = 10
MOST_RANKS = 40  # more bars than this cannot be told apart
# Work is blue to green, moving bytes orange, waiting pale, a straggler red: distinct also to the colour-blind (Okabe, Ito).
COLOURS = {
    "sleep": "#d55e00",
    "input": "#56b4e9",
    "compute": "#0072b2",
    "pack": "#004d7a",
    "send": "#e69f00",
    "receive": "#f0e442",
    "wait": "#e6e6e6",
    "reduce": "#009e73",
    "update": "#cc79a7",
    "evaluate": "#000000",
    "checkpoint": "#666666",
    "lost": "#7f0000",
    "restart": "#b3b3b3",
}


def parser() -> command.Parser:
    """The command line."""
    parser = command.Parser(
        prog="sim.plots", description="Make a picture of a trace: its first steps, and all step times."
    )
    parser.add_argument("trace", metavar="TRACE", help="of sim.run or real.run, .parquet or .jsonl")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="the picture, .png, .pdf or .svg")
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run the command."""
    from sim.recording.traces import read

    given = parser().parse_args(argv)
    check_path(given.output, "--output")
    check_outputs([("--output", given.output)], [given.trace])
    gantt(read(given.trace), given.output)
    return 0


def check_path(path: str | Path, option: str = "--plot") -> None:
    """Refuse a picture whose ending says no format, before anything is run.

    Raises:
        WrongSetting: neither .png nor .pdf nor .svg.
    """
    if Path(path).suffix not in ENDINGS:
        raise WrongSetting(option, str(path), "a name that ends in .png, .pdf or .svg")


def gantt(trace: Trace, path: str | Path) -> None:
    """Draw the first measured steps of a run, a bar a rank, above the distribution of all its step times.

    Raises:
        WrongSetting: an unknown ending, a folder that cannot be written, or no measured step.
    """
    check_path(path)
    outcome = of_trace(trace)
    ranks = min(trace.header.ranks, MOST_RANKS)
    figure = _figure(1.6 + 0.3 * ranks + 2.6)
    above, below = figure.subplots(2, height_ratios=[1.0 + 0.3 * ranks, 2.6])
    _draw_ranks(above, trace, outcome, ranks)
    _draw_step_times(below, outcome)
    _save(figure, path)


def summary(outcome: Outcome, path: str | Path, title: str) -> None:
    """Draw the distributions of step times and of samples per step, over all replications.

    Raises:
        WrongSetting: an unknown ending, or a folder that cannot be written.
    """
    check_path(path)
    figure = _figure(3.6)
    figure.suptitle(title)
    left, right = figure.subplots(1, 2)
    _draw_step_times(left, outcome)
    _draw_samples(right, outcome)
    _save(figure, path)


def _figure(height_inch: float) -> Figure:
    """A figure without pyplot, so that no window system and no global state are touched."""
    from matplotlib.figure import Figure

    return Figure(figsize=(10, height_inch), layout="constrained")


def _save(figure: Figure, path: str | Path) -> None:
    write_whole(path, lambda file: figure.savefig(file, dpi=150))


def _draw_ranks(axes: Axes, trace: Trace, outcome: Outcome, ranks: int) -> None:
    ends_s = _start_s(trace) + np.cumsum(outcome.step_s[0, :STEPS_SHOWN])
    rows = _within(trace.rows[trace.rows["rank"] < ranks], _start_s(trace), ends_s[-1])
    for activity, colour in COLOURS.items():
        bars = rows[rows["activity"] == activity]
        if len(bars):
            _draw_bars(axes, bars, colour, activity)
    axes.vlines(ends_s, -0.5, ranks - 0.5, color="black", linewidth=0.6, linestyle=":")
    axes.set_xlim(_start_s(trace), ends_s[-1])
    _name_ranks(axes, trace.header, ranks)
    axes.set_title(_title(trace, len(ends_s), outcome.step_s.shape[1]), loc="left")
    axes.set_xlabel("seconds since the start of the run; a dotted line ends a step")
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)


def _draw_bars(axes: Axes, bars: pd.DataFrame, colour: str, label: str) -> None:
    """All bars of a colour at once: one by one, 40 ranks take ten seconds."""
    from matplotlib.collections import PolyCollection

    start_s, end_s, rank = (bars[name].to_numpy(float) for name in ("start_s", "end_s", "rank"))
    corners = [(start_s, rank - 0.4), (end_s, rank - 0.4), (end_s, rank + 0.4), (start_s, rank + 0.4)]
    axes.add_collection(
        PolyCollection(list(np.array(corners).transpose(2, 0, 1)), facecolor=colour, label=label), autolim=False
    )


def _start_s(trace: Trace) -> float:
    """When the first measured step began: when the last update of the warm-up ended."""
    rows = trace.rows
    before = (rows["rank"] == 0) & (rows["activity"] == "update") & (rows["step"] == trace.header.warmup - 1)
    return float(rows.loc[before, "end_s"].max()) if before.any() else 0.0


def _within(rows: pd.DataFrame, start_s: float, end_s: float) -> pd.DataFrame:
    """The activities that overlap the window, cut to it."""
    rows = rows[(rows["end_s"] > start_s) & (rows["start_s"] < end_s)]
    return rows.assign(start_s=rows["start_s"].clip(lower=start_s), end_s=rows["end_s"].clip(upper=end_s))


def _name_ranks(axes: Axes, header: Header, ranks: int) -> None:
    axes.set_yticks(range(ranks), [rank_name(rank, header) for rank in range(ranks)])
    axes.set_ylim(ranks - 0.5, -0.5)  # the master on top


def _title(trace: Trace, shown: int, steps: int) -> str:
    header = trace.header
    others = f", {MOST_RANKS} of {header.ranks} ranks" if header.ranks > MOST_RANKS else ""
    return f"{header.protocol}, {header.workload}, {header.world} world: {shown} of {steps} measured steps{others}"


def _draw_step_times(axes: Axes, outcome: Outcome) -> None:
    step_ms = np.sort(outcome.step_s.ravel() * 1e3)
    _histogram(axes, step_ms)
    for name, value, style in _marks(step_ms):
        axes.axvline(value, color="black", linestyle=style, linewidth=1, label=f"{name} {value:.4g} ms")
    axes.set_xlabel("step time, milliseconds")
    _legend_above(axes)


def _marks(values: np.ndarray) -> list[tuple[str, float, str]]:
    """Name, value and line style of what to mark."""
    p50, p95 = np.percentile(values, (50, 95))
    return [("p50", p50, ":"), ("mean", values.mean(), "-"), ("p95", p95, "--")]


def _draw_samples(axes: Axes, outcome: Outcome) -> None:
    samples = outcome.samples.ravel()
    _histogram(axes, samples)
    axes.axvline(samples.mean(), color="black", linewidth=1, label=f"mean {samples.mean():.4g}")
    axes.set_xlabel("samples a step")
    _legend_above(axes)


def _histogram(axes: Axes, values: np.ndarray) -> None:
    """Share of the steps, in percent."""
    bins = int(np.clip(np.sqrt(len(values)), 20, 60)) if np.ptp(values) else 1
    axes.hist(values, bins, weights=np.full(len(values), 100 / len(values)), color=COLOURS["compute"], alpha=0.7)
    axes.set_ylabel("% of steps")
    axes.spines[["top", "right"]].set_visible(False)


def _legend_above(axes: Axes) -> None:
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, frameon=False, handlelength=1.2, columnspacing=1.0)


if __name__ == "__main__":
    command.run("sim.plots", main)
