"""Pictures of runs: what each rank did, how step times and minibatches are distributed, and how loss and accuracy went.

`python -m sim.plot TRACE... -o FILE` makes one of recorded traces, side by side.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sim import command
from sim.answers.outcome import of_trace
from sim.base.errors import WrongSetting
from sim.base.files import check_outputs
from sim.recording import panels
from sim.recording.panels import MOST_TRACES, check_path, measured_from_s, new_figure, save
from sim.timeline import rank_name, run_name

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from sim.answers.outcome import Outcome
    from sim.recording.traces import Trace

STEPS_SHOWN = 10
LEARNING = tuple(f"{measure}_vs_{against}" for measure in panels.MEASURES for against in panels.AGAINST)
KINDS = ("ranks", "samples", "learning")
MOST_RANKS = 40  # more bars than this cannot be told apart
# Work is blue to green, moving bytes orange, waiting pale, a straggler red: distinct also to the colour-blind (Okabe, Ito).
COLOURS = {
    "sleep": "#d55e00",
    "input": "#56b4e9",
    "copy to device": "#00a0b0",
    "compute": "#0072b2",
    "pack": "#004d7a",
    "copy to host": "#5c8a8a",
    "send": "#e69f00",
    "receive": "#f0e442",
    "wait": "#e6e6e6",
    "reduce": "#009e73",
    "update": "#cc79a7",
    "evaluate": "#000000",
    "checkpoint": "#666666",
}


def parser() -> command.Parser:
    """The command line."""
    parser = command.Parser(
        prog="sim.plot",
        description="Make a picture of traces: their first steps and all step times, or loss and accuracy.",
    )
    parser.add_argument(
        "traces", nargs="+", metavar="TRACE", help="of sim.run or real.run, .parquet or .jsonl; one picture of all"
    )
    parser.add_argument(
        "--panels",
        nargs="+",
        choices=(*KINDS, *LEARNING),
        default=["ranks"],
        metavar="PANEL",
        help="ranks: activities of each rank, and step times, side by side; samples: samples of each step, compute times and "
        "all samples by time, as the AMB repository plots them; learning: accuracy and loss against time, updates and samples; or some "
        f"panels of learning, by that repository's names: {', '.join(LEARNING)}; `step` counts updates (default: ranks)",
    )
    parser.add_argument(
        "-o", "--output", required=True, metavar="FILE", help="the picture to write, .png, .pdf or .svg"
    )
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run the command."""
    from sim.recording.traces import read

    given = parser().parse_args(argv)
    check_path(given.output)
    check_outputs([("--output", given.output)], given.traces)
    kind, *others = dict.fromkeys(given.panels)
    if others and not {kind, *others} <= set(LEARNING):
        raise WrongSetting("--panels", " ".join(given.panels), f"{', '.join(KINDS)}, or some of {', '.join(LEARNING)}")
    learning = kind not in ("ranks", "samples")
    if len(given.traces) > MOST_TRACES and not learning:
        raise WrongSetting("traces", len(given.traces), f"at most {MOST_TRACES} side by side")
    runs = [(path, read(path)) for path in given.traces]
    told = panels.about(command.line("sim.plot", argv), [trace.header.seed for _, trace in runs])
    if learning:
        names = LEARNING if kind == "learning" else [kind, *others]
        panels.draw_curves(panels.curve_lines(runs), names, given.output, told)
    elif kind == "samples":
        panels.draw([(run_name(trace, path), trace, of_trace(trace)) for path, trace in runs], given.output, told)
    else:
        side_by_side([trace for _, trace in runs], given.output, told)
    return 0


def side_by_side(traces: list[Trace], path: str | Path, told: str = "") -> None:
    """Draw `gantt` of each run in a column of its own; equal lengths are equal times.

    Raises:
        WrongSetting: an unknown ending, a folder that cannot be written, or no measured step.
    """
    ranks = [min(trace.header.ranks, MOST_RANKS) for trace in traces]
    drawn = new_figure(1.6 + 0.3 * max(ranks) + 2.6, 10 if len(traces) == 1 else 8 * len(traces))
    rows = drawn.subplots(2, len(traces), height_ratios=[1.0 + 0.3 * max(ranks), 2.6], squeeze=False)
    for (above, below), trace, count in zip(rows.T, traces, ranks, strict=True):
        outcome = of_trace(trace)
        _draw_ranks(above, trace, outcome, count)
        _draw_step_times(below, outcome)
    steps, times = ([axes.get_xlim() for axes in row] for row in rows)
    longest = max(end - start for start, end in steps)
    for axes, (start, _) in zip(rows[0], steps, strict=True):
        axes.set_xlim(start, start + longest)
    for axes in rows[1]:
        axes.set_xlim(min(start for start, _ in times), max(end for _, end in times))
    save(drawn, path, told)


