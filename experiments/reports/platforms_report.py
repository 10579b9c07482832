"""The tables and the figure of platforms: how fast, how accurate, and whether they agree."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from experiments.kit import pages
from sim.base import interval
from sim.base.files import write_whole

if TYPE_CHECKING:
    from experiments.kit.agreement import Agreement
    from experiments.reports.platforms_rows import Row


def write(rows: list[Row], agreement: Agreement, out: Path) -> None:
    """platforms.csv, a line a platform and window; agreement.csv, a line a pair; platforms.png."""
    import pandas as pd

    tables = {
        "platforms": pd.DataFrame(line for row in rows for line in _lines(row)),
        "agreement": pd.DataFrame(_pairs(agreement)),
    }
    for name, table in tables.items():
        write_whole(
            out / f"{name}.csv",
            lambda temporary, table=table: table.to_csv(temporary, index=False, float_format="%.6g"),
        )
    figure(rows, out / "platforms.png")


def _lines(row: Row) -> list[dict]:
    """The output of seed 000: step, test accuracy, throughput; with the predicted throughput."""
    from experiments.reports.platforms_rows import every, windows

    length, speeds = every(row.step_s.shape[1]), windows(row.step_s)
    learnt = {step: accuracy for step, _, accuracy in row.learnt}
    predicted = None if row.predicted_s is None else windows(row.predicted_s)
    return [
        {
            "platform": row.name,
            "step": (window + 1) * length,
            "test_accuracy": learnt.get((window + 1) * length),
            **{f"steps_per_s_{repeat}": speed for repeat, speed in enumerate(speeds[:, window])},
            "predicted_steps_per_s": None if predicted is None else predicted[:, window].mean(),
        }
        for window in range(speeds.shape[1])
    ]


def _pairs(agreement: Agreement) -> list[dict]:
    pairs = [(*pair, apart, True) for pair, apart in agreement.distances.items()]
    pairs += [(name, "the nearest", agreement.nearest(own), False) for name, own in agreement.others.items()]
    pairs.append(("a step more", "the nearest", agreement.nearest(agreement.control), False))
    names = ("platform", "other", "distance", "must_agree")
    return [dict(zip(names, pair, strict=True)) | {"tolerance": agreement.tolerance} for pair in pairs]


def show(rows: list[Row], agreement: Agreement, excused: dict[str, str], title: str, out: Path) -> None:
    """Speed and accuracy, then agreement."""
    pages.show(_speeds(rows, title))
    pages.show(
        "Spread: of the runs, over their mean. Predicted: from runs of other batches, with the 90 % of simulated runs."
    )
    pages.show("Accuracy: on test samples, of a run of its own.", end="\n\n")
    pages.show(_agreements(agreement, excused))
    pages.show("Distance: from the furthest that must agree, else the nearest; over the variable's largest number.")
    pages.show(f"Rounding explains {agreement.tolerance:.1e}. Files: {out}")


def _speeds(rows: list[Row], title: str):
    from experiments.reports.platforms_rows import every, late, predicted_interval, windows

    steps = rows[0].step_s.shape[1]
    ends = [(i + 1) * every(steps) for i in range(steps // every(steps))]
    headings = [f"{end - every(steps)}-\n{end}" for end in ends]
    over = f"{steps // 2}-{steps}"
    table = pages.table(
        title,
        "steps/s",
        *headings,
        f"mean\n{over}",
        "\nspread",
        f"predicted\n{over}",
        "\nerror",
        f"accuracy after\n{' '.join(f'{end:4}' for end in ends)}",
    )
    table.columns[0].justify = "left"
    for row in rows:
        speed = late(row.step_s)
        predicted = ["", ""]
        if row.predicted_s is not None:
            said = late(row.predicted_s)
            low, high = predicted_interval(row)
            predicted = [f"{interval.middle(said):.1f} ({low:.1f}-{high:.1f})", f"{row.error:+.0%}"]
        accuracies = {step: accuracy for step, _, accuracy in row.learnt}
        table.add_row(
            row.name,
            *(f"{each:.1f}" for each in windows(row.step_s).mean(axis=0)),
            f"{speed.mean():.1f}",
            f"{np.ptp(speed) / speed.mean():.0%}",
            *predicted,
            " ".join(f"{accuracies[end]:.2f}" if end in accuracies else "   -" for end in ends),
        )
    return table


def _agreements(agreement: Agreement, excused: dict[str, str]):
    fault = agreement.nearest(agreement.control)
    table = pages.table(
        "Parameters after the same steps",
        "platform",
        "distance",
        "",
    )
    for column in (table.columns[0], table.columns[2]):
        column.justify = "left"
    for name in agreement.synchronous:
        apart = agreement.furthest(name)
        table.add_row(
            name, f"{apart:.1e}", "agrees" if apart <= agreement.tolerance else "DISAGREES with the furthest other"
        )
    for name, own in agreement.others.items():
        table.add_row(name, f"{agreement.nearest(own):.1e}", f"need not: {excused[name]}")
    table.add_row("a step more, planted", f"{fault:.1e}", "IS NOT SEEN" if fault <= agreement.tolerance else "is seen")
    return table


def figure(rows: list[Row], path: Path) -> None:
    """Left: steps/s of the second half, each run, and predicted. Right: accuracy by step."""
    from experiments.reports.platforms_rows import late, predicted_interval

    drawing, (left, right) = pages.figure(1, 2, (12, 5))
    places = np.arange(len(rows))
    for place, row in zip(places, rows, strict=True):
        speed = late(row.step_s)
        left.barh(place, speed.mean(), color="C0", alpha=0.4)
        left.plot(speed, np.full(len(speed), place), "o", color="C0", ms=4)
        if row.predicted_s is not None:
            said = late(row.predicted_s)
            middle, ends = interval.middle(said), np.array(predicted_interval(row))
            left.errorbar(middle, place, xerr=np.abs(ends - middle)[:, None], fmt="kx", capsize=3)
        steps, _, accuracies = zip(*row.learnt, strict=True) if row.learnt else ((), (), ())
        right.plot(steps, accuracies, "o-", ms=3, label=row.name)
    left.set_yticks(places, [row.name for row in rows])
    left.invert_yaxis()
    left.set(xlabel="steps/s, second half; x: predicted", title="Speed")
    right.set(xlabel="step", ylabel="accuracy on test samples", title="Accuracy", ylim=(0, 1))
    right.legend(frameon=False, fontsize=7)
    pages.save(drawing, path)
