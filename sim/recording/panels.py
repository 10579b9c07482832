"""Panels as the AMB repository plots them (plot_perf_amb.py), of several runs over each other, simulated or measured.

Samples of each step, how long workers compute in a step, and all samples by time.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sim.base.extras import need
from sim.base.files import check_ending, write_whole
from sim.version import VERSION

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sim.recording.traces import Trace

ENDINGS = (".png", ".pdf", ".svg")
MOST_TRACES = 8
# Okabe and Ito's colours, and a dash each, for readers and printers without colours.
STYLES = (
    ("#0072b2", "-"),
    ("#d55e00", "--"),
    ("#009e73", "-."),
    ("#cc79a7", ":"),
    ("#e69f00", (0, (5, 1))),
    ("#56b4e9", (0, (3, 1, 1, 1))),
    ("#000000", (0, (1, 1))),
    ("#666666", (0, (8, 2))),
)


def check_path(path: str | Path, option: str = "--plot") -> None:
    """Refuse a picture whose ending says no format, before anything is run.

    Raises:
        WrongSetting: neither .png nor .pdf nor .svg.
        MissingExtra: what draws it is not installed.
    """
    check_ending(option, path, ENDINGS)
    need("matplotlib")


def new_figure(height_inch: float, width_inch: float = 10) -> Figure:
    """A figure without pyplot, so that no window system and no global state are touched."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width_inch, height_inch), layout="constrained")


def about(line: str, seeds: Iterable[int]) -> str:
    """What a picture says of itself: the command line, and the random seeds of its runs."""
    return f"{line}; random seed {', '.join(map(str, sorted(set(seeds))))}"


def save(figure: Figure, path: str | Path, told: str = "") -> None:
    """Write the picture whole, or not at all; `told` and the version are in it. Letters of a .pdf are TrueType, as publishers want them.

    Raises:
        WrongSetting: a folder that cannot be written.
    """
    from matplotlib import rc_context

    metadata = {"Creator": f"anytime-trainsim {VERSION}"}
    metadata |= {"Subject" if Path(path).suffix == ".pdf" else "Description": told} if told else {}
    with rc_context({"pdf.fonttype": 42}):
        write_whole(path, lambda file: figure.savefig(file, dpi=150, metadata=metadata))


def measured_from_s(trace: Trace) -> float:
    """When the first measured step began: when the last update of the warm-up ended."""
    rows = trace.rows
    before = (rows["rank"] == 0) & (rows["activity"] == "update") & (rows["step"] == trace.header.warmup - 1)
    return float(rows.loc[before, "end_s"].max()) if before.any() else 0.0


def computed_s(trace: Trace) -> np.ndarray:
    """Seconds that a worker computed in one of its steps after warm-up, ascending; shape (workers' steps,)."""
    rows = trace.rows[(trace.rows["activity"] == "compute") & (trace.rows["start_s"] >= measured_from_s(trace))]
    seconds = (rows["end_s"] - rows["start_s"]).groupby([rows["rank"], rows["step"]]).sum()
    return np.sort(seconds.to_numpy(float))


def draw(runs: list[tuple[str, Trace, Any]], path: str | Path, told: str = "") -> None:
    """Draw the panels of labelled runs, each with its trace and its outcome.

    Raises:
        WrongSetting: an unknown ending, or a folder that cannot be written.
    """
    check_path(path)
    figure = new_figure(4.2, 13)
    steps, computing, total = figure.subplots(1, 3)
    for (label, trace, outcome), (colour, dash) in zip(runs, STYLES, strict=False):
        samples, style = outcome.samples[0], {"color": colour, "linestyle": dash, "linewidth": 1.4}
        steps.plot(samples, label=label, **style)
        total.plot(np.cumsum(outcome.step_s[0]), np.cumsum(samples), **style)
        ordered = computed_s(trace) * 1e3
        computing.step(ordered, np.arange(1, len(ordered) + 1) * 100 / max(1, len(ordered)), where="post", **style)
    steps.set(xlabel="step after warm-up", ylabel="samples a step")
    computing.set(xlabel="milliseconds that a worker computes in a step", ylabel="% of them take at most so long")
    total.set(xlabel="seconds", ylabel="samples until then")
    for axes in (steps, computing, total):
        axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper left", frameon=False, ncols=2)
    save(figure, path, told)
