"""Negotiation along a binomial tree (sim.collectives.tree)."""

from __future__ import annotations

import numpy as np

from sim.collectives.base import CONTROL, Exchange
from sim.collectives.schedule import NONE, schedule
from sim.collectives.tree import tree
from sim.vector.cycles.negotiation import REQUEST_BYTES, Asked, Begun, Told, idle_before, joined, passing_s
from sim.vector.exchanges import Ports, play
from sim.verbs.fusion import REQUEST


class ByTree:
    """Ranks tell how many gradients are ready up the tree, and are told the least of them down again.

    Args:
        ranks: how many.
        link: between hosts.
    """

    def __init__(self, ranks: int, link):
        self._ranks, self._link, self._occupancy_s = ranks, link, link.occupancy_s(REQUEST_BYTES)
        numbers = np.arange(ranks)
        self._parents = numbers[1:] & (numbers[1:] - 1)
        children: list[list[int]] = [[] for _ in numbers]
        for rank in numbers[1:]:
            children[rank & (rank - 1)].append(int(rank))
        by_count = {count: [r for r in numbers if len(children[r]) == count] for count in {*map(len, children)} - {0}}
        self._taken = [len(own) for own in children]
        # Ranks of equally many children, those of few first, and these in the order in which they are taken.
        self._kinds = [(np.array(by_count[n]), np.array([children[r] for r in by_count[n]])) for n in sorted(by_count)]
        most = max(map(len, children))
        padded = np.array([own + [NONE] * (most - len(own)) for own in children], int)
        self.layout = padded, np.concatenate([[0], self._parents])  # as sim.vector.compiled.by_tree has it
        self.link = link.latency_s, self._occupancy_s
        several = [own for own in children if len(own) > 1]
        self._several = np.array([own + [0] * (max(map(len, several)) - len(own)) for own in several], int)

    def ask(self, begun: Begun) -> Asked:
        """Up the tree. Where messages wait for one another at a port, in the order in which they came there.

        Raises:
            Unsettled: that cannot be told.
        """
        if begun.meeting is not None:
            return self._in_order(begun)
        asked, reach_s = self._unhindered(begun)
        hindered = np.any(reach_s[:, 1:] < begun.in_free_s[:, self._parents], axis=1)
        if len(self._several):
            come_s = np.sort(reach_s[:, self._several], axis=2)
            hindered |= (come_s[:, :, 1:] < come_s[:, :, :-1] + self._occupancy_s).any(axis=(1, 2))
        if not hindered.any():
            return asked
        some, others = np.flatnonzero(hindered), np.flatnonzero(~hindered)
        return joined([others, some], [asked.of(others), self._in_order(begun.of(some))], len(hindered))

    def _unhindered(self, begun: Begun) -> tuple[Asked, np.ndarray]:
        """As if every port were free; and when each rank's request reaches its parent's."""
        now_s, overhead_s, waits = begun.now_s, begun.overhead_s, []
        away_s, apart = overhead_s + self._link.latency_s, 1
        reach_s = np.empty_like(now_s)
        reach_s[:, 0] = np.inf
        while now_s.shape[1] > 1:
            pairs = now_s.shape[1] // 2
            parents, last = slice(0, 2 * pairs * apart, 2 * apart), now_s[:, 2 * pairs :]
            children = slice(apart, self._ranks, 2 * apart)
            come_s = now_s[:, 1::2] + away_s[:, children]
            reach_s[:, children] = come_s
            before_s = now_s[:, : 2 * pairs : 2]
            waits.append((parents, before_s, come_s))
            now_s = np.maximum(before_s, come_s + self._occupancy_s) + overhead_s[:, parents]
            if last.shape[1]:
                now_s = np.concatenate([now_s, last], axis=1)
            apart *= 2
        return Asked(now_s, reach_s + (self._occupancy_s - self._link.latency_s), waits), reach_s

    def _in_order(self, begun: Begun) -> Asked:
        now_s, overhead_s = begun.now_s.copy(), np.broadcast_to(begun.overhead_s, begun.now_s.shape)
        away_s, waits = overhead_s + self._link.latency_s, []
        for ranks, children in self._kinds:
            come_s = now_s[:, children] + away_s[:, children]
            port_s = np.broadcast_to(self._occupancy_s, come_s.shape)
            pass_s = passing_s(come_s, port_s, children, begun, ranks, self._link.latency_s)
            for turn in range(children.shape[1]):
                waits.append((ranks, now_s[:, ranks], pass_s[:, :, turn]))
                here_s = np.maximum(now_s[:, ranks], pass_s[:, :, turn] + self._occupancy_s)
                now_s[:, ranks] = here_s + overhead_s[:, ranks]
        return Asked(now_s[:, :1], now_s + overhead_s + self._occupancy_s, waits)

    def answers(self) -> list[list[Exchange]]:
        """The exchanges of each rank by which all are told."""
        return [
            [
                one._replace(kind=CONTROL)
                for one in list(tree(rank, range(self._ranks), REQUEST))[self._taken[rank] + (rank > 0) :]
            ]
            for rank in range(self._ranks)
        ]

    def tell(self, overhead_s: np.ndarray, speeds: np.ndarray) -> Told:
        """Down the tree."""
        never_s = np.full(speeds.shape, -np.inf)
        now_s = never_s.copy()
        now_s[:, 0] = 0.0
        plan = schedule(self.answers())
        played = play(plan, Ports(now_s, never_s, never_s, never_s), self._link, speeds, np.zeros(len(plan.size_bytes)))
        pass_s = never_s.copy()
        for ranks, _, to_s in played.waits:
            pass_s[:, ranks] = to_s
        return Told(played.ports, pass_s, idle_before(played.ports.last_reach_s))
