"""Panels as the AMB repository plots them (plot_perf_amb.py), of several runs over each other, simulated or measured.

Samples of each step, how long workers compute in a step, and all samples by time.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sim.answers.outcome import of_trace
from sim.plot import check_path, measured_from_s, new_figure, save

if TYPE_CHECKING:
    from sim.recording.traces import Trace

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


class Series(NamedTuple):
    """The data of the panels for a run, after warm-up.

    Args:
        samples: of each step, shape (steps,).
        ends_s: when each step ended, seconds since the first one began, shape (steps,).
        compute_s: seconds that a worker computed in one of its steps, shape (workers' steps,), in no order.
    """

    samples: np.ndarray
    ends_s: np.ndarray
    compute_s: np.ndarray

    @property
    def total(self) -> np.ndarray:
        """Samples until the end of each step, shape (steps,)."""
        return np.cumsum(self.samples)


def series(trace: Trace) -> Series:
    """The data of the panels for a trace.

    Raises:
        WrongSetting: no step ended after warm-up.
    """
    outcome = of_trace(trace)
    rows = trace.rows[(trace.rows["activity"] == "compute") & (trace.rows["start_s"] >= measured_from_s(trace))]
    seconds = (rows["end_s"] - rows["start_s"]).groupby([rows["rank"], rows["step"]]).sum()
    return Series(outcome.samples[0], np.cumsum(outcome.step_s[0]), seconds.to_numpy(float))


def draw(runs: list[tuple[str, Trace]], path: str | Path) -> None:
    """Draw the panels of labelled runs.

    Raises:
        WrongSetting: an unknown ending, a folder that cannot be written, or a run without a measured step.
    """
    check_path(path)
    figure = new_figure(4.2, 13)
    steps, computing, total = figure.subplots(1, 3)
    for (label, trace), (colour, dash) in zip(runs, STYLES, strict=False):
        one, style = series(trace), {"color": colour, "linestyle": dash, "linewidth": 1.4}
        steps.plot(one.samples, label=label, **style)
        total.plot(one.ends_s, one.total, **style)
        ordered = np.sort(one.compute_s) * 1e3
        computing.step(ordered, np.arange(1, len(ordered) + 1) * 100 / max(1, len(ordered)), where="post", **style)
    steps.set(xlabel="step after warm-up", ylabel="samples a step")
    computing.set(xlabel="milliseconds that a worker computes in a step", ylabel="% of them take at most so long")
    total.set(xlabel="seconds", ylabel="samples until then")
    for axes in (steps, computing, total):
        axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper left", frameon=False, ncols=2)
    save(figure, path)
