"""Artificial sentences: words are frequent by Zipf's law, and each is mostly followed by one certain other."""

from __future__ import annotations

import numpy as np

from real.data.pictures import Raw

TRAIN, TEST = 4096, 1000
HABIT = 0.9  # share of words that are their predecessor's successor


def draw(length: int, words: int, seed: int) -> Raw:
    """Sentences (samples, length) of numbers from 0 to words - 1, and the word after each; equal arguments draw equal ones."""
    rng = np.random.default_rng(seed)
    weights = 1 / np.arange(1, words + 1)
    weights /= weights.sum()
    successor = rng.choice(words, words, p=weights)
    said = rng.choice(words, (TRAIN + TEST, length + 1), p=weights)
    habit = rng.random(said.shape) < HABIT
    for place in range(1, length + 1):
        said[:, place] = np.where(habit[:, place], successor[said[:, place - 1]], said[:, place])
    x, y = said[:, :-1], said[:, -1]
    return Raw(x[:TRAIN], y[:TRAIN], x[TRAIN:], y[TRAIN:])
