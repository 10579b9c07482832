"""Allreduces beside back-propagation, as the protocol `ddp` makes them: a bucket of gradients is summed once all of it is there.

Buckets are summed one after another, the last layers' first. The last sum ends at the latest of all moments at which a bucket is ready,
plus what is summed from then on: that bucket, and those after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from sim.language.layers import stretches
from sim.model.nominal import layer_shares
from sim.model.sizes import ITEM_BYTES
from sim.model.workload import Workload

ORDER = "parameters"  # in which gradients are ready over time
BUCKET_BYTES = 25 * 2**20  # of gradients, at least, that are summed together (PyTorch's DistributedDataParallel)
PARTS = ("bytes", "sums", "bytes of the sums that another link delays")  # bytes are shares of all


class Sums(NamedTuple):
    """The sums of a step, as each bucket finds them, the last layers' first.

    Args:
        ready: the share of computing after which its gradients are there, shape (buckets,).
        left: what is summed from it on, in the order of PARTS; shape (3, rows, buckets).
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
    """The buckets of a model's gradients, and when they are ready.

    Args:
        sizes: items of each variable, in the model's order.
        bucket_items: of a bucket, at least.
    """

    def __init__(self, sizes: Sequence[int], bucket_items: float):
        shares = layer_shares(list(sizes), ORDER)
        ready = [*accumulate(reversed(shares), initial=1 - sum(shares))]
        buckets = stretches(sizes, bucket_items)
        self.shares = np.array([sum(sizes[first:stop]) for first, stop in buckets]) / sum(sizes)
        self.ready = np.array([ready[len(sizes) - first] for first, _ in buckets])

    @classmethod
    def of(cls, model: Workload, bucket_bytes: int = BUCKET_BYTES) -> Overlap:
        """That of a model's variables."""
        sizes = [variable.size for variable in model.variables]
        return cls(sizes, bucket_bytes / (model.gradient_bytes or ITEM_BYTES))

    def calls(self, sum_s: np.ndarray) -> Sums:
        """The sums of a step.

        Args:
            sum_s: seconds of each of PARTS, of all bytes; a sum takes as long as the slower of both links. Shape (3, rows).
        """
        here = np.multiply.outer(sum_s[2] - sum_s[0], self.shares) <= sum_s[1][:, None]
        parts = np.stack([here * self.shares, here * 1.0, ~here * self.shares])
        return Sums(self.ready, np.cumsum(parts[..., ::-1], axis=-1)[..., ::-1])


AFTER = Overlap([1], 1)  # one gradient, summed after all computing
