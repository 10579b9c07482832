"""Hybrid: parameter servers for sparse variables, allreduce for dense ones."""

from __future__ import annotations

from dataclasses import dataclass

from sim import collectives
from sim.errors import WrongSetting
from sim.protocols.base import Protocol


@dataclass(frozen=True)
class Hybrid(Protocol):
    """Synchronous data parallelism in which every variable takes the way that suits its gradient.

    Kim et al., "Parallax: Sparsity-aware Data Parallel Training of Deep Neural Networks", EuroSys 2019 (arXiv 1808.02621),
    section 3.1. A variable whose gradient is rows (IndexedSlices) lies on parameter servers, cut into `--variable-partitions`
    parts: a worker pulls the rows that its minibatch reads, and pushes those rows' gradients. The others are allreduced, and
    each worker updates its own. Without sparse variables there are no servers, without dense ones no allreduce. Nothing is
    stale: servers update when all gradients are added.

    Args:
        algorithm: of the allreduce, as for allreduce.
        local_aggregation: the first worker of a host adds up what its workers push, so that a row leaves it once.
    """

    algorithm: str = "ring"
    local_aggregation: bool = True

    name = "hybrid"
    arrival_order_matters = True
    uses_servers = True

    def __post_init__(self):
        if self.algorithm not in collectives.NAMES:
            raise WrongSetting("--set algorithm", self.algorithm, ", ".join(collectives.NAMES))

    def check(self, scenario):
        if scenario.test_size and scenario.served:
            raise WrongSetting("--test-size", scenario.test_size, "0 with sparse variables: no rank has all parameters")

    def served(self, workload):
        return tuple(variable for variable in workload.variables if variable.rows)

    def summed(self, workload):
        return tuple(variable for variable in workload.variables if not variable.rows)

    def worker(self, me):
        for _ in me.steps():
            yield from me.sleep()
            yield from me.fetch()
            yield from me.pull(me.servers)
            yield from me.compute()
            yield from me.hand_in()
            if me.scenario.summed:
                yield from me.allreduce(self.algorithm)
                yield from me.update()
            yield from me.receive(me.aggregators)
            yield from me.let_go(me.neighbours)
            yield from me.evaluate()

    def server(self, me):
        for _ in me.steps():
            added = []
            for _ in me.senders:
                added.append((yield from me.take(me.workers)))
                yield from me.add()
            yield from me.update()
            yield from me.let_go(added)
