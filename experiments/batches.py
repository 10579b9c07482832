"""Steps to a target at a batch, predicted by a law of other batches, beside the published ones and two rules."""

from __future__ import annotations

import math
from typing import NamedTuple

from sim.efficiency.law import Law


class Predicted(NamedTuple):
    """A batch: logarithms of predicted over published steps.

    Args:
        by: what it is predicted by, or its target, in words.
        beyond: doublings from the batches that it is predicted by.
        half_width: of the 90 % interval.
        same_samples, same_steps: of the two rules, from the largest batch that it is predicted by.
    """

    model: str
    by: str
    batch: float
    beyond: float
    error: float
    half_width: float
    same_samples: float
    same_steps: float

    @property
    def held(self) -> bool:
        """Whether the interval covers it."""
        return abs(self.error) <= self.half_width


def predicted(model: str, by: str, law: Law, last: tuple[float, float], one: tuple[float, float]) -> Predicted:
    """A batch by a law, whose largest batch is the last; both are a batch and its published steps."""
    (last_batch, last_steps), (batch, steps) = last, one
    said, same_steps = law.steps(batch), math.log(last_steps / steps)
    return Predicted(
        model,
        by,
        batch,
        law.beyond(batch),
        math.log(said.median / steps),
        math.log(said.high / said.median),
        same_steps - math.log(batch / last_batch),
        same_steps,
    )
