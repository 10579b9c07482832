"""Allreduces beside back-propagation, as the protocol `horovod` makes them without waiting for cycles.

A variable's gradient is ready at its share of a backward pass. Whatever is ready when the last sum has ended is summed next, buffer by
buffer: a queue that is never idle while something waits. It ends at the latest of all moments at which a variable is ready, plus what
is left to sum from then on.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import numpy as np

from sim.verbs.fusion import fuse, layer_shares

if TYPE_CHECKING:
    from sim.model.workload import Workload

ORDER = "parameters"  # in which gradients are ready over time: the protocol's default
BUCKET_BYTES = 25 * 2**20  # of gradients that are summed together (PyTorch's DistributedDataParallel)


class Overlap:
    """The gradients of a model, and when they are ready.

    Args:
        sizes: items of each variable, in the model's order.
        fusion_bytes: of a buffer.
    """

    def __init__(self, sizes: Sequence[int], fusion_bytes: int):
        shares = layer_shares(list(sizes), ORDER)
        self.sizes, self.fusion_bytes = tuple(sizes), fusion_bytes
        self.ready = np.array([*accumulate(reversed(shares), initial=1 - sum(shares))][1:])
        self.summed = np.array([0.0, *accumulate(size / sum(sizes) for size in reversed(sizes))])

    @classmethod
    def of(cls, model: Workload, fusion_bytes: int = BUCKET_BYTES) -> Overlap:
        """That of a model's variables."""
        return cls([variable.size for variable in model.variables], fusion_bytes)

    @cached_property
    def _ends(self) -> np.ndarray:
        """The end of a buffer that begins with each variable, if all are ready."""
        edges = [*accumulate(reversed(self.sizes), initial=0)]
        pieces = [slice(*ends) for ends in pairwise(edges)]
        return np.array([first + len(fuse(pieces[first:], self.fusion_bytes)[0]) for first in range(len(pieces))])

    def ends_s(self, computing_s: np.ndarray, messages_s: np.ndarray) -> np.ndarray:
        """Seconds until all is summed, shape (rows,)."""
        left = 1 - self.summed[:-1]
        return (np.multiply.outer(computing_s, self.ready) + np.multiply.outer(messages_s, left)).max(axis=-1)

    def calls(self, computing_s: np.ndarray, bytes_s: np.ndarray, call_s: np.ndarray) -> np.ndarray:
        """The number of sums in a step, shape (rows,).

        Args:
            bytes_s: seconds of all bytes.
            call_s: seconds of a sum besides.
        """
        last, now_s = len(self.ready), np.zeros(len(computing_s))
        done, upto, calls = (np.zeros(len(computing_s), int) for _ in range(3))
        while (going := done < last).any():
            first = np.minimum(done, last - 1)
            now_s = np.where(going & (done == upto), np.maximum(now_s, computing_s * self.ready[first]), now_s)
            ready = np.searchsorted(self.ready, now_s / computing_s, side="right")
            upto = np.where(done == upto, np.maximum(ready, np.minimum(done + 1, last)), upto)
            end = np.where(going, np.minimum(self._ends[first], upto), done)
            now_s = now_s + going * (call_s + bytes_s * (self.summed[end] - self.summed[done]))
            done, calls = end, calls + going
        return calls
