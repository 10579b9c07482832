"""The verb `allreduce` of the vector world: all ranks go round the ring at once, in every replication."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np

from sim import collectives
from sim.errors import WrongSetting
from sim.workload import ITEM_BYTES


class Lockstep:
    """Verbs of a group of workers without a master; clocks have the shape (replications, ranks).

    Only of the ring: there each port serves one sender, so that the order of rounds is the order of arrival.
    """

    def allreduce(self, algorithm: str = "ring", fused: bool = True):
        """The sum of all workers' gradients and samples, at each of them.

        Raises:
            WrongSetting: another algorithm than the ring.
        """
        if algorithm != "ring":
            raise WrongSetting("--set algorithm", algorithm, "ring in the vector world")
        costs = self.world.scenario.costs
        for whole in collectives.pieces(self.world.scenario.summed, fused):
            self._wait(self.now_s, self.now_s + costs.agree_s)
            self.now_s = self.now_s + costs.agree_s
            self._spend((self.world.scenario.workers > 1) * costs.negotiate_s)
            self._spend(costs.call(ITEM_BYTES * (whole.stop - whole.start)))
            for sent_bytes, taken_bytes, adds in self._rounds(whole.start, whole.stop):
                self._round(sent_bytes, taken_bytes, adds)
        self.samples = np.broadcast_to(self.samples.sum(axis=1, keepdims=True), self.samples.shape)
        yield from self._did()

    def allgather(self):
        """Of nothing: this world refuses scenarios whose rows travel alone."""
        yield from self._did()

    def _round(self, sent_bytes: np.ndarray, taken_bytes: np.ndarray, adds: bool) -> None:
        """Hand a piece to the right while taking one from the left; then add it up. The event world's `exchange`."""
        link, reduce = self.world.scenario.network, self.world.scenario.costs.reduce
        self._spend(link.overhead_s)
        begin_s = np.maximum(self.now_s, self._out_free_s)
        self._out_free_s = begin_s + link.gap_s + sent_bytes / link.bandwidth_bytes_per_s
        here_s = np.maximum(np.roll(begin_s, 1, axis=1) + link.latency_s, self._in_free_s)
        self._in_free_s = here_s + link.gap_s + taken_bytes / link.bandwidth_bytes_per_s
        self._wait(self.now_s, here_s)
        self.now_s = np.maximum(self.now_s, self._in_free_s)
        self._spend(link.overhead_s)
        self.now_s = np.maximum(self.now_s, self._out_free_s)
        if adds:
            self._spend(reduce.base_s + reduce.slope_s * taken_bytes)

    @cache  # noqa: B019 a group lives as long as its world
    def _rounds(self, start: int, stop: int) -> list[tuple[np.ndarray, np.ndarray, bool]]:
        """Bytes that each rank hands over and takes in each round, shape (ranks,), and whether they are added."""
        return list(_rounds(len(self.ranks), slice(start, stop)))


def _rounds(ranks: int, whole: slice) -> Iterator[tuple[np.ndarray, np.ndarray, bool]]:
    texts = [collectives.allreduce("ring", rank, range(ranks), whole) for rank in range(ranks)]
    for exchanges in zip(*texts, strict=True):
        sent_bytes, taken_bytes = ([getattr(e, name) for e in exchanges] for name in ("sent_bytes", "taken_bytes"))
        yield np.array(sent_bytes), np.array(taken_bytes), exchanges[0].adds
