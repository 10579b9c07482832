"""Allreduce: no master; every worker has the sum of all gradients, and updates its own parameters."""

from __future__ import annotations

from dataclasses import dataclass

from sim import collectives
from sim.base.errors import WrongSetting
from sim.protocols.base import Protocol
from sim.verbs import allgather, allreduce


@dataclass(frozen=True)
class Allreduce(Protocol):
    """Synchronous data parallelism by allreduce, one call after back-propagation.

    Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 2009; Goyal et al.,
    "Accurate, Large Minibatch SGD", 2017 (arXiv 1706.02677), section 4. All workers start from the same parameters and
    apply the same sums, so that these stay equal. Rank 0 evaluates.

    Args:
        algorithm: auto (what the job's library takes, see sim.collectives.libraries), ring, halving-doubling, tree,
            recursive-doubling, nccl (its ring, in chunks), hierarchical, or servers made of collectives: reduce-broadcast (one server,
            along a chain) and alltoall-allgather (every worker is the server of a share). unknown, in simulation: all algorithms that
            the library may take.
        fused: all variables in one call; else a call for each.
        sparse_as_dense: sparse variables' gradients are summed as if every row had one; else their rows are gathered from all
            workers, by an allgather for each variable, as Horovod does unless told so.
    """

    algorithm: str = "auto"
    fused: bool = True
    sparse_as_dense: bool = True

    name, in_step = "allreduce", True

    def __post_init__(self):
        if self.algorithm not in collectives.SETTINGS:
            raise WrongSetting("--set algorithm", self.algorithm, ", ".join(collectives.SETTINGS))

    @property
    def in_library(self):
        return self.algorithm == "auto"

    def summed(self, workload):
        return tuple(variable for variable in workload.variables if self.sparse_as_dense or not variable.rows)

    def gathered(self, workload):
        return tuple(variable for variable in workload.variables if variable.rows and not self.sparse_as_dense)

    def worker(self, me):
        for _ in me.steps():
            yield from me.sleep()
            yield from me.compute()
            yield from allgather(me)
            yield from allreduce(me, self.algorithm, self.fused)
            yield from me.update()
            yield from me.evaluate()
