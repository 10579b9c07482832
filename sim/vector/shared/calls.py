"""Collective calls of ranks that share hosts, one after another (as sim.vector.calls has them of ranks with a host each)."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import chain

import numpy as np

from sim import collectives
from sim.collectives.base import Exchange
from sim.collectives.bounds import Bound, Bounds
from sim.vector.calls import MOST_EXCHANGES, TooMany
from sim.vector.exchanges import SETTLED_S, Ports, Unsettled
from sim.vector.shared.call import Call, Clocks, Seconds
from sim.vector.shared.plan import Plan, plan

Waited = Callable[[np.ndarray, np.ndarray, np.ndarray], object]


class SharedCalls:
    """Collective calls of the workers of one scenario.

    Args:
        hosts: of the workers.
        answers: exchanges of each rank by which rank 0 answers all, before the first call.
    """

    def __init__(self, scenario, hosts: list[int], answers: list[list[Exchange]] | None = None):
        self.answers = answers
        kinds, numbers = np.unique(hosts, return_inverse=True)
        self._hosts, self._host_of, self._count = tuple(hosts), numbers, len(kinds)
        self._link, self._local, self._reduce = scenario.network, scenario.cluster.local, scenario.costs.reduce
        self._template = lru_cache(8)(self._templated)
        self._laid_out = lru_cache(64)(self._lay_out)
        self._before: Plan | None = None  # of the last call, whose messages came in turn

    def named(self, algorithm: str, piece: slice) -> str:
        """The algorithm that sums a piece."""
        return collectives.named(algorithm, self._hosts, piece)

    def may_be_ring(self, _algorithm: str) -> bool:
        """Whether it is known for many messages when a port was idle."""
        return True

    def alike(self, algorithm: str) -> bool:
        """Whether calls on vectors of different sizes can be played together."""
        return self._template(algorithm) is not None

    def play(
        self,
        algorithm: str,
        pieces: list[slice],
        ports: Ports,
        speeds: np.ndarray,
        waited: Waited,
        after_alike: bool,
        idle_s: np.ndarray | None = None,
    ) -> tuple[Ports, np.ndarray]:
        """As of Calls, but ports are those of a rank's host.

        Args:
            after_alike: the call before had the same algorithm.

        Raises:
            Unsettled: which message passes a port first cannot be told.
            TooMany: there are too many messages.
        """
        laid, size_bytes = self._sized(algorithm, pieces)
        seconds = Seconds.of(size_bytes, self._link, self._local, self._reduce)
        clocks = Clocks(ports.now_s, *(self._of_hosts(free_s) for free_s in (ports.out_free_s, ports.in_free_s)))
        call = Call(laid, seconds, speeds, clocks)
        after = call.play()
        last_s = self._of_hosts(np.broadcast_to(ports.last_reach_s, ports.now_s.shape))
        came_s = self._check_after(laid, call, clocks, last_s, after_alike)
        for ranks, from_s, to_s in call.waits:
            waited(from_s, to_s, ranks)
        found = after.now_s, *(self._of_ranks(one) for one in (after.out_free_s, after.in_free_s, came_s))
        times = 1 if idle_s is None else idle_s.shape[1]
        return Ports(*found), call.idle_s(self._count, times)[:, :, :, self._host_of]

    def answer_and_play(
        self,
        algorithm: str,
        pieces: list[slice],
        speeds: np.ndarray,
        work_s: np.ndarray,
        waited: Waited,
        times: int,
    ) -> tuple[Ports, np.ndarray, np.ndarray]:
        """The clocks after rank 0 has answered all from time 0 on, each has done some work, and all have summed.

        Args:
            work_s: shape (replications, ranks).
            times: before which ports were idle, at most.

        Returns:
            The clocks; from when until when ports were idle before the last messages, shape (2, times, replications, ranks); and when the
            answer begins to come to each rank, shape (replications, ranks).

        Raises:
            Unsettled, TooMany: as of `play`.
        """
        laid, size_bytes = self._sized(algorithm, pieces, self.answers)
        seconds, shape = Seconds.of(size_bytes, self._link, self._local, self._reduce), speeds.shape
        never_s = np.full((shape[0], self._count), -np.inf)
        now_s = np.full(shape, -np.inf)
        now_s[:, 0] = 0.0
        call = Call(laid, seconds, speeds, Clocks(now_s, never_s, never_s), work_s)
        after, told_s = call.play(), np.full(shape, -np.inf)
        answers = np.flatnonzero(laid.control)
        told_s[:, laid.receivers[answers]] = call.pass_s[1][:, answers]
        for ranks, from_s, to_s in call.waits:
            summed = (from_s > -np.inf).all(axis=0)
            if summed.any():
                waited(from_s[:, summed], to_s[:, summed], ranks[summed])
        known_s = call.idle_s(self._count, times)
        last_s = np.where(known_s[1, -1] < np.inf, known_s[1, -1], -np.inf)
        found = after.now_s, *(self._of_ranks(one) for one in (after.out_free_s, after.in_free_s, last_s))
        return Ports(*found), known_s[:, :, :, self._host_of], told_s

    def _check_after(self, laid: Plan, call: Call, clocks: Clocks, last_s: np.ndarray, after_alike: bool) -> np.ndarray:
        """When the last message came to each host, if all come after those of earlier calls; shape (replications, hosts).

        Raises:
            Unsettled: one leaves a host, or comes to it, before one of an earlier call.
        """
        found_s, in_turn = last_s.copy(), laid.in_turn and after_alike
        for side, come_s, before_s in (
            (laid.out, call.come_s[0], clocks.out_free_s),
            (laid.into, call.come_s[1], last_s),
        ):
            comes_s = come_s[:, side.messages]
            first_s = comes_s.min(axis=2, initial=np.inf)
            if not in_turn and (first_s <= before_s[:, side.hosts] + SETTLED_S).any():
                raise Unsettled
        latest_s = np.where(comes_s < np.inf, comes_s, -np.inf).max(axis=2, initial=-np.inf)
        found_s[:, laid.into.hosts] = np.maximum(found_s[:, laid.into.hosts], latest_s)
        return found_s

    def _of_hosts(self, by_rank_s: np.ndarray) -> np.ndarray:
        """The latest of the ranks of each host, shape (replications, hosts)."""
        found_s = np.full((len(by_rank_s), self._count), -np.inf)
        for rank, host in enumerate(self._host_of):
            found_s[:, host] = np.maximum(found_s[:, host], by_rank_s[:, rank])
        return found_s

    def _of_ranks(self, by_host_s: np.ndarray) -> np.ndarray:
        return by_host_s[:, self._host_of]

    def _sized(self, algorithm: str, pieces: list[slice], answers=None) -> tuple[Plan, np.ndarray]:
        """The plan of a call, and the bytes of its messages in each replication; in one row if all are alike."""
        self._check(algorithm, pieces[0])
        wholes = {(piece.start, piece.stop) for piece in pieces}
        pieces = pieces if len(wholes) > 1 else pieces[:1]
        found = self._template(algorithm, answers is not None)
        if found is not None:
            laid, bounds, numbers = found
            starts, stops = (np.array([getattr(piece, end) for piece in pieces]) for end in ("start", "stop"))
            return laid, bounds.values(starts, stops)[numbers].T.astype(float)
        if len(wholes) > 1:
            raise ValueError(f"{algorithm} of vectors of several sizes")
        laid = self._laid_out(algorithm, pieces[0].start, pieces[0].stop, answers is not None)
        return laid, np.array(laid.size_bytes, float)

    def _check(self, algorithm: str, whole: slice) -> None:
        most = max(
            sum(1 for _ in collectives.allreduce(algorithm, rank, self._hosts, whole))
            for rank in {0, len(self._hosts) - 1}
        )
        if most * len(self._hosts) > MOST_EXCHANGES:
            raise TooMany(f"{algorithm} of {len(self._hosts)} ranks has too many messages to lay out")

    def _templated(self, algorithm: str, answers: bool = False):
        bounds = Bounds()
        try:
            laid = self._lay_out(algorithm, bounds.whole.start, bounds.whole.stop, answers)
        except TypeError:  # it counts chunks
            return None
        sizes = [size if isinstance(size, Bound) else bounds.fixed(size) for size in laid.size_bytes]
        return laid, bounds, np.array([size.number for size in sizes], int)

    def _lay_out(self, algorithm: str, start, stop, answers: bool) -> Plan:
        whole, ranks = slice(start, stop), range(len(self._hosts))
        before = [[*own, Exchange()] for own in self.answers or []] if answers else [[] for _ in ranks]
        exchanges = (chain(before[rank], collectives.allreduce(algorithm, rank, self._hosts, whole)) for rank in ranks)
        return plan(exchanges, self._hosts)
