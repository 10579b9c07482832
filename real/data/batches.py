"""Minibatches for one rank, in epochs that are shuffled anew."""

from __future__ import annotations

import numpy as np

from sim.laws.randomness import generator


class Batches:
    """An endless iterator of (x, y), `batch` samples each; a minibatch may span two epochs, or many.

    Args:
        data: with train_x and train_y.
        batch: samples, exactly.
        seed, replication, rank: of the run; equal ones give equal minibatches.
    """

    def __init__(self, data, batch: int, seed: int, replication: int, rank: int):
        self._data, self._batch = data, batch
        self._rng = generator(seed, replication, rank, "data")
        self._left = np.empty(0, int)  # what the epoch has not shown yet
        self._number, self._chosen = -1, self._left

    def __iter__(self) -> Batches:
        return self

    def __next__(self) -> tuple[np.ndarray, np.ndarray]:
        chosen = self.places()
        return self._data.train_x[chosen], self._data.train_y[chosen]

    def places(self) -> np.ndarray:
        """The places of the next minibatch's samples in the data, shape (batch,)."""
        samples = len(self._data.train_y)
        epochs = -(-max(0, self._batch - len(self._left)) // samples)
        self._left = np.concatenate([self._left, *(self._rng.permutation(samples) for _ in range(epochs))])
        self._chosen, self._left = np.split(self._left, [self._batch])
        self._number += 1
        return self._chosen

    def of(self, number: int) -> np.ndarray:
        """The same of a minibatch by its number, from 0: the last one, or one that is still to come; those in between are left out."""
        while self._number < number:
            self.places()
        return self._chosen
