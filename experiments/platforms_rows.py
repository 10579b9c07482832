"""Results of the comparison of platforms: a row for each, steps/s by windows, and the tables of both and of their agreement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from experiments.kit import pages
from sim.answers import extrapolation
from sim.base import interval

if TYPE_CHECKING:
    from pathlib import Path

    from rich.table import Table

    from experiments.kit.agreement import Agreement

EVERY = 50  # steps between two lines of seed 000


@dataclass(frozen=True)
class Row:
    """A platform's runs.

    Args:
        step_s: seconds of each step after warm-up, shape (repeats, steps).
        learnt: step, loss and accuracy, of each evaluation.
        predicted_s: as step_s, shape (replications, steps); None if nothing was fitted.
        ends: logarithms by which a predicted step may be longer and shorter, see sim.answers.quantities.
    """

    name: str
    step_s: np.ndarray
    learnt: list[tuple[int, float, float]]
    predicted_s: np.ndarray | None = None
    ends: tuple[tuple[float, float], ...] = ()

    @property
    def error(self) -> float:
        """Predicted over measured steps/s of the second half, less 1."""
        if self.predicted_s is None:
            raise ValueError(f"{self.name}: nothing was predicted")
        return float(interval.middle(late(self.predicted_s)) / late(self.step_s).mean() - 1)


def predicted_interval(row: Row) -> tuple[float, float]:
    """Of one more run's steps/s in its second half.

    Raises:
        ValueError: nothing was predicted.
    """
    if row.predicted_s is None:
        raise ValueError(f"{row.name}: nothing was predicted")
    said = late(row.predicted_s)
    unknown = [extrapolation.Unknown(*off) for off in row.ends]
    return extrapolation.widened(interval.of_runs(said), interval.middle(said), unknown)


def every(steps: int) -> int:
    """Steps of a window: 50, or in a short run half of it."""
    return min(EVERY, steps // 2)


def windows(step_s: np.ndarray) -> np.ndarray:
    """Steps/s in each window, shape (runs, windows), of seconds of each step, shape (runs, steps); a rest is left out."""
    runs, steps = step_s.shape
    length = every(steps)
    whole = steps // length
    return length / step_s[:, : whole * length].reshape(runs, whole, length).sum(axis=2)


def late(step_s: np.ndarray) -> np.ndarray:
    """Steps/s of each run over its second half, shape (runs,), of seconds of each step, shape (runs, steps)."""
    half = step_s[:, step_s.shape[1] // 2 :]
    return half.shape[1] / half.sum(axis=1)


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


def _speeds(rows: list[Row], title: str) -> Table:
    steps = rows[0].step_s.shape[1]
    ends = [(i + 1) * every(steps) for i in range(steps // every(steps))]
    headings = [f"{end - every(steps)}-\n{end}" for end in ends]
    over = f"{steps // 2}-{steps}"
    headings += [f"mean\n{over}", "\nspread", f"predicted\n{over}", "\nerror"]
    table = pages.table(title, "steps/s", *headings, f"accuracy after\n{' '.join(f'{end:4}' for end in ends)}")
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


def _agreements(agreement: Agreement, excused: dict[str, str]) -> Table:
    fault = agreement.nearest(agreement.control)
    table = pages.table("Parameters after the same steps", "platform", "distance", "")
    table.columns[0].justify = table.columns[2].justify = "left"
    for name in agreement.synchronous:
        apart = agreement.furthest(name)
        table.add_row(
            name, f"{apart:.1e}", "agrees" if apart <= agreement.tolerance else "DISAGREES with the furthest other"
        )
    for name, own in agreement.others.items():
        table.add_row(name, f"{agreement.nearest(own):.1e}", f"need not: {excused[name]}")
    table.add_row("a step more, planted", f"{fault:.1e}", "IS NOT SEEN" if fault <= agreement.tolerance else "is seen")
    return table
