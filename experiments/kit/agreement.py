"""Whether platforms that begin with one set of parameters, and take the same minibatches, end with one: but for rounding."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from sim.recording.traces import Trace

UNIT_ROUNDOFF = 2.0**-24  # of float32, to nearest
# Roundings of an update after the sum: divide by the samples, decay the weights, times the rate, subtract.
OPERATIONS = 4
MAGNIFIED = 1.1  # largest factor of a step on a difference that earlier steps left: |1 - rate * curvature|

Parameters = dict[str, np.ndarray]  # by variable


def tolerance(ranks: int, steps: int) -> float:
    """The largest distance between the final parameters of two platforms, over the largest number of a variable.

    Platforms compute a minibatch's gradient with the same kernels; they scale it before they add up n ranks' or after, and add
    in different orders. A step changes a variable by less than its scale. Each of n + 4 roundings in a step, on both sides, is
    therefore at most u of that scale. The differences of k steps add up, each magnified by the steps that follow it: 2 u (n + 4) (1 +
    m + ... + m^(k-1)); Higham, "Accuracy and Stability of Numerical Algorithms", 2002, section 4.2. The bound is for a few tens of
    steps of plain gradient descent: for more steps it soon allows everything.
    """
    return 2 * UNIT_ROUNDOFF * (ranks + OPERATIONS) * sum(MAGNIFIED**step for step in range(steps))


def distance(one: Parameters, other: Parameters) -> float:
    """The largest difference of two numbers over the largest number of their variable, of all variables.

    Infinite if they are not the same variables, or not all numbers.
    """
    if {name: values.shape for name, values in one.items()} != {name: values.shape for name, values in other.items()}:
        return float("inf")
    return max(_apart(one[name], other[name]) for name in one)


def _apart(one: np.ndarray, other: np.ndarray) -> float:
    if not (np.isfinite(one).all() and np.isfinite(other).all()):
        return float("inf")
    apart, scale = np.abs(one - other).max(), max(np.abs(one).max(), np.abs(other).max())
    return 0.0 if apart == 0 else float(apart / scale)


def unequal_updates(trace: Trace) -> int:
    """Updates of rank 0 that were not made of one gradient from each worker; none where no rank serves others."""
    workers, added, unequal = list(range(trace.header.servers, trace.header.ranks)), [], 0
    if trace.header.servers == 0:
        return 0
    mine = trace.rows[(trace.rows["rank"] == 0) & trace.rows["activity"].isin(["reduce", "update"])]
    for row in sorted(mine.itertuples(), key=lambda row: row.end_s if row.activity == "update" else row.start_s):
        if row.activity == "reduce":
            added.append(row.peer)
            continue
        unequal += sorted(added) != workers
        added = []
    return unequal


@dataclass(frozen=True)
class Agreement:
    """The parameters with which platforms ended after the same steps.

    Args:
        synchronous: parameters by platform, of those that must agree.
        others: of those that need not.
        control: of a run with a fault, which the check must see.
        tolerance: of distances.
    """

    synchronous: dict[str, Parameters]
    others: dict[str, Parameters]
    control: Parameters
    tolerance: float

    @cached_property
    def distances(self) -> dict[tuple[str, str], float]:
        """The distance of each pair of platforms that must agree."""
        of = self.synchronous
        return {(one, other): distance(of[one], of[other]) for one, other in combinations(of, 2)}

    def furthest(self, name: str) -> float:
        """The distance of a platform that must agree from the furthest other one."""
        return max((apart for pair, apart in self.distances.items() if name in pair), default=0.0)

    def nearest(self, parameters: Parameters) -> float:
        """The distance of other parameters from the nearest platform."""
        return min((distance(parameters, own) for own in self.synchronous.values()), default=float("inf"))

    def failures(self) -> list[str]:
        """The disagreements, a line each; empty if all agree and the planted fault was seen."""
        said = [
            f"{one} and {other} are {apart:.1e} apart, where rounding explains {self.tolerance:.1e}"
            for (one, other), apart in self.distances.items()
            if not apart <= self.tolerance
        ]
        if self.nearest(self.control) <= self.tolerance:
            said.append(f"the planted fault makes {self.nearest(self.control):.1e}, which passes for rounding")
        return said
