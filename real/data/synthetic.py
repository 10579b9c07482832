"""Pictures that nobody took: a random prototype a class, and noise; they can be learned, and stand in for any shape."""

from __future__ import annotations

import numpy as np

from real.data.pictures import Raw

TRAIN, TEST = 4096, 1000
NOISE = 0.3  # standard deviation, of pixels in [0, 1]


def draw(sample_shape: tuple[int, ...], classes: int, seed: int) -> Raw:
    """Inputs (samples, *sample_shape) in [0, 1]; equal arguments draw equal ones."""
    rng = np.random.default_rng(seed)
    prototypes = rng.random((classes, *sample_shape), np.float32)
    y = rng.integers(classes, size=TRAIN + TEST)
    x = rng.standard_normal((len(y), *sample_shape), np.float32)
    x *= NOISE
    x += prototypes[y]
    np.clip(x, 0, 1, out=x)
    return Raw(x[:TRAIN], y[:TRAIN], x[TRAIN:], y[TRAIN:])
