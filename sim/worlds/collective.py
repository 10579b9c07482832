"""The verbs `allreduce` and `allgather`, for every world in which messages come one by one."""

from __future__ import annotations

from sim import collectives
from sim.collectives import Exchange
from sim.scenario import Scenario
from sim.workload import ITEM_BYTES


class Collective:
    """Verbs of a worker that sums with the others. The world gives `exchange`, `let_leave`, `begin_sum`, `scenario` and
    `hosts`, the host of each rank.

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
        if self.scenario.summed:
            self.begin_sum()
        for whole in collectives.pieces(self.scenario.summed, fused):
            yield from self.agree()
            yield from self.reduce_all(algorithm, whole)

    def agree(self):
        """What the ranks of a library do before a call; of ours nothing, for their exchanges tell them when to begin."""
        return
        yield

    def reduce_all(self, algorithm: str, whole: slice):
        """One call, on some items of the vector."""
        first = self.scenario.servers
        for exchange in collectives.allreduce(algorithm, self.rank - first, self.hosts[first:], whole):
            yield from self.exchange(exchange.among(first))
        yield from self.let_leave()

    def allgather(self):
        """The rows of sparse variables that any worker touched, at each of them; what comes is added up as it comes."""
        first, workers = self.scenario.servers, self.scenario.workers
        for load in self.scenario.gathered_loads:
            items = load.rows + load.numbers
            parts = [slice(worker * items, (worker + 1) * items) for worker in range(workers)]
            for exchange in collectives.allgather(self.rank - first, range(workers), parts):
                yield from self.swap(exchange.among(first))
                yield from self.add_rows(ITEM_BYTES * items)

    def brings_samples(self, exchange: Exchange) -> bool:
        """Whether the number of samples is in what is taken."""
        return exchange.taken.stop == self.scenario.summed_items + 1 and exchange.taken_bytes > 0
