"""The 1,797 handwritten digits of 8 x 8 pixels that scikit-learn carries (Alpaydin and Kaynak, UCI, 1998)."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from real.data.pictures import Raw

TRAIN = 1500  # the other 297 test
FILE = "datasets/data/digits.csv.gz"  # of scikit-learn; its `load_digits` reads it too, after an import that takes a second


def read(seed: int) -> Raw:
    """Pictures (samples, 8, 8) in [0, 1]; the seed draws which are held out."""
    x, y = _all()
    order = np.random.default_rng(seed).permutation(len(y))
    x, y = x[order].reshape(-1, 8, 8) / 16, y[order]
    return Raw(x[:TRAIN], y[:TRAIN], x[TRAIN:], y[TRAIN:])


@cache
def _all() -> tuple[np.ndarray, np.ndarray]:
    """All pictures and their labels, kept because a campaign asks again for each of its cells."""
    package = find_spec("sklearn")
    if package is None or package.origin is None:
        raise ModuleNotFoundError("No module named 'sklearn'", name="sklearn")
    table = np.loadtxt(Path(package.origin).parent / FILE, delimiter=",")
    return table[:, :-1], table[:, -1].astype(int)
