"""The verb `allreduce` of the vector world: all ranks exchange at once, in every replication."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from sim import collectives
from sim.model.sizes import ITEM_BYTES
from sim.vector.calls import Calls, TooMany
from sim.vector.exchanges import Ports, Unsettled
from sim.vector.shared import SharedCalls
from sim.vector.working import Working

TWO_SUM = "a master or servers sum, and workers too"
ROUND = (
    "ring",
    collectives.GATHERED,
)  # calls in which each rank takes messages of one other alone, of the same one in all


class Lockstep(Working):
    """Verbs of a group of workers without a master; clocks have the shape (replications, ranks)."""

    _calls: str  # the algorithm of the last collective call

    def allreduce(self, algorithm: str = "auto", fused: bool = True):
        """The sum of all workers' gradients and samples, at each of them.

        Raises:
            Refused: a master sums, or which message passes a port first cannot be told.
        """
        self._begin_allreduce()
        costs = self.world.scenario.costs
        for whole in collectives.pieces(self.world.scenario.summed, fused):
            self._wait(self.now_s, self.now_s + costs.agree_s)
            self.now_s = self.now_s + costs.agree_s
            self._spend((self.world.scenario.workers > 1) * costs.negotiate_s)
            self._spend(costs.call(ITEM_BYTES * (whole.stop - whole.start)))
            self._call(whole, algorithm)
        self._all_samples()
        yield from self._did()

    def _begin_allreduce(self) -> None:
        if self.world.scenario.served:
            raise self.world.refuse(TWO_SUM)
        self.at_hand.begin_sum()

    def _all_samples(self) -> None:
        """Each rank has the sum over all ranks."""
        self.samples = np.broadcast_to(self.samples.sum(axis=1, keepdims=True), self.samples.shape)

    def allgather(self):
        """The rows of sparse variables that any rank touched, at each of them.

        Raises:
            Refused: as of `allreduce`.
        """
        for load in self.world.scenario.gathered_loads:
            if self.world.scenario.served:
                raise self.world.refuse(TWO_SUM)
            self._call(slice(0, load.rows + load.numbers), collectives.GATHERED)
        yield from self._did()

    def _call(self, piece: slice, algorithm: str) -> None:
        algorithm = self.collectives.named(algorithm, piece)
        ports = Ports(
            self.now_s,
            self._out_free_s,
            self._in_free_s,
            np.broadcast_to(self._last_reach_s, self.now_s.shape),
        )
        pieces = [piece] * len(self.now_s)
        try:
            after, _ = self.collectives.play(
                algorithm,
                pieces,
                ports,
                self.speeds,
                self._wait,
                self._before(algorithm),
                None,
                self._waits.sums,
            )
        except Unsettled:
            raise self.world.refuse("which message passes a port first cannot be told") from None
        except TooMany as error:
            raise self.world.refuse(str(error)) from None
        self.now_s, self._out_free_s, self._in_free_s, self._last_reach_s = after
        self._calls = algorithm

    def _before(self, algorithm: str) -> bool:
        """Whether no message of the call before can come late."""
        if isinstance(self.collectives, Calls) or algorithm in ROUND:
            return self._calls in ROUND
        return self._calls == algorithm

    @cached_property
    def collectives(self) -> Calls | SharedCalls:
        """Calls of these ranks."""
        hosts = self.world.scenario.hosts[self.world.scenario.servers :]
        return (Calls if len(set(hosts)) == len(hosts) else SharedCalls)(self.world.scenario, hosts)
