"""Mechanics of a master whose workers are a cohort (sim.event.cohort): it sends to all at once, and takes all that they send at once."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from sim.event.machines.free import Free
from sim.event.machines.own_core import ROUND_OFF_S
from sim.event.ranks.message import Message
from sim.event.shortcut import ShortCutFailed
from sim.verbs.at_hand import SUM

DONE = ()


class Burst(NamedTuple):
    """A gradient of each worker, on its way to the master.

    Args:
        reach_s: when each reaches its port, shape (workers,).
        sizes_bytes: of the messages that make one.
        occupancy_s: for which one takes the port.
        samples: of all of them.
    """

    reach_s: np.ndarray
    sizes_bytes: tuple[int, ...]
    occupancy_s: float
    samples: int


def served(reach_s: np.ndarray, free_s: float, takes_s: float) -> np.ndarray:
    """When a queue's server begins with each customer, one after another, seconds.

    Args:
        reach_s: when they come, in order.
        free_s: when it is free.
        takes_s: with each.
    """
    before_s = takes_s * np.arange(len(reach_s))
    return np.maximum(np.maximum.accumulate(reach_s - before_s), free_s) + before_s


class Leading(Free):
    """Free's mechanics where all messages go to a cohort or come from it."""

    __slots__ = ("_burst", "_turn", "cohort")

    def __init__(self, rank):
        super().__init__(rank)
        self.cohort: Any = None
        self._burst: Burst | None = None
        self._turn = np.arange(rank.scenario.workers)

    def fall_apart(self) -> None:
        """Drop all references to others, so that memory is free at once."""
        super().fall_apart()
        self.cohort = None

    def send_all(self, peers, letter):
        """Send the same message to each worker; go on when all have left."""
        if peers != self.rank.workers:
            raise ShortCutFailed
        rank, port, message = self.rank, self.port, letter(peers[0])
        called_s = len(message.sizes_bytes) * self._overhead_s
        message.occupancy_s = occupancy_s = self._gap_s + message.size_bytes * self._byte_s
        first_s = rank.clock_s + called_s
        begin_s = np.maximum(first_s + max(called_s, occupancy_s) * self._turn, port.free_s + occupancy_s * self._turn)
        port.free_s = float(begin_s[-1]) + occupancy_s
        rank.clock_s = max(rank.clock_s + called_s * len(peers), port.free_s)
        port.busy_s += occupancy_s * len(peers)
        self.cohort.comes(begin_s + self._latency_s, message)
        return DONE

    def come(self, reach_s: np.ndarray, sizes_bytes: tuple[int, ...], occupancy_s: float, samples: int) -> None:
        """The gradients of all workers are on their way; see Burst."""
        if self._burst is not None:
            raise ShortCutFailed
        self._burst = Burst(reach_s, sizes_bytes, occupancy_s, samples)

    def gather(self, missing: set[int]):
        """Receive a gradient from each worker, and add them up in order of arrival; the text goes on after the last."""
        if self._burst is None or len(missing) < len(self._burst.reach_s):
            raise ShortCutFailed
        self.env.call(max(float(self._burst.reach_s.max()), self.env.now), self._arrived, self.rank.thread.go)
        yield

    def _arrived(self, go) -> None:
        """The last gradient has reached the port."""
        burst: Any = self._burst
        (reach_s, sizes_bytes, occupancy_s, samples), self._burst = burst, None
        rank, count = self.rank, len(reach_s)
        begin_s = served(np.sort(reach_s), self.ingress.free_s, occupancy_s)
        end_s = begin_s + occupancy_s
        self.ingress.free_s = float(end_s[-1])
        self.ingress.busy_s += occupancy_s * count
        add_s = rank.amounts.reduce_s[sum(sizes_bytes)]
        takes_s = len(sizes_bytes) * self._overhead_s + add_s / self.speed
        added_s = served(end_s, rank.clock_s, takes_s) + takes_s
        idle_s = np.concatenate(([rank.clock_s], added_s[:-1]))
        waits = begin_s - idle_s > ROUND_OFF_S
        rank.recorder.waited(np.column_stack((np.zeros(waits.sum()), idle_s[waits], begin_s[waits])))
        rank.clock_s = float(added_s[-1])
        rank.applied_s += add_s * count
        rank.samples += samples
        rank.minibatches += count
        rank.at_hand.what = SUM
        go()

    # ---- refused for a cohort

    def post(self, peer: int, message: Message) -> float:
        """Refuse to send to a single worker."""
        raise ShortCutFailed

    def post_all(self, peers, letter, record: bool = False, one: bool = False):
        """Refuse to send and go on at once."""
        raise ShortCutFailed

    def receive(self, frm, until_s: float = math.inf, variable=None):
        """Refuse to wait for the message of a single worker."""
        raise ShortCutFailed
