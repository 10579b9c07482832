"""One cell, predicted and measured, and how far the two are from one another."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from real.cells import Cell
from sim.answers import extrapolation
from sim.answers.outcome import Outcome
from sim.base import interval

if TYPE_CHECKING:
    from sim.answers.extrapolation import Unknown
    from sim.job.scenario import Scenario


@dataclass(frozen=True)
class Comparison:
    """One predicted cell: seconds of a mean step, predicted with its interval, measured in each repeat.

    Args:
        scenario: the simulated one, for its unknowns; None of a cell that no profile predicts.
    """

    cell: Cell
    predicted: Outcome
    measured: list[Outcome]
    scenario: Scenario | None = field(default=None, kw_only=True)

    def said(self, quantity: str = "step_s") -> float:
        """Predicted: the middle of the replications; `quantity` is step_s (its mean), samples or throughput."""
        return interval.middle(_of_runs(self.predicted, quantity))

    def real(self, quantity: str = "step_s") -> float:
        """Measured: the mean of the repeats."""
        return float(np.mean([_of_runs(o, quantity) for o in self.measured]))

    def error(self, quantity: str = "step_s") -> float:
        """Predicted over measured, less 1."""
        return self.said(quantity) / self.real(quantity) - 1

    @property
    def floor(self) -> float:
        """The spread of the repeats' mean steps, over their mean."""
        return float(np.ptp([_of_runs(o, "step_s") for o in self.measured]) / self.real())

    def interval_s(self) -> tuple[float, float]:
        """The interval of a run's mean step with probability 0.9, as `sim.run` has it of throughput: of runs, and wider by the unknowns."""
        unknown = [] if self.scenario is None else extrapolation.unknowns(self.scenario, self.predicted)
        return interval_s(_of_runs(self.predicted, "step_s"), unknown)

    @property
    def covered(self) -> list[bool]:
        """Whether the interval holds each repeat."""
        low_s, high_s = self.interval_s()
        return [low_s <= _of_runs(o, "step_s")[0] <= high_s for o in self.measured]


def interval_s(runs_s: np.ndarray, unknown: list[Unknown]) -> tuple[float, float]:
    """Low and high of one more run's mean step, from those of simulated runs, shape (runs,), and what is unknown of the job."""
    low_s, high_s = interval.of_runs(runs_s)
    low, high = extrapolation.widened((1 / high_s, 1 / low_s), 1 / interval.middle(runs_s), unknown)
    return 1 / high, 1 / low


def _of_runs(outcome: Outcome, quantity: str) -> np.ndarray:
    """The mean of each run, shape (runs,)."""
    return outcome.throughput() if quantity == "throughput" else getattr(outcome, quantity).mean(axis=1)
