"""One cell, predicted and measured, and how far the two are from one another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from experiments.cells import Cell
from sim.outcome import Outcome

LEVEL = 0.9


@dataclass(frozen=True)
class Comparison:
    """One predicted cell: seconds of a mean step, predicted with its interval, measured in each repeat."""

    cell: Cell
    predicted: Outcome
    measured: list[Outcome]

    def error(self, quantity: str = "step_s") -> float:
        """Predicted over measured, less 1; `quantity` is step_s, samples or throughput."""
        real = np.mean([_mean(o, quantity) for o in self.measured])
        return float(_mean(self.predicted, quantity) / real - 1)

    @property
    def floor(self) -> float:
        """How far the repeats' mean steps fall from one another, over their mean."""
        steps = [_mean(o, "step_s") for o in self.measured]
        return float(np.ptp(steps) / np.mean(steps))

    def interval_s(self) -> tuple[float, float]:
        """Where a run's mean step falls with probability 0.9, by the spread of the simulated replications."""
        means = self.predicted.step_s.mean(axis=1)
        return tuple(np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]))

    @property
    def covered(self) -> list[bool]:
        """Whether the interval holds each repeat."""
        low_s, high_s = self.interval_s()
        return [low_s <= _mean(o, "step_s") <= high_s for o in self.measured]


def _mean(outcome: Outcome, quantity: str) -> float:
    return float(outcome.throughput().mean() if quantity == "throughput" else getattr(outcome, quantity).mean())
