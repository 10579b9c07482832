"""Hybrid: parameter servers for sparse variables, allreduce for dense ones."""

from __future__ import annotations

from dataclasses import dataclass

from sim import collectives
from sim.base.errors import WrongSetting
from sim.protocols.base import Protocol
from sim.verbs import allreduce, collect, hand_in, let_go, pull, take_first


@dataclass(frozen=True)
class Hybrid(Protocol):
    """Synchronous data parallelism in which every variable takes the way that suits its gradient.

    Kim et al., "Parallax: Sparsity-aware Data Parallel Training of Deep Neural Networks", EuroSys 2019 (arXiv 1808.02621),
    section 3.1. A variable whose gradient is rows (IndexedSlices) is on parameter servers, cut into `--variable-partitions` parts. A
    worker pulls the rows that its minibatch reads, and pushes those rows' gradients. The other variables are allreduced, and each
    worker updates its own copy. Without sparse variables there are no servers, and without dense ones no allreduce. No gradient is
    stale: servers update when all gradients are added.

    Args:
        algorithm: of the allreduce, as for allreduce.
        local_aggregation: the first worker of a host adds up what its workers push, so that a row leaves it once.
    """

    algorithm: str = "ring"
    local_aggregation: bool = True

    name, in_step = "hybrid", True

    def __post_init__(self):
        if self.algorithm not in collectives.SETTINGS:
            raise WrongSetting("--set algorithm", self.algorithm, ", ".join(collectives.SETTINGS))

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
            yield from pull(me, me.servers)
            yield from me.compute()
            yield from hand_in(me)
            if me.summed:
                yield from allreduce(me, self.algorithm)
                yield from me.update()
            yield from collect(me, me.aggregators)
            yield from let_go(me, me.neighbours)
            yield from me.evaluate()

    def server(self, me):
        for _ in me.steps():
            added = yield from take_first(me, me.workers, len(me.senders))
            yield from me.update()
            yield from let_go(me, added)
