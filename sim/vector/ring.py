"""The verb `allreduce` of the vector world: all ranks exchange at once, in every replication."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np

from sim import collectives
from sim.collectives.base import cut
from sim.collectives.schedule import Schedule, schedule
from sim.vector.exchanges import Ports, Unsettled, play
from sim.workload import ITEM_BYTES

MOST_EXCHANGES = 4_000_000  # of all ranks in one call; each takes some microseconds to lay out, and memory


class Lockstep:
    """Verbs of a group of workers without a master; clocks have the shape (replications, ranks)."""

    def allreduce(self, algorithm: str = "auto", fused: bool = True):
        """The sum of all workers' gradients and samples, at each of them.

        Raises:
            Refused: a master sums, or which message passes a port first cannot be told.
        """
        if self.world.scenario.served:
            raise self.world.refuse("a master or servers sum, and workers too")
        self.at_hand.begin_sum()
        costs = self.world.scenario.costs
        for whole in collectives.pieces(self.world.scenario.summed, fused):
            self._wait(self.now_s, self.now_s + costs.agree_s)
            self.now_s = self.now_s + costs.agree_s
            self._spend((self.world.scenario.workers > 1) * costs.negotiate_s)
            self._spend(costs.call(ITEM_BYTES * (whole.stop - whole.start)))
            self._call(collectives.named(algorithm, self.world.scenario.hosts, whole), whole)
        self.samples = np.broadcast_to(self.samples.sum(axis=1, keepdims=True), self.samples.shape)
        yield from self._did()

    def allgather(self):
        """Of nothing: this world refuses scenarios whose rows travel alone."""
        yield from self._did()

    def _call(self, algorithm: str, whole: slice) -> None:
        """One call. The ring has a way of its own: each port serves one sender, so that no order of arrival is to be found."""
        if algorithm == "ring" and self._calls in ("", "ring"):
            for turn in self._turns(whole.start, whole.stop):
                self._turn(*turn)
        else:
            self._exchange(algorithm, whole)
        self._calls = algorithm

    def _exchange(self, algorithm: str, whole: slice) -> None:
        link, reduce = self.world.scenario.network, self.world.scenario.costs.reduce
        plan = self._plan(algorithm, whole.start, whole.stop)
        ports = Ports(self.now_s, self._out_free_s, self._in_free_s, self._reached_s())
        try:
            played = play(plan, ports, link, self.speeds, reduce.base_s + reduce.slope_s * plan.size_bytes)
        except Unsettled:
            raise self.world.refuse("which message passes a port first cannot be told") from None
        self.now_s, self._out_free_s, self._in_free_s, self._last_reach_s = played.ports
        for ranks, from_s, to_s in played.waits:
            self._wait(from_s, to_s, ranks)

    def _reached_s(self) -> np.ndarray:
        """When the last message of the calls before reached each port; of a ring, that was when it was free at the latest."""
        return self._in_free_s if self._calls == "ring" else np.broadcast_to(self._last_reach_s, self.now_s.shape)

    @cache  # noqa: B019 a group lives as long as its world
    def _plan(self, algorithm: str, start: int, stop: int) -> Schedule:
        hosts, whole = self.world.scenario.hosts, slice(start, stop)
        most = len(list(collectives.allreduce(algorithm, 0, hosts, whole)))
        if most * len(hosts) > MOST_EXCHANGES:
            raise self.world.refuse(f"{algorithm} of {len(hosts)} ranks has too many messages to lay out")
        return schedule(collectives.allreduce(algorithm, rank, hosts, whole) for rank in range(len(hosts)))

    def _turn(self, leaves_s: np.ndarray, comes_s: np.ndarray, adds_s: np.ndarray | None) -> None:
        """Hand a piece to the right while taking one from the left; then add it up. The event world's `exchange`.

        Args:
            leaves_s, comes_s: for which each rank's ports are taken, shape (ranks,).
            adds_s: of a core of speed 1, likewise; None if what comes is not added.
        """
        link = self.world.scenario.network
        self._spend(link.overhead_s)
        begin_s = np.maximum(self.now_s, self._out_free_s)
        self._out_free_s = begin_s + leaves_s
        from_left_s = np.concatenate([begin_s[:, -1:], begin_s[:, :-1]], axis=1)
        here_s = np.maximum(from_left_s + link.latency_s, self._in_free_s)
        self._in_free_s = here_s + comes_s
        self._wait(self.now_s, here_s)
        self.now_s = np.maximum(self.now_s, self._in_free_s)
        self._spend(link.overhead_s)
        self.now_s = np.maximum(self.now_s, self._out_free_s)
        if adds_s is not None:
            self._spend(adds_s)

    @cache  # noqa: B019 a group lives as long as its world
    def _turns(self, start: int, stop: int) -> list[tuple[np.ndarray, np.ndarray, np.ndarray | None]]:
        """What `_turn` is told, by round."""
        ranks, link, reduce = len(self.ranks), self.world.scenario.network, self.world.scenario.costs.reduce
        size_bytes = np.array([ITEM_BYTES * (piece.stop - piece.start) for piece in cut(slice(start, stop), ranks)])
        port_s, add_s = (
            link.gap_s + size_bytes / link.bandwidth_bytes_per_s,
            reduce.base_s + reduce.slope_s * size_bytes,
        )
        port_s, add_s = np.tile(port_s, 2), np.tile(add_s, 2)
        return [
            (port_s[sent : sent + ranks], port_s[taken : taken + ranks], add_s[taken : taken + ranks] if adds else None)
            for sent, taken, adds in _pieces(ranks)
        ]


def _pieces(ranks: int) -> Iterator[tuple[int, int, bool]]:
    """The numbers of the pieces that rank 0 hands over and takes in each round, and whether it adds; rank r has those r further on."""
    for exchange in collectives.allreduce("ring", 0, range(ranks), slice(0, ranks)):
        yield exchange.sent.start, exchange.taken.start, exchange.adds
