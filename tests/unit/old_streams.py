"""Random numbers as they were drawn when `recorded.csv` was made: each rank had a generator of its own, in blocks of 256."""

from __future__ import annotations

import numpy as np

from sim.laws import FoldedMixture, Law
from sim.randomness import generator

BLOCK = 256


def draw(law: Law, rng: np.random.Generator, count: int) -> np.ndarray:
    """A law's draws, shape (count,). A mixture's shares and normal numbers followed one another in the generator."""
    if not isinstance(law, FoldedMixture):
        return law.draw(rng, count)
    edges = np.cumsum([c.weight for c in law.components])[:-1]
    which = np.searchsorted(edges, rng.random(count), side="right")
    means_s, stds_s = (np.array([getattr(c, name) for c in law.components])[which] for name in ("mean_s", "std_s"))
    return np.minimum(law.limit_s, np.abs(means_s + stds_s * rng.standard_normal(count)))


class OldStream:
    """In place of sim.randomness.Stream."""

    def __init__(self, law: Law, seed: int, replication: int, rank: int, purpose: str, call: int = 0):
        assert call == 0  # a step had one sleep
        self.sole, self._law, self._drawn = law.sole, law, np.empty(0)
        self._rng = generator(seed, replication, rank, purpose)

    def first(self, count: int) -> np.ndarray:
        if self.sole is not None:
            return np.full(count, self.sole)
        while len(self._drawn) < count:
            self._drawn = np.concatenate([self._drawn, draw(self._law, self._rng, BLOCK)])
        return self._drawn[:count]

    def __getitem__(self, index: int) -> float:
        return float(self.first(index + 1)[index])
