"""Accuracy and loss of real and simulated runs against time, updates and samples, over one another. Panels have the AMB repository's names.

That repository's loss is of a minibatch of training data; here accuracy and loss are of the test samples that a run evaluates.
"""

from __future__ import annotations

from dataclasses import asdict
from textwrap import fill
from typing import TYPE_CHECKING, Any

from sim.base.errors import WrongSetting
from sim.base.flat import flattened
from sim.job.header import RECORDED, SIMULATED
from sim.recording.curves import Curves, curves
from sim.recording.panels import MOST_TRACES, STYLES, check_path, new_figure, save

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import numpy as np
    from matplotlib.axes import Axes

    from sim.recording.traces import Header, Trace

MEASURES = {"accuracy": "accuracy, share of the test samples", "loss": "loss, mean over the test samples"}
AGAINST = {  # a field of Curves, and its words
    "time": ("time_s", "seconds since the start of the run"),
    "step": ("step", "updates so far"),
    "samples": ("samples", "samples so far"),
}
ABREAST, LETTERS = 3, 50  # panels side by side, and letters of the legend above each
# What does not make another job of it; how long it lasts is seen, and replications may end where each reaches a target.
OF_A_RUN = {*RECORDED, "seed", "replication", "steps", "warmup"} - {"cluster"}
UNSAID = {
    "protocol",
    "world",
    "digest",
    "model",
    "law",
    "updates_per_step",
}  # in a label: said first, or elsewhere by name


def draw(
    runs: list[tuple[str, Trace]], names: Sequence[str], path: str | Path, setting: str = "--subset", told: str = ""
) -> None:
    """Draw panels of runs, each with the path of its trace: a style for each job, and a line for each replication of it.

    Args:
        names: of panels, such as accuracy_vs_time.
        setting: the option that asked for them.

    Raises:
        WrongSetting: an unknown ending, a folder that cannot be written, a run without evaluations, or too many jobs.
    """
    picture(lines(runs, setting), names, path, told)


def picture(drawn: Mapping[str, Sequence[Curves]], names: Sequence[str], path: str | Path, told: str = "") -> None:
    """Draw panels of curves: of the replications of each job, by the job's label; see `draw`."""
    check_path(path)
    columns = min(len(names), ABREAST)
    rows, wrapped = -(-len(names) // columns), [fill(label, LETTERS * columns) for label in drawn]
    figure = new_figure(0.6 + 0.2 * len("\n".join(wrapped).splitlines()) + 3.4 * rows, 1.6 + 4.0 * columns)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for name, axes in zip(names, panels, strict=False):
        _draw(axes, name, drawn)
    for axes in panels[len(names) :]:
        axes.set_visible(False)
    figure.legend(panels[0].get_legend_handles_labels()[0], wrapped, loc="outside upper left", frameon=False)
    save(figure, path, told)


def lines(runs: list[tuple[str, Trace]], setting: str = "--subset") -> dict[str, list[Curves]]:
    """The curves of the replications of each job, by the job's label.

    Raises:
        WrongSetting: a run without evaluations, or more jobs than can be told apart.
    """
    jobs: dict[str, list[tuple[str, Trace]]] = {}
    for path, trace in runs:
        if not trace.header.evaluations:
            allowed = "traces of runs that evaluated, as `real.run --test-size N --trace FILE` and `real.learn --trace FILE` record them"
            raise WrongSetting(setting, f"{path}, which has no evaluations", allowed)
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
    names = [
        name for name in dict.fromkeys(name for one in facts for name in one) if name.partition(".")[0] not in UNSAID
    ]
    differ = [name for name in names if len({one[name] for one in facts if one.get(name)}) > 1]
    found = []
    for (_, trace), one in zip(first, facts, strict=True):
        said = [f"{name.rpartition('.')[2]}={one[name]}" for name in differ if one.get(name)]
        ran = "real" if trace.header.measured else "simulated" if trace.header.world in SIMULATED else "a log"
        found.append(", ".join([f"{trace.header.protocol}, {ran} ({trace.header.world})", *said]))
    return [
        f"{label} ({path})" if found.count(label) > 1 else label for label, (path, _) in zip(found, first, strict=True)
    ]


def _draw(axes: Axes, name: str, drawn: Mapping[str, Sequence[Curves]]) -> None:
    measure, _, against = name.partition("_vs_")
    along, words = AGAINST[against]
    for (label, replications), (colour, dash) in zip(drawn.items(), STYLES, strict=False):
        style = (colour, dash, 1.4 if len(replications) == 1 else 0.7)
        for number, one in enumerate(replications):
            _line(axes, getattr(one, along), getattr(one, measure), style, "" if number else label)
    axes.set(xlabel=words, ylabel=MEASURES[measure])
    axes.spines[["top", "right"]].set_visible(False)


def _line(axes: Axes, x: np.ndarray, y: np.ndarray, style: tuple[str, Any, float], label: str) -> None:
    """A line with a point for each evaluation; without a label it is not in the legend."""
    colour, dash, width = style
    axes.plot(x, y, color=colour, linestyle=dash, linewidth=width, marker=".", markersize=3 * width, label=label)
