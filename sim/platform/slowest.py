"""The slowest of several links that differ by chance."""

from __future__ import annotations

from functools import lru_cache
from statistics import NormalDist

import numpy as np

POINTS = 2000  # of the integrals, which are then right within 1e-3


@lru_cache(maxsize=1024)
def slowest(links: int) -> tuple[float, float]:
    """Mean and standard deviation of the largest of so many independent standard normal numbers."""
    ranks = ((np.arange(POINTS) + 0.5) / POINTS) ** (1 / links)  # of the largest, in one normal distribution
    largest = np.array([*map(NormalDist().inv_cdf, ranks.tolist())])
    return float(largest.mean()), float(largest.std())
