"""Data parallelism whose gradients are summed when all of them are computed."""

from dataclasses import dataclass

from sim.language.collectives import SETTINGS, summed
from sim.language.rows import sum_by_kind
from sim.language.text import Text
from sim.language.verbs import agree, compute


@dataclass(frozen=True)
class Allreduce(Text):
    """Goyal et al., "Accurate, Large Minibatch SGD", 2017 (arXiv 1706.02677), section 4.

    Args:
        algorithm: auto (what Open MPI takes), ring, halving-doubling, tree, recursive-doubling, nccl, hierarchical, reduce-broadcast (a
            server, along a chain) or alltoall-allgather (every rank is the server of a part). unknown: all of these.
        fused: all gradients in one call; else a call for each layer.
        sparse_as_dense: gradients of sparse layers are summed as if all rows had one; else rows go to all ranks, layer by layer.
    """

    algorithm: str = "auto"
    fused: bool = True
    sparse_as_dense: bool = True

    name, in_step, names = "allreduce", True, {"algorithm": SETTINGS}

    def __call__(self, me):
        for _ in me.steps():
            yield from me.sleep()
            yield from compute(me)
            for call in range(self.sparse_as_dense and (1 if self.fused else len(me.layers))):
                yield from agree(me)
                yield from summed(me, me.gradient if self.fused else me.of(me.gradient, call), self.algorithm)
            yield from me.update() if self.sparse_as_dense else sum_by_kind(me, self.algorithm, self.fused)
            if me.rank == me.master:
                yield from me.evaluate()
