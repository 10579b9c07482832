"""One stream of draws a (replication, rank, purpose): two worlds, two protocols, two cluster sizes share their luck."""

from __future__ import annotations

import secrets
from functools import cached_property

import numpy as np

from sim.laws import Law

BLOCK = 256  # draws are made in blocks of this size, so the i-th is the same however many are asked for
PURPOSES = ("sleep", "noise", "run", "data", "model", "update", "delay", "share", "error", "input", "behind", "nap")


def fresh_seed() -> int:
    """A seed that nobody chose."""
    return secrets.randbits(32)


def generator(seed: int, replication: int, rank: int, purpose: str) -> np.random.Generator:
    """The generator of one stream; equal arguments give equal draws in every world."""
    key = (replication, rank, PURPOSES.index(purpose))
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


MOST_KEPT = 4096  # blocks, of 2 KiB
_kept: dict[tuple, tuple[Law, np.ndarray]] = {}


def first_block(law: Law, *key) -> np.ndarray:
    """The first draws of a stream, shape (BLOCK,); kept for scenarios that have the same ones, as most of a sweep have.

    Args:
        key: see `generator`.
    """
    known = (id(law), *key)  # a law that is kept is still there, so no other one has its id
    found = _kept.get(known)
    if found is None:
        if len(_kept) >= MOST_KEPT:
            _kept.clear()
        found = _kept[known] = law, law.draw(generator(*key), BLOCK)
        found[1].flags.writeable = False
    return found[1]


class Stream:
    """The draws of one law for one rank and purpose, by index."""

    def __init__(self, law: Law, seed: int, replication: int, rank: int, purpose: str):
        self._law, self._key, self._drawn = law, (seed, replication, rank, purpose), np.empty(0)

    @property
    def sole(self) -> float | None:
        """The value of every draw, if they are all alike."""
        return self._law.sole

    @cached_property
    def _rng(self) -> np.random.Generator:
        rng = generator(*self._key)  # many a stream is never drawn from
        self._law.draw(rng, len(self._drawn))  # which are at hand already
        return rng

    def first(self, count: int) -> np.ndarray:
        """Draws 0 to count - 1, shape (count,)."""
        if self._law.sole is not None:
            return np.full(count, self._law.sole)
        if not len(self._drawn) and count:
            self._drawn = first_block(self._law, *self._key)
        blocks = -(-(count - len(self._drawn)) // BLOCK)
        if blocks > 0:
            self._drawn = np.concatenate([self._drawn, *(self._law.draw(self._rng, BLOCK) for _ in range(blocks))])
        return self._drawn[:count]

    def __getitem__(self, index: int) -> float:
        if self._law.sole is not None:
            return self._law.sole
        if index >= len(self._drawn):
            self.first(index + 1)
        return float(self._drawn[index])
