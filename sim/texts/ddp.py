"""Data parallelism with gradient buckets that are summed during back-propagation."""

from dataclasses import dataclass

from sim.language.buffers import NAMES, reduced
from sim.language.text import Text
from sim.language.verbs import buckets, update


@dataclass(frozen=True)
class Ddp(Text):
    """Distributed data parallelism (Li et al., "PyTorch Distributed", VLDB 2020, section 3.2).

    Args:
        bucket_mb: MiB of gradients, at least, that one allreduce sums; infinite: all of them.
        accumulate: micro-batches of a minibatch, of which only the last one's backward pass is beside allreduces (`no_sync`).
        algorithm: as of allreduce; NCCL and Gloo take a ring.
    """

    bucket_mb: float = 25.0
    accumulate: int = 1
    algorithm: str = "ring"

    name, in_step, joins, names, micros, infinite = "ddp", True, False, NAMES, "accumulate", ("bucket_mb",)

    def __call__(self, me):
        stretches, last = buckets(me, self.bucket_mb * 2**20), self.accumulate - 1
        for _ in me.steps():
            yield from me.sleep()
            for micro in range(last):
                yield from me.forward(micro=micro, of=self.accumulate)
                yield from me.backward(micro=micro, of=self.accumulate)
            yield from me.forward(micro=last, of=self.accumulate)
            sums = []
            for first, stop in stretches:
                yield from me.backward(first, stop, last, self.accumulate)
                sums.append((yield from me.start(reduced(me, first, stop, self.algorithm), after=sums[-1:])))
            yield from me.wait(sums)
            yield from update(me)
