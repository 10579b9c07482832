"""Kinds of variation: ranks that are slow throughout, stragglers that last for some steps, or noise that is new in each step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

PERMUTATIONS = 199
SIGNIFICANT = 0.01
FEWEST_STEPS = 5  # of each rank
CLEARLY_SLOW = 0.02  # over the median rank


class Varies(NamedTuple):
    """The variation of values by rank and step.

    Args:
        persistence: autocorrelation of a rank's values from one step to the next, less its mean.
        persistence_p: probability of at least this much if steps were independent; by permutation of each rank's steps.
        ratios: each rank's geometric mean, over the median rank's; by rank.
        ranks_p: probability of such differences between ranks if all were alike (F test).
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
        if self.ranks_p >= SIGNIFICANT:
            return {}
        spread = 3 * 1.4826 * np.median(np.abs(np.log(list(self.ratios.values()))))
        least = max(np.log1p(CLEARLY_SLOW), min(spread, np.log(2)))
        return {rank: ratio for rank, ratio in self.ratios.items() if np.log(ratio) > least}


def varies(values: dict[int, np.ndarray], seed: int = 0) -> Varies:
    """The variation of values between ranks and steps, on a logarithmic scale.

    The F test of one-way analysis of variance takes values to be independent. Where they are correlated, its F is divided by
    (1 + r) / (1 - r), the factor by which correlation r from step to step widens the variance of a mean.

    Args:
        values: of each rank in the order of its steps, above 0.
    """
    from scipy.stats import f_oneway

    logs = {rank: np.log(series) for rank, series in values.items()}
    persistence, p_value = _persistence([series - series.mean() for series in logs.values()], seed)
    means = np.array([series.mean() for series in logs.values()])
    ratios = dict(zip(logs, np.exp(means - np.median(means)).tolist(), strict=True))
    if len(logs) < 2 or not any(np.ptp(series) for series in logs.values()):
        return Varies(persistence, p_value, ratios, 0.0 if len(set(ratios.values())) > 1 else 1.0)
    found = float(f_oneway(*logs.values()).statistic)
    return Varies(persistence, p_value, ratios, _p_of(found, persistence, len(logs), sum(map(len, logs.values()))))


def _p_of(found: float, persistence: float, ranks: int, count: int) -> float:
    from scipy.stats import f

    correlated = float(np.clip(persistence, 0.0, 0.99))
    widened, freedom = (
        (1 + correlated) / (1 - correlated),
        max(1.0, (count - ranks) * (1 - correlated) / (1 + correlated)),
    )
    return float(f.sf(found / widened, ranks - 1, freedom))


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
