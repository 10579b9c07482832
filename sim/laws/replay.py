"""Recorded seconds, or factors, of ranks and steps."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field, model_validator

from sim.base.ranges import Draw
from sim.laws.base import Stragglers
from sim.laws.empirical import MOST_VALUES
from sim.laws.steps import NOTHING, ONES, Steps


class Replay(Stragglers):
    """Recorded seconds or factors of ranks, step by step.

    The first worker has the first row. Further workers than rows begin with the first row again, and further steps with the
    first step. Each replication goes on where the one before it ended. A text that sleeps several times in a step sleeps the same
    seconds each time.

    Args:
        values: shape (ranks, steps). Files name a table instead: file = "steps.csv", with columns rank, step and seconds or
            factor; or a trace, whose sleeps are replayed.
        unit: seconds of sleep, or factor on computing.
    """

    kind: Literal["replay"] = "replay"
    values: tuple[tuple[Draw, ...], ...] = Field(min_length=1, max_length=MOST_VALUES)
    unit: Literal["seconds", "factor"] = "seconds"

    @model_validator(mode="after")
    def _as_many_steps_each(self):
        lengths = {len(row) for row in self.values}
        if len(lengths) != 1 or not max(lengths):
            raise ValueError("as many steps, and at least one, of each rank")
        if len(self.values) * max(lengths) > MOST_VALUES:
            raise ValueError(f"at most {MOST_VALUES:,} values, ranks times steps")
        return self

    @property
    def mean(self) -> float:
        return float(np.mean(self.values)) if self.unit == "seconds" else 0.0

    @property
    def mean_factor(self) -> float:
        return float(np.mean(self.values)) if self.unit == "factor" else 1.0

    @property
    def slows_computing(self) -> bool:
        return self.unit == "factor"

    def sleeps(self, scenario, random, worker):
        return self._steps(scenario, random, worker) if self.unit == "seconds" else NOTHING

    def factors(self, scenario, random, worker):
        return self._steps(scenario, random, worker) if self.unit == "factor" else ONES

    def _steps(self, scenario, random, worker: int) -> Steps:
        row = np.array(self.values[(worker - 1) % len(self.values)])
        begun = random.replication * scenario.rounds % len(row)
        return Steps(lambda count: np.resize(np.roll(row, -begun), count))

    def scaled(self, factor):
        if self.unit == "factor":
            raise ValueError("no factor of a law that is a factor already")
        return Replay(values=tuple(tuple(value * factor for value in row) for row in self.values))

    def notes(self, scenario):
        ranks, steps = len(self.values), len(self.values[0])
        said = []
        if scenario.workers > ranks:
            said.append(f"{scenario.workers} workers begin with the first of {ranks} recorded ranks again")
        if scenario.rounds > steps:
            said.append(f"{scenario.rounds} steps (warm-up too) begin with the first of {steps} recorded steps again")
        return [f"replayed stragglers wrap around: {', and '.join(said)}"] if said else []

    def unreal(self):
        return "replayed seconds: a real rank's computing cannot be slowed down by a factor" * (self.unit == "factor")
