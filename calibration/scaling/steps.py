"""Seconds of a synchronous step from few constants, in the simulator's closed form; and their fit.

A step computes (a line in the batch), and sums gradients round a ring of all ranks: 2 (n - 1) rounds of the n-th part of the bytes
(Patarasuk and Yuan, 2009). Between hosts a round takes the time of the slowest link: the port of a host. Back-propagation, two thirds
of computing (sim.model.nominal), hides all messages but a last bucket.

Other algorithms differ in their rounds, and in the bytes that pass the busiest port (calibration.algorithms).

A ring over two hosts has both of its directions between one pair of hosts; over three or more hosts, a pair has one. If the flow
between a pair is limited (as on EC2: 5 Gbit/s), and not the port, a byte takes up to twice as long on two hosts.

Links of hosts differ, and a ring waits for the slowest of them: the mean of the slowest of 16 is slower than that of 4. How much they
differ is learned from the scatter of rows around the fit, beyond that of rows of one host, and not from their means.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, log
from typing import Any

import numpy as np

from calibration import algorithms
from calibration.scaling.table import Table
from sim.platform.slowest import slowest

BACKWARD = 2 / 3  # share of computing that hides messages
LAST = 0.1  # share of the bytes that nothing hides: the last bucket of gradients
BUCKET_BYTES = 25 * 2**20  # of gradients that are summed together (PyTorch's DistributedDataParallel)
BOTH_WAYS = 2.0  # factor on the time of a byte on two hosts, where the flow of a pair is limited
SOFT = 0.05  # of computing, over which hidden messages become visible
ROUND_S = 1e-2  # the most that a round takes besides its bytes
FEW = 1e-9
FAR, LEAST = 1e-2, 1e-3  # a small change of a link's time, and the least deviation of links that is kept


@dataclass(frozen=True)
class Scaling:
    """The constants of one model on one kind of host.

    Args:
        gradient_bytes: that are summed in a step.
        base_s, sample_s: computing of a GPU, seconds a step and a sample.
        between_s: seconds of a byte between hosts, of three hosts or more.
        both_ways: times as long on two hosts, from 1 to 2.
        uneven: standard deviation of the logarithm by which links differ; 0 if rows do not tell it. `between_s` is the median link's.
        within_s: seconds of a byte within a host.
        round_s: seconds of a round besides its bytes, between hosts.
        backward: share of computing behind which messages hide.
        bucket_bytes: of gradients that are summed together, where messages hide.
        residual: standard deviation of the logarithm of a step, of rows that were fitted.
        told: whether rows determined `both_ways`: some had two hosts, and some more.
        hosts: the largest number of hosts that was fitted.
        algorithm: by which gradients are summed: ring, or another candidate.
        free: number of fitted constants of messages between hosts.
    """

    gradient_bytes: float
    base_s: float
    sample_s: float
    between_s: float
    both_ways: float = BOTH_WAYS
    uneven: float = 0.0
    within_s: float = 0.0
    round_s: float = 0.0
    backward: float = BACKWARD
    bucket_bytes: float = BUCKET_BYTES
    residual: float = 0.0
    told: bool = True
    hosts: int = 1
    algorithm: str = "ring"
    free: int = 0

    @property
    def calls(self) -> int:
        """Allreduces in a step, each of a bucket of gradients."""
        return ceil(self.gradient_bytes / self.bucket_bytes) if self.backward else 1

    def computing_s(self, rows: Table) -> np.ndarray:
        """Seconds that a GPU computes, shape (rows,)."""
        return self.base_s + self.sample_s * rows.batch

    def messages_s(self, rows: Table) -> np.ndarray:
        """Seconds that messages take, hidden or not, shape (rows,)."""
        rounds, between, within = self._travel(rows)
        messages_s = self.gradient_bytes * (between * self.byte_s(rows) + within * self.within_s)
        return messages_s + rounds * self.calls * self.round_s

    def byte_s(self, rows: Table) -> np.ndarray:
        """Seconds of a byte between so many hosts, by the slowest of their links, shape (rows,)."""
        return self.between_s * np.where(rows.hosts == 2, self.both_ways, np.exp(self.uneven * _slowest(rows)[0]))

    def _travel(self, rows: Table) -> np.ndarray:
        """Rounds between hosts, and shares of the gradients that pass between hosts and within one; shape (3, rows)."""
        if self.algorithm == "ring":
            rounds, share, apart = 2 * (rows.gpus - 1), 2 * (rows.gpus - 1) / rows.gpus, rows.hosts > 1
            return np.stack([np.where(apart, rounds, 0.0), np.where(apart, share, 0.0), np.where(apart, 0.0, share)])
        where = zip(rows.hosts.astype(int).tolist(), (rows.gpus / rows.hosts).astype(int).tolist(), strict=True)
        found = [algorithms.travel(self.algorithm, *one) for one in where]
        return np.array([[one.rounds, one.between, one.within] for one in found]).T

    def step_s(self, rows: Table, slower: np.ndarray | float = 1.0) -> np.ndarray:
        """Seconds of a step, shape (rows,).

        Args:
            slower: times as long as messages take.
        """
        computing_s, messages_s = self.computing_s(rows), self.messages_s(rows) * slower
        last, width_s = LAST if self.backward else 1.0, SOFT * computing_s + FEW
        beyond_s = (1 - last) * messages_s - self.backward * computing_s
        return computing_s + last * messages_s + width_s * np.logaddexp(0, beyond_s / width_s) * (last < 1)

    def unknown(self, rows: Table) -> tuple[np.ndarray, np.ndarray]:
        """Standard deviations of the logarithm of a step that takes longer, and of one that takes less, where `both_ways` was not told.

        It is at most BOTH_WAYS, which the fit supposes. From two hosts alone, a byte may take longer on more; from more, less on two.
        """
        same = np.zeros(rows.size)
        if self.told:
            return same, same
        times = 2 * BOTH_WAYS / (1 + BOTH_WAYS)
        of_two = self.hosts == 2
        other = np.where((rows.hosts > 2) if of_two else (rows.hosts == 2), times if of_two else 1 / times, 1.0)
        off = np.abs(np.log(self.step_s(rows, other) / self.step_s(rows)))
        return (off, same) if of_two else (same, off)


def _slowest(rows: Table) -> np.ndarray:
    """Mean and deviation of the slowest link in a row's ring, in deviations of a link, shape (2, rows); two hosts have one link."""
    links = np.where(rows.hosts > 2, rows.hosts, 1).astype(int)
    numbers, places = np.unique(links, return_inverse=True)
    return np.array([slowest(number) for number in numbers.tolist()])[places.ravel()].T