def _draw_ranks(axes: Axes, trace: Trace, outcome: Outcome, ranks: int) -> None:
    rows, ends_s = first_steps(trace, ranks, STEPS_SHOWN)
    start_s, header = measured_from_s(trace), trace.header
    for activity, colour in COLOURS.items():
        bars = rows[rows["activity"] == activity]
        if len(bars):
            _draw_bars(axes, bars, colour, activity)
    axes.vlines(ends_s, -0.5, ranks - 0.5, color="black", linewidth=0.6, linestyle=":")
    axes.set_xlim(start_s, ends_s[-1])
    axes.set_yticks(range(ranks), [rank_name(rank, header) for rank in range(ranks)])
    axes.set_ylim(ranks - 0.5, -0.5)  # the master on top
    others = f", {MOST_RANKS} of {header.ranks} ranks" if header.ranks > MOST_RANKS else ""
    steps = f"{len(ends_s)} of {outcome.step_s.shape[1]} measured steps"
    axes.set_title(f"{header.protocol}, {header.workload}, {header.world} world: {steps}{others}", loc="left")
    axes.set_xlabel("seconds since the start of the run; a dotted line ends a step")
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)


def first_steps(trace: Trace, ranks: int, steps: int) -> tuple[pd.DataFrame, np.ndarray]:
    """The activities of so many ranks in so many measured steps, cut to these; when each of the steps ended, seconds.

    Raises:
        WrongSetting: no step was completed after warm-up.
    """
    start_s = measured_from_s(trace)
    ends_s = start_s + np.cumsum(of_trace(trace).step_s[0, :steps])
    rows = trace.rows[trace.rows["rank"] < ranks]
    rows = rows[(rows["end_s"] > start_s) & (rows["start_s"] < ends_s[-1])]
    cut = {"start_s": rows["start_s"].clip(lower=start_s), "end_s": rows["end_s"].clip(upper=ends_s[-1])}
    return rows.assign(**cut), ends_s


def _draw_bars(axes: Axes, bars: pd.DataFrame, colour: str, label: str) -> None:
    """All bars of a colour at once: one by one, 40 ranks take ten seconds."""
    from matplotlib.collections import PolyCollection

    start_s, end_s, rank = (bars[name].to_numpy(float) for name in ("start_s", "end_s", "rank"))
    corners = [(start_s, rank - 0.4), (end_s, rank - 0.4), (end_s, rank + 0.4), (start_s, rank + 0.4)]
    axes.add_collection(
        PolyCollection(list(np.array(corners).transpose(2, 0, 1)), facecolor=colour, label=label), autolim=False
    )


def _draw_step_times(axes: Axes, outcome: Outcome) -> None:
    """Shares of the steps, in percent, by their time."""
    step_ms = np.sort(outcome.step_s.ravel() * 1e3)
    bins = int(np.clip(np.sqrt(len(step_ms)), 20, 60)) if np.ptp(step_ms) else 1
    axes.hist(step_ms, bins, weights=np.full(len(step_ms), 100 / len(step_ms)), color=COLOURS["compute"], alpha=0.7)
    p50, p95 = np.percentile(step_ms, (50, 95))
    for name, value, style in (("p50", p50, ":"), ("mean", step_ms.mean(), "-"), ("p95", p95, "--")):
        axes.axvline(value, color="black", linestyle=style, linewidth=1, label=f"{name} {value:.4g} ms")
    axes.set(xlabel="step time, milliseconds", ylabel="% of steps")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, frameon=False, handlelength=1.2, columnspacing=1.0)


if __name__ == "__main__":
    command.run("sim.plot", main)
