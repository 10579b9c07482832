"""Panels as the AMB repository plots them (plot_perf_amb.py), of several runs over each other, simulated or measured.

Samples of each step, how long workers compute in a step, and all samples by time; and accuracy and loss against time, updates and
samples. That repository's loss is of a minibatch of training data; here both are of the test samples that a run evaluates.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from sim.base.errors import WrongSetting
from sim.base.files import check_ending, write_whole
from sim.base.home import need
from sim.base.tables import flattened
from sim.job.header import RECORDED, SIMULATED
from sim.recording.curves import Curves, curves
from sim.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from sim.recording.traces import Header, Trace

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
MEASURES = {"accuracy": "accuracy, share of the test samples", "loss": "loss, mean over the test samples"}
AGAINST = {  # a field of Curves, and its words
    "time": ("time_s", "seconds since the start of the run"),
    "step": ("step", "updates so far"),
    "samples": ("samples", "samples so far"),
}
ABREAST, LETTERS = 3, 50  # panels side by side, and letters of the legend above each
# What does not make another job of it; how long it lasts is seen, and replications may end where each reaches a target.
OF_A_RUN = {*RECORDED, "seed", "replication", "steps", "warmup"} - {"cluster"}
# What a label has said first, or says elsewhere by name.
UNSAID = {"protocol", "world", "digest", "model", "law", "updates_per_step"}


def check_path(path: str | Path) -> None:
    """Refuse a picture whose ending says no format, before anything is run.

    Raises:
        WrongSetting: neither .png nor .pdf nor .svg.
        MissingExtra: what draws it is not installed.
    """
    check_ending("--output", path, ENDINGS)
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
        WrongSetting: see `check_path`; or a folder that cannot be written.
    """
    check_path(path)
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


def draw_curves(drawn: Mapping[str, Sequence[Curves]], names: Sequence[str], path: str | Path, told: str = "") -> None:
    """Draw panels of the curves of jobs, by their labels: a style for each job, and a line for each replication of it.

    Args:
        names: of panels, such as accuracy_vs_time.

    Raises:
        WrongSetting: an unknown ending, or a folder that cannot be written.
    """
    columns = min(len(names), ABREAST)
    rows, wrapped = -(-len(names) // columns), [fill(label, LETTERS * columns) for label in drawn]
    figure = new_figure(0.6 + 0.2 * len("\n".join(wrapped).splitlines()) + 3.4 * rows, 1.6 + 4.0 * columns)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for name, axes in zip(names, panels, strict=False):
        _panel(axes, name, drawn)
    for axes in panels[len(names) :]:
        axes.set_visible(False)
    figure.legend(panels[0].get_legend_handles_labels()[0], wrapped, loc="outside upper left", frameon=False)
    save(figure, path, told)


def curve_lines(runs: list[tuple[str, Trace]]) -> dict[str, list[Curves]]:
    """The curves of the replications of each job, by the job's label.

    Raises:
        WrongSetting: a run without evaluations, or more jobs than can be told apart.
    """
    jobs: dict[str, list[tuple[str, Trace]]] = {}
    for path, trace in runs:
        if not trace.header.evaluations:
            allowed = "traces of runs that evaluated, as `real.run --test-size N --trace FILE` and `real.learn --trace FILE` record them"
            raise WrongSetting("--panels", f"{path}, which has no evaluations", allowed)
        jobs.setdefault(str(_facts(trace.header)), []).append((path, trace))
    if len(jobs) > MOST_TRACES:
        raise WrongSetting("traces", f"{len(jobs)} jobs", f"at most {MOST_TRACES}, each with all of its replications")
    labels = _labels([found[0] for found in jobs.values()])
    return {
        f"{label}, {len(found)} runs" if len(found) > 1 else label: [curves(trace, path) for path, trace in found]
        for label, found in zip(labels, jobs.values(), strict=True)
    }


def _facts(header: Header) -> dict[str, str]:
    """What the replications of a job have in common."""
    return dict(flattened({name: value for name, value in asdict(header).items() if name not in OF_A_RUN}))


def _labels(first: list[tuple[str, Trace]]) -> list[str]:
    """Protocol, world, and the settings that differ from those of another job; the file, too, where that is not enough."""
    facts = [_facts(trace.header) for _, trace in first]
    names = dict.fromkeys(name for one in facts for name in one if name.partition(".")[0] not in UNSAID)
    differ = [name for name in names if len({one[name] for one in facts if one.get(name)}) > 1]
    found = []
    for (_, trace), one in zip(first, facts, strict=True):
        said = [f"{name.rpartition('.')[2]}={one[name]}" for name in differ if one.get(name)]
        ran = "real" if trace.header.measured else "simulated" if trace.header.world in SIMULATED else "a log"
        found.append(", ".join([f"{trace.header.protocol}, {ran} ({trace.header.world})", *said]))
    return [
        f"{label} ({path})" if found.count(label) > 1 else label for label, (path, _) in zip(found, first, strict=True)
    ]


def _panel(axes: Axes, name: str, drawn: Mapping[str, Sequence[Curves]]) -> None:
    """A line for each replication, with a point for each evaluation; the first alone is in the legend."""
    measure, _, against = name.partition("_vs_")
    along, words = AGAINST[against]
    for (label, replications), (colour, dash) in zip(drawn.items(), STYLES, strict=False):
        width = 1.4 if len(replications) == 1 else 0.7
        style: dict[str, Any] = {"color": colour, "linestyle": dash, "linewidth": width, "markersize": 3 * width}
        for number, one in enumerate(replications):
            x, y = getattr(one, along), getattr(one, measure)
            axes.plot(x, y, marker=".", label="" if number else label, **style)
    axes.set(xlabel=words, ylabel=MEASURES[measure])
    axes.spines[["top", "right"]].set_visible(False)
