"""Negotiation along a binomial tree (sim.collectives.tree)."""

from __future__ import annotations

import numpy as np

from sim.collectives.base import CONTROL, Exchange
from sim.collectives.schedule import NONE, schedule
from sim.collectives.tree import tree
from sim.vector.exchanges import Ports, Unsettled, play
from sim.vector.negotiation import REQUEST_BYTES, Asked, Begun, Told, idle_before, joined, passing_s
from sim.verbs.fusion import REQUEST


class ByTree:
    """Ranks tell how many gradients are ready up the tree, and are told the least of them down again.

    Args:
        ranks: how many.
        link: between hosts.
        hosts: of each rank, where some share one.
        local: the link within a host, likewise.

    Raises:
        Unsettled: of a host several ranks send requests to others, or receive them.
    """

    def __init__(self, ranks: int, link, hosts: list[int] | None = None, local=None):
        self._ranks, self._link, self._occupancy_s = ranks, link, link.occupancy_s(REQUEST_BYTES)
        numbers = np.arange(ranks)
        self.shared, self._near = hosts is not None, np.zeros(ranks, bool)  # of whom the parent is on the same host
        if hosts is not None:
            of_rank, parents = np.array(hosts), numbers & (numbers - 1)
            self._near[1:] = of_rank[1:] == of_rank[parents[1:]]
            self._local_s, self._copy_s = local.latency_s, local.overhead_s + local.occupancy_s(REQUEST_BYTES)
            far = numbers[1:][~self._near[1:]]
            for ends in (far, parents[far]):
                if len(np.unique(of_rank[ends])) < len(np.unique(ends)):
                    raise Unsettled
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
        if begun.out_free_s is not None:
            posted_s = np.where(self._near, np.inf, reach_s - self._link.latency_s)
            if (posted_s <= begun.out_free_s).any():
                raise Unsettled
        hindered = (reach_s[:, 1:] < begun.in_free_s[:, self._parents]).any(axis=1)
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
        away_s, here_s, apart = overhead_s + self._link.latency_s, self._occupancy_s, 1
        if self.shared:
            away_s, here_s = np.where(self._near, self._local_s, away_s), np.where(self._near, 0.0, here_s)
            copy_s = self._copy_s * begun.pace
        reach_s, left_s = np.empty_like(now_s), np.zeros_like(now_s)
        reach_s[:, 0] = np.inf
        while now_s.shape[1] > 1:
            pairs = now_s.shape[1] // 2
            parents, last = slice(0, 2 * pairs * apart, 2 * apart), now_s[:, 2 * pairs :]
            children = slice(apart, self._ranks, 2 * apart)
            come_s = now_s[:, 1::2] + away_s[:, children]
            reach_s[:, children] = come_s
            before_s, taking_s = now_s[:, : 2 * pairs : 2], overhead_s[:, parents]
            waits.append((parents, before_s, come_s))
            if self.shared:
                taking_s = np.where(self._near[children], copy_s[:, parents], taking_s)
                now_s = np.maximum(before_s, come_s + here_s[children]) + taking_s
                left_s[:, children] = now_s
            else:
                now_s = np.maximum(before_s, come_s + here_s) + taking_s
            if last.shape[1]:
                now_s = np.concatenate([now_s, last], axis=1)
            apart *= 2
        away_s = reach_s + (self._occupancy_s - self._link.latency_s)
        if self.shared:
            return Asked(now_s, np.where(self._near, left_s, away_s), waits), np.where(self._near, np.inf, reach_s)
        return Asked(now_s, away_s, waits), reach_s

    def _in_order(self, begun: Begun) -> Asked:
        now_s, overhead_s = begun.now_s.copy(), np.broadcast_to(begun.overhead_s, begun.now_s.shape)
        away_s, waits = overhead_s + self._link.latency_s, []
        copy_s, copied_s = np.zeros_like(now_s), np.zeros_like(now_s)
        if self.shared:
            away_s, copy_s = np.where(self._near, self._local_s, away_s), self._copy_s * begun.pace
        for ranks, children in self._kinds:
            near, come_s = self._near[children], now_s[:, children] + away_s[:, children]
            port_s = np.broadcast_to(np.where(near, 0.0, self._occupancy_s), come_s.shape)
            by_port_s = np.where(near, np.inf, come_s)  # those of the same host pass none
            pass_s = np.where(near, come_s, passing_s(by_port_s, port_s, children, begun, ranks, self._link.latency_s))
            for turn in range(children.shape[1]):
                waits.append((ranks, now_s[:, ranks], pass_s[:, :, turn]))
                here_s = np.maximum(now_s[:, ranks], pass_s[:, :, turn] + port_s[:, :, turn])
                now_s[:, ranks] = here_s + np.where(near[:, turn], copy_s[:, ranks], overhead_s[:, ranks])
                copied_s[:, children[:, turn]] = now_s[:, ranks]
        away_s = now_s + overhead_s + self._occupancy_s
        return Asked(now_s[:, :1], np.where(self._near, copied_s, away_s), waits)

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