OF_MESSAGES = ("between_s", "both_ways", "round_s")
FITTED = ("base_s", "sample_s", "between_s", "both_ways", "within_s", "round_s")


def fit(rows: Table, gradient_bytes: float, backward: float = BACKWARD, algorithm: str = "ring") -> Scaling:
    """The constants with which steps are nearest to measured ones, in ratio.

    Constants that the rows do not determine stay as they are: with two numbers of hosts or fewer, a byte takes twice as long on two
        hosts.

    Args:
        backward: share of computing behind which messages hide; 0 where nothing overlaps.
    """
    alike = _fitted(rows, Scaling(gradient_bytes, 0.0, 0.0, 0.0, backward=backward, algorithm=algorithm))
    uneven = _uneven(rows, alike)
    return _fitted(rows, replace(alike, uneven=uneven)) if uneven else alike


def _fitted(rows: Table, like: Scaling) -> Scaling:
    """With the constants of FITTED; all else is as in `like`."""
    from scipy.optimize import least_squares

    start, low, high = _bounds(rows, like.gradient_bytes)
    free = high > low
    scale = start[free]

    def made(at) -> Scaling:
        values = np.array(start)
        values[free] = at * scale
        found: dict[str, Any] = dict(zip(FITTED, map(float, values), strict=True))
        return replace(like, **found)

    def off(at) -> np.ndarray:
        return np.log(made(at).step_s(rows) / rows.step_s)

    found = least_squares(
        off,
        start[free] / scale,
        bounds=(low[free] / scale, high[free] / scale),
        loss="soft_l1",
        f_scale=0.1,
    )
    freedom = max(1, rows.size - int(free.sum()))
    residual = float(np.sqrt(np.square(off(found.x)).sum() / freedom))
    told = bool(free[FITTED.index("both_ways")] or not (rows.hosts > 1).any())
    of_messages = sum(one and name in OF_MESSAGES for name, one in zip(FITTED, free.tolist(), strict=True))
    return replace(made(found.x), residual=residual, told=told, hosts=int(rows.hosts.max()), free=of_messages)


def _uneven(rows: Table, found: Scaling) -> float:
    """Maximum likelihood of two normal scatters around the fit: every step has one, and the slowest link of a ring another.

    0 where fewer rows than the constants and these two have three hosts or more: two hosts have one link, and tell nothing of others.
    """
    from scipy.optimize import minimize

    if (rows.hosts > 2).sum() < len(FITTED) + 2:
        return 0.0
    off = np.log(found.step_s(rows) / rows.step_s)
    slower, faster = (replace(found, between_s=found.between_s * (1 + far)).step_s(rows) for far in (FAR, -FAR))
    by_link = np.where(rows.hosts > 1, np.log(slower / faster) / (2 * FAR) * _slowest(rows)[1], 0.0)

    def misses(at) -> float:
        variance = np.exp(2 * at[0]) + (by_link * np.exp(at[1])) ** 2
        return float((np.log(variance) + off**2 / variance).sum())

    whole = float(np.log(max(FEW, off.std())))
    at = minimize(misses, [whole, whole], bounds=[(log(FEW), 0.0)] * 2).x
    return float(np.exp(at[1])) if np.exp(at[1]) > LEAST else 0.0


def _bounds(rows: Table, gradient_bytes: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The start of the fit and its bounds; the bounds are equal where the rows do not determine a constant."""
    numbers, least_s = np.unique(rows.hosts), float(rows.step_s.min())
    apart = bool((numbers > 1).any())
    sample_s = least_s / float(rows.batch[np.argmin(rows.step_s)]) / 2
    byte_s = float(np.median(rows.step_s)) / gradient_bytes / 2
    per = {
        "base_s": (least_s / 2, 0.0, float(rows.step_s.max())) if np.ptp(rows.batch) else (0.0, 0.0, 0.0),
        "sample_s": (sample_s, FEW * sample_s, 100 * sample_s),
        "between_s": (byte_s, 0.0, 100 * byte_s) if apart else (0.0, 0.0, 0.0),
        "both_ways": (1.5, 1.0, BOTH_WAYS) if 2 in numbers and numbers.max() > 2 else (BOTH_WAYS,) * 3,
        "within_s": (byte_s / 4, 0.0, 100 * byte_s) if (rows.gpus[rows.hosts == 1] > 1).any() else (0.0, 0.0, 0.0),
        "round_s": (ROUND_S / 10, 0.0, ROUND_S) if apart and np.ptp(rows.gpus[rows.hosts > 1]) else (0.0, 0.0, 0.0),
    }
    start, low, high = (np.array(values) for values in zip(*(per[name] for name in FITTED), strict=True))
    return start, low, high
