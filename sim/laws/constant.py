"""Always the same."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from sim.base.ranges import Draw
from sim.laws.base import Law


class Constant(Law):
    """Always `value`.

    Args:
        value: of every draw.
    """

    kind: Literal["constant"] = "constant"
    value: Draw
    in_unit: ClassVar = ("value",)

    @property
    def mean(self) -> float:
        return self.value

    @property
    def sole(self) -> float:
        return self.value

    def draw(self, rng, size):
        return np.full(size, self.value)

    def quantile(self, share):
        return self.value

    def cdf(self, values):
        return (np.asarray(values) >= self.value).astype(float)

    def expected_maximum(self, draws):
        return self.value
