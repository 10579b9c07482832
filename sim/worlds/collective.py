"""The verb `allreduce`, for every world in which messages come one by one."""

from __future__ import annotations

from sim import collectives
from sim.collectives import Exchange
from sim.scenario import Scenario


class Collective:
    """Verbs of a rank without a master. The world gives `exchange`, `scenario` and `hosts`, the host of each rank.

    What is summed is a vector of the gradient and, as its last item, the number of samples that it sums.
    """

    scenario: Scenario
    rank: int
    hosts: list[int]

    def allreduce(self, algorithm: str = "auto", fused: bool = True):
        """The sum of all workers' gradients and samples, at each of them.

        Args:
            algorithm: one of sim.collectives.NAMES.
            fused: all variables in one call, not a call each.
        """
        for whole in collectives.pieces(self.scenario.workload, fused):
            yield from self.reduce_all(algorithm, whole)

    def reduce_all(self, algorithm: str, whole: slice):
        """One call, on some items of the vector."""
        for exchange in collectives.allreduce(algorithm, self.rank, self.hosts, whole):
            yield from self.exchange(exchange)

    def brings_samples(self, exchange: Exchange) -> bool:
        """Whether the number of samples is in what is taken."""
        return exchange.taken.stop == self.scenario.workload.parameters + 1 and exchange.taken_bytes > 0
