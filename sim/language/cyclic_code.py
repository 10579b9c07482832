"""The cyclic code of Tandon, Lei, Dimakis, Karampatziakis, "Gradient Coding", ICML 2017, algorithm 2."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np


@cache
def code(n: int, late: int) -> np.ndarray:
    """The weights of partitions at workers, shape (workers, partitions): any n - late rows can be combined to ones."""
    import numpy as np  # here, so that texts load without arrays

    orthogonal = np.random.default_rng(0).normal(size=(late, n))
    orthogonal[:, -1] = -orthogonal[:, :-1].sum(axis=1)
    found = np.eye(n)
    for row in range(n):
        others = [(row + k + 1) % n for k in range(late)]
        found[row, others] = -np.linalg.solve(orthogonal[:, others], orthogonal[:, row])
    return found


def decoded(n: int, late: int, workers: list[int]) -> list[float]:
    """The factors on the gradients of some workers whose sum is the gradient of the minibatch."""
    import numpy as np

    return np.linalg.lstsq(code(n, late)[workers].T, np.ones(n), rcond=None)[0].tolist()
