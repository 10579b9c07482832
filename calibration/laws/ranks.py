"""Kinds of variation: ranks that are slow throughout, stragglers that last for some steps, or noise that is new in each step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from calibration.evidence import host_speeds

PERMUTATIONS = 199
SIGNIFICANT = 0.01
FEWEST_STEPS = 5  # of each rank


class Varies(NamedTuple):
    """The variation of values by rank and step.

    Args:
        persistence: autocorrelation of a rank's values from one step to the next, less its mean.
        persistence_p: probability of at least this much if steps were independent; by permutation of each rank's steps.
        ratios: each rank's median, over the median rank's; by rank.
        ranks_p: probability of such differences between ranks if all were alike (calibration.evidence.host_speeds).
    """

    persistence: float
    persistence_p: float
    ratios: dict[int, float]
    ranks_p: float

    @property
    def persists(self) -> bool:
        """Whether stragglers last."""
        return self.persistence_p < SIGNIFICANT and self.persistence > 0

    @property
    def slow(self) -> dict[int, float]:
        """Ranks that are slow throughout, and how slow; empty if that may be chance."""
        slow = host_speeds.are_slow(np.array([*self.ratios.values()]), self.ranks_p)
        return {rank: ratio for (rank, ratio), is_slow in zip(self.ratios.items(), slow, strict=True) if is_slow}


def varies(values: dict[int, np.ndarray], seed: int = 0) -> Varies:
    """The variation of values between ranks and steps, on a logarithmic scale.

    Args:
        values: of each rank in the order of its steps, above 0.
    """
    logs = [np.log(series) for series in values.values()]
    times, ranks_p = host_speeds.of_ranks(list(values.values()))
    persistence, p_value = _persistence([series - series.mean() for series in logs], seed)
    return Varies(persistence, p_value, dict(zip(values, times.tolist(), strict=True)), ranks_p)


def _persistence(residuals: list[np.ndarray], seed: int) -> tuple[float, float]:
    """The autocorrelation at lag 1, all ranks together, and its p value."""
    total = sum((series**2).sum() for series in residuals)
    if not total or max(map(len, residuals)) < 2:
        return 0.0, 1.0
    rng = np.random.default_rng(seed)

    def correlation(all_of_them: list[np.ndarray]) -> float:
        return sum((series[1:] * series[:-1]).sum() for series in all_of_them) / total

    found = correlation(residuals)
    shuffled = [correlation([rng.permutation(series) for series in residuals]) for _ in range(PERMUTATIONS)]
    return float(found), (1 + sum(one >= found for one in shuffled)) / (1 + PERMUTATIONS)
