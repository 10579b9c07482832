"""Seconds of a synchronous step from few constants, in closed form.

A step computes (a line in the batch), and sums gradients round a ring of all ranks: 2 (n - 1) rounds of the n-th part of the bytes
(Patarasuk and Yuan, 2009). Between hosts a round takes the time of the slowest link: the port of a host. Back-propagation hides messages
as in the protocol `ddp` (calibration.scaling.overlap); in `allreduce` nothing is hidden.

Gradients of several minibatches are accumulated, and summed once: only the last minibatch's back-propagation hides messages.

Computing takes longer among others: a share as soon as there are several GPUs (hooks of the library, kernels that sum beside those that
compute, shared memory and input), another as soon as there are several hosts, and a power of the number of GPUs. What no
constant explains is left to the interval (calibration.scaling.changes).

NCCL takes trees where a ring's rounds take longer (from 2.4 on): the same bytes, and 2 log2(hosts) rounds between hosts.

A ring over two hosts has both of its directions between one pair of hosts; over three or more hosts, a pair has one. If the flow
between a pair is limited (as on EC2: 5 Gbit/s), and not the port, a byte takes up to twice as long on two hosts.

GPUs of a host share its memory and PCIe lanes. Messages between hosts pass these too, and take longer with each further GPU of a host.

Links of hosts differ, and a ring waits for the slowest of them: the mean of the slowest of 16 is slower than that of 4. How much they
differ is learned from the scatter of rows around the fit, beyond that of rows of one host, and not from their means.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from calibration.scaling.overlap import AFTER, Overlap, Sums
from calibration.scaling.table import Table
from sim.platform.cluster import INNER_S, TREE_S, slowest, trees_s

if TYPE_CHECKING:
    from calibration.scaling.fitting import Before

LEAST_S = 1e-12
FAR = 1e-4  # of a constant, a small change
CONSTANTS = {  # by name, a size of which it is a small change, where the constant itself is nearly 0
    "base_s": 1e-2,
    "sample_s": 1e-4,
    "several": 1e-2,
    "apart": 1e-2,
    "doubling": 1e-3,
    "between_s": 1e-11,
    "both_ways": 1.0,
    "contention": 1e-2,
    "within_s": 1e-11,
    "round_s": 1e-6,
    "read_s": 1e-5,
    "uneven": 1e-2,
}


@dataclass(frozen=True)
class Scaling:
    """The constants of one model on one kind of host.

    Args:
        gradient_bytes: that are summed in a step.
        base_s, sample_s: computing of a GPU, seconds a minibatch and a sample.
        between_s: seconds of a byte between hosts, of three hosts or more with a GPU each.
        several: share by which computing takes longer where there are several GPUs, whatever their number.
        apart: the same where there are several hosts.
        doubling: the power of the number of GPUs by which computing takes longer besides.
        both_ways: times as long on two hosts, from 1 to 2.
        contention: share by which a byte between hosts takes longer for each further GPU of a host.
        uneven: standard deviation of the logarithm by which links differ; 0 if rows do not tell it. `between_s` is the median link's.
        within_s: seconds of a byte within a host.
        round_s: seconds of a round besides its bytes, between hosts.
        read_s: in which a host reads a sample of real data; 0 if they are read as fast as they are computed.
        alone: batches of a minibatch that are no line with the others, and seconds of each on a GPU alone.
        overlap: gradients that are summed beside back-propagation; None where all are summed together after it.
        residual: standard deviation of the logarithm of a step, of rows that were fitted.
        fitted: names of the constants that rows told.
        covariance: of CONSTANTS, shape (constants, constants); those that rows do not tell are as uncertain as before.
    """

    gradient_bytes: float
    base_s: float = 0.0
    sample_s: float = 0.0
    between_s: float = 0.0
    several: float = 0.0
    apart: float = 0.0
    doubling: float = 0.0
    both_ways: float = 1.0
    contention: float = 0.0
    uneven: float = 0.0
    within_s: float = 0.0
    round_s: float = 0.0
    read_s: float = 0.0
    alone: tuple[tuple[int, float], ...] = ()
    overlap: Overlap | None = None
    residual: float = 0.0
    fitted: tuple[str, ...] = ()
    covariance: np.ndarray = field(default_factory=lambda: np.zeros((len(CONSTANTS),) * 2), compare=False)

    def computing_s(self, rows: Table) -> np.ndarray:
        """Seconds that a GPU computes in a step among all others, shape (rows,)."""
        alone_s = self.base_s * rows.minibatches + self.sample_s * rows.batch
        for batch, seconds in self.alone:
            alone_s = np.where(rows.minibatch == batch, seconds * rows.minibatches, alone_s)
        longer = (1 + self.several * (rows.gpus > 1)) * (1 + self.apart * (rows.hosts > 1))
        return alone_s * longer * rows.gpus**self.doubling

    def before(self, rows: Table, between: Before) -> dict[str, Before]:
        """What is known of constants in other ways than in a closed form, or held, by name; `between` of a byte between hosts."""
        return {}

    def waits_s(self, rows: Table) -> np.ndarray:
        """Seconds that a GPU waits for samples, beyond its computing, shape (rows,)."""
        read_s = self.read_s * rows.most * rows.batch * (1.0 if rows.real is None else rows.real)
        return np.maximum(0.0, read_s - self.computing_s(rows)) if self.read_s else np.zeros(rows.size)

    def calls(self, rows: Table) -> Sums:
        """The allreduces of a step."""
        return (self.overlap or AFTER).calls(self._sum_s(rows))

    def messages_s(self, rows: Table, calls: Sums | None = None) -> np.ndarray:
        """Seconds that messages take, hidden or not, shape (rows,)."""
        return (calls or self.calls(rows)).messages_s(self._sum_s(rows))

    def _sum_s(self, rows: Table) -> np.ndarray:
        """Seconds of calibration.scaling.overlap.PARTS, shape (3, rows)."""
        apart, share_bytes = rows.hosts > 1, self.gradient_bytes * 2 * (rows.gpus - 1) / rows.gpus
        bytes_s = share_bytes * np.where(apart, self.byte_s(rows), self.within_s)
        tree_s = trees_s(np.log2(rows.hosts), rows.gpus / rows.hosts, TREE_S, INNER_S)
        call_s = np.where(apart, np.minimum(2 * (rows.gpus - 1) * self.round_s, tree_s), 0.0)
        inner_s = share_bytes * self.within_s * (apart & (rows.most > 1))  # a ring waits for the slowest of its links
        return np.stack([bytes_s, call_s, inner_s])

    def byte_s(self, rows: Table) -> np.ndarray:
        """Seconds of a byte between so many hosts, by the slowest of their links, shape (rows,)."""
        shared = 1 + self.contention * (rows.gpus / rows.hosts - 1)
        more = np.exp(self.uneven * slowest_of(rows)[0]) if self.uneven else 1.0
        among = np.where(rows.hosts == 2, self.both_ways, more)
        return self.between_s * shared * among

    def step_s(self, rows: Table, calls: Sums | None = None) -> np.ndarray:
        """Seconds of a step, shape (rows,).

        Args:
            calls: the allreduces, if they are known.
        """
        computing_s = self.computing_s(rows)
        last_s = computing_s / rows.minibatches
        ends_s = (calls or self.calls(rows)).ends_s(last_s, self._sum_s(rows))
        return self.waits_s(rows) + computing_s - last_s + ends_s

    def misses(self, rows: Table) -> float:
        """Root mean square of the logarithm of these steps over measured ones."""
        return float(np.sqrt(np.mean(np.log(self.step_s(rows) / rows.step_s) ** 2)))

    def unknown(self, rows: Table, of: Callable[..., np.ndarray] | None = None) -> np.ndarray:
        """Standard deviation of the logarithm of seconds, as far as the constants are unknown, shape (rows,).

        Args:
            of: the method that says them.
        """
        slopes = self.slopes(rows, of)
        return np.sqrt(np.einsum("ir,ij,jr->r", slopes, self.covariance, slopes))

    def slopes(self, rows: Table, of: Callable[..., np.ndarray] | None = None) -> np.ndarray:
        """Change of the logarithm of seconds by each constant, while the sums stay, shape (constants, rows)."""
        of, calls = of or type(self).step_s, self.calls(rows)
        far = {name: FAR * max(getattr(self, name), size) for name, size in CONSTANTS.items()}
        near = [replace(self, **{name: getattr(self, name) + far[name]}) for name in CONSTANTS]
        here = _log(of(self, rows, calls))
        return np.array(
            [(_log(of(one, rows, calls)) - here) / far[name] for one, name in zip(near, CONSTANTS, strict=True)]
        )


def _log(seconds: np.ndarray) -> np.ndarray:
    """The logarithm; that of next to nothing where no message is sent."""
    return np.log(np.maximum(seconds, LEAST_S))


def slowest_of(rows: Table) -> np.ndarray:
    """Mean and deviation of the slowest link in a row's ring, in deviations of a link, shape (2, rows); two hosts have one link."""
    links = np.where(rows.hosts > 2, rows.hosts, 1).astype(int)
    numbers, places = np.unique(links, return_inverse=True)
    return np.array([slowest(number) for number in numbers.tolist()])[places.ravel()].T
