"""Allreduces beside back-propagation, as the protocol `horovod` makes them without waiting for cycles.

A variable's gradient is ready at its share of a backward pass. Whatever is ready when the last sum has ended is agreed on and summed next,
buffer by buffer: a queue that is never idle while something waits. It ends at the latest of all moments at which a variable is ready,
plus what is left from then on: all that is agreed on with it, and later.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from operator import mul
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sim.collectives.fusion import fuse, layer_shares

if TYPE_CHECKING:
    from sim.model.workload import Workload

ORDER = "parameters"  # in which gradients are ready over time: the protocol's default
BUCKET_BYTES = 25 * 2**20  # of gradients that are summed together (PyTorch's DistributedDataParallel)


PARTS = ("bytes", "sums", "bytes of the sums that another link delays", "agreements")  # bytes are shares of all


class Sums(NamedTuple):
    """The sums of a step, as each variable finds them, the last one first.

    Args:
        ready: the share of computing after which its gradient is there, shape (variables,).
        left: what is agreed on with it and later, in the order of PARTS; shape (4, rows, variables).
    """

    ready: np.ndarray
    left: np.ndarray

    def ends_s(self, computing_s: np.ndarray, sum_s: np.ndarray) -> np.ndarray:
        """Seconds until all is summed, shape (rows,), with a computing and sums of other lengths; see Overlap.calls."""
        return (np.multiply.outer(computing_s, self.ready) + self._seconds(sum_s)).max(axis=-1)

    def messages_s(self, sum_s: np.ndarray) -> np.ndarray:
        """Seconds of all of them, shape (rows,)."""
        return self._seconds(sum_s)[:, 0]

    def _seconds(self, sum_s: np.ndarray) -> np.ndarray:
        return np.einsum("kr,krv->rv", sum_s, self.left)


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
        self.summed = [0.0, *accumulate(size / sum(sizes) for size in reversed(sizes))]

    @classmethod
    def of(cls, model: Workload, fusion_bytes: int = BUCKET_BYTES) -> Overlap:
        """That of a model's variables."""
        return cls([variable.size for variable in model.variables], fusion_bytes)

    @cached_property
    def _ends(self) -> list[int]:
        """The end of a buffer that begins with each variable, if all are ready."""
        edges = [*accumulate(reversed(self.sizes), initial=0)]
        pieces = [slice(*ends) for ends in pairwise(edges)]
        return [first + len(fuse(pieces[first:], self.fusion_bytes)[0]) for first in range(len(pieces))]

    def calls(self, computing_s: np.ndarray, sum_s: np.ndarray) -> Sums:
        """The sums of a step.

        Args:
            computing_s: shape (rows,).
            sum_s: seconds of each of PARTS, of all bytes; a sum takes as long as the slower of both links. Shape (4, rows).
        """
        left = np.zeros((len(PARTS), len(computing_s), len(self.ready)))
        for row, (each_s, parts_s) in enumerate(zip(computing_s.tolist(), sum_s.T.tolist(), strict=True)):
            self._count(each_s, parts_s, left[:, row])
        return Sums(self.ready, left)

    def _count(self, computing_s: float, sum_s: Sequence[float], left: np.ndarray) -> None:
        """Set what is left of one row, shape (4, variables)."""
        ready, now_s, done, upto = self.ready.tolist(), 0.0, 0, 0
        spent = np.zeros((len(PARTS), 1))  # as `left` counts it
        while done < len(ready):
            if asks := done == upto:
                now_s = max(now_s, computing_s * ready[done])
                upto = max(bisect_right(ready, now_s / computing_s), done + 1)
                left[:, done:upto] = spent
            end = min(self._ends[done], upto)
            share = self.summed[end] - self.summed[done]
            other = share * sum_s[2] > share * sum_s[0] + sum_s[1]
            more = (0.0, 0.0, share, asks) if other else (share, 1.0, 0.0, asks)
            now_s += sum(map(mul, sum_s, more))
            spent[:, 0] += more
            done = end
        np.subtract(spent, left, out=left)


AFTER = Overlap([1], BUCKET_BYTES)  # one gradient, summed after all computing
