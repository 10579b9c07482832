"""The 1,797 handwritten digits of 8 x 8 pixels that scikit-learn carries (Alpaydin and Kaynak, UCI, 1998)."""

from __future__ import annotations

from functools import cache

import numpy as np

from real.data.pictures import Raw

TRAIN = 1500  # the other 297 test


def read(seed: int) -> Raw:
    """Pictures (samples, 8, 8) in [0, 1]; the seed draws which are held out."""
    x, y = _all()
    order = np.random.default_rng(seed).permutation(len(y))
    x, y = x[order].reshape(-1, 8, 8) / 16, y[order]
    return Raw(x[:TRAIN], y[:TRAIN], x[TRAIN:], y[TRAIN:])


@cache
def _all() -> tuple[np.ndarray, np.ndarray]:
    """All pictures and what they show; a campaign asks for each of its cells."""
    from sklearn.datasets import load_digits

    return load_digits(return_X_y=True)
