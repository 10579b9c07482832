"""Horovod: allreduce of fused gradients while back-propagation goes on."""

from __future__ import annotations

from dataclasses import dataclass

from sim import collectives
from sim.base.errors import WrongSetting
from sim.base.ranges import MOST_BYTES, check_integer, check_seconds
from sim.protocols.base import Protocol
from sim.verbs import compute_by_layer, reduce_in_cycles

# As PyTorch's DistributedDataParallel sums (torch/nn/parallel/distributed.py): buckets of 25 MiB as soon as they are full, by NCCL's ring.
DDP = {"algorithm": "ring", "fusion_bytes": 25 * 2**20, "cycle_s": 0.0}
ORDERS = ("parameters", "uniform", "end")


@dataclass(frozen=True)
class Horovod(Protocol):
    """Synchronous data parallelism by allreduce that overlaps with back-propagation.

    Sergeev and Del Balso, "Horovod: fast and easy distributed deep learning in TensorFlow", 2018 (arXiv 1802.05799); its background
    thread, horovod/common/operations.cc. In each cycle ranks negotiate which gradients are ready everywhere. Those that fit in the
    fusion buffer are copied in, summed and copied out together. A gradient alone is not copied.

    A real run is Horovod's own where it is installed; `real.run --runtime mpi` runs this text. TensorFlow then computes in a thread
    of its own and hands each gradient over when it has it. `parameters` and `uniform` are therefore one order: TensorFlow's. The main
    thread negotiates and sums. As in simulation it leaves out cycles in which nothing is ready.

    Args:
        algorithm: as for allreduce.
        fusion_bytes: of the buffer (HOROVOD_FUSION_THRESHOLD); 0 fuses nothing. 64 MiB before version 0.21.
        cycle_s: least seconds from one cycle's start to the next's (HOROVOD_CYCLE_TIME). 5 ms before version 0.21.
        order: the moments at which gradients are ready in the backward pass, the last variable's first: after time in proportion to
            `parameters`, or `uniform`, because operations by layer are not known; or all at the `end`.
        by_name: in simulation ranks negotiate in one message to rank 0 for each gradient, as before Horovod's collective control
            plane (its pull request 276, 2018); else, and for real, with all of them at once, along trees.
    """

    algorithm: str = "auto"
    fusion_bytes: int = 128 * 2**20
    cycle_s: float = 1e-3
    order: str = "parameters"
    by_name: bool = False

    name, in_step = "horovod", True

    def __post_init__(self):
        if self.algorithm not in collectives.SETTINGS:
            raise WrongSetting("--set algorithm", self.algorithm, ", ".join(collectives.SETTINGS))
        check_integer("--set fusion_bytes", self.fusion_bytes, 0, MOST_BYTES)
        check_seconds("--set cycle_s", self.cycle_s)
        if self.order not in ORDERS:
            raise WrongSetting("--set order", self.order, ", ".join(ORDERS))

    def worker(self, me):
        background = self.algorithm, self.fusion_bytes, self.cycle_s, self.by_name
        for _ in me.steps():
            yield from me.sleep()
            yield from me.beside(compute_by_layer(me, self.order), reduce_in_cycles(me, *background))
            yield from me.update()
            yield from me.evaluate()
