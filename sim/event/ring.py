"""A call of the ring (sim.collectives.ring) by all ranks, each on a host of its own, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from sim.collectives.base import cut
from sim.collectives.ring import ring
from sim.model.costs import Line
from sim.model.sizes import ITEM_BYTES
from sim.platform.cluster import Link


class Ring:
    """The quantities that all calls on one piece of the vector share.

    Args:
        adding: the cost of adding up so many bytes.
        speeds: of each rank's core.
    """

    def __init__(self, piece: slice, link: Link, adding: Line, speeds: Sequence[float]):
        ranks, speed = len(speeds), np.array(speeds)
        size_bytes = np.array([ITEM_BYTES * (part.stop - part.start) for part in cut(piece, ranks)] * 2)
        port_s = link.gap_s + size_bytes / link.bandwidth_bytes_per_s
        self.latency_s, self.overhead_s = link.latency_s, link.overhead_s / speed
        self.speed = None if (speed == speed[0]).all() else speed
        add_s = adding(size_bytes) / (speed[0] if self.speed is None else 1.0)
        self.turns = [
            (port_s[sent : sent + ranks], port_s[taken : taken + ranks], add_s[taken : taken + ranks] if adds else None)
            for sent, taken, adds in _turns(ranks)
        ]


@cache
def _turns(ranks: int) -> list[tuple[int, int, bool]]:
    """The numbers of the parts that rank 0 hands over and takes in each turn, and whether it adds; rank r has those r further on."""
    turns = ring(0, range(ranks), slice(0, ranks))
    return [(exchange.sent.start, exchange.taken.start, exchange.adds) for exchange in turns]


class Call:
    """One call. Each port serves one sender in it, so that its messages come in order; others may pass between them.

    Args:
        now_s: when each rank begins, shape (ranks,).
        out_free_s, in_free_s: when its ports are free.
    """

    def __init__(self, plan: Ring, now_s: np.ndarray, out_free_s: np.ndarray, in_free_s: np.ndarray):
        self.overhead_s, ranks, turns = plan.overhead_s, len(now_s), len(plan.turns)
        # Of each turn and rank: when it waits from, and when the message reaches its port, begins and ends to pass it.
        self.from_s, self.reach_s, self.begin_s, self.end_s = (np.empty((turns, ranks)) for _ in range(4))
        self.in_free_s, self.out_free_s = in_free_s, out_free_s
        self.ended_s = self._play(plan, now_s)

    def _play(self, plan: Ring, now_s: np.ndarray) -> np.ndarray:
        add, maximum, overhead_s, latency_s, speed = np.add, np.maximum, plan.overhead_s, plan.latency_s, plan.speed
        last, out_free_s, in_free_s = len(now_s), self.out_free_s, self.in_free_s
        leave_s = np.empty(last + 1)  # when messages begin to leave; the left neighbour of the first rank is the last
        mine_s, left_s = leave_s[1:], leave_s[:-1]
        rows = zip(plan.turns, self.from_s, self.reach_s, self.begin_s, self.end_s, strict=True)
        for (leaves_s, comes_s, add_s), from_s, reach_s, begin_s, end_s in rows:
            add(now_s, overhead_s, out=from_s)
            maximum(from_s, out_free_s, out=mine_s)
            add(mine_s, leaves_s, out=out_free_s)
            leave_s[0] = leave_s[last]
            add(left_s, latency_s, out=reach_s)
            maximum(reach_s, in_free_s, out=begin_s)
            add(begin_s, comes_s, out=end_s)
            maximum(from_s, end_s, out=now_s)
            add(now_s, overhead_s, out=now_s)
            maximum(now_s, out_free_s, out=now_s)
            if add_s is not None:
                add(now_s, add_s if speed is None else add_s / speed, out=now_s)
            in_free_s = end_s
        return now_s

    def waits(self, idle_from_s: np.ndarray) -> np.ndarray:
        """Rank, from and to of each wait of all turns but the last, shape (waits, 3).

        Args:
            idle_from_s: before which waits do not count, shape (ranks,).
        """
        from_s, to_s = np.maximum(self.from_s[:-1], idle_from_s), self.begin_s[:-1]
        waits = to_s > from_s
        return np.column_stack([np.nonzero(waits)[1], from_s[waits], to_s[waits]])
