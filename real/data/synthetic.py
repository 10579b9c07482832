"""Data that nobody took, which can be learned: pictures of any shape, and sentences."""

from __future__ import annotations

import numpy as np

from real.data.pictures import Raw

TRAIN, TEST = 4096, 1000
NOISE = 0.3  # standard deviation, of pixels in [0, 1]
HABIT = 0.9  # share of words that are their predecessor's successor


def pictures(sample_shape: tuple[int, ...], classes: int, seed: int) -> Raw:
    """Inputs (samples, *sample_shape) in [0, 1], a random prototype a class and noise; equal arguments draw equal ones."""
    rng = np.random.default_rng(seed)
    prototypes = rng.random((classes, *sample_shape), np.float32)
    y = rng.integers(classes, size=TRAIN + TEST)
    x = rng.standard_normal((len(y), *sample_shape), np.float32)
    x *= NOISE
    x += prototypes[y]
    np.clip(x, 0, 1, out=x)
    return Raw(x[:TRAIN], y[:TRAIN], x[TRAIN:], y[TRAIN:])


def sentences(length: int, words: int, seed: int) -> Raw:
    """Sentences (samples, length) of numbers from 0 to words - 1, and the word after each; equal arguments draw equal ones.

    Words are frequent by Zipf's law, and each is mostly followed by one certain other.
    """
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
