"""Local SGD: ranks train apart and average now and then."""

from dataclasses import dataclass

from sim.language.collectives import allreduce
from sim.language.text import Text
from sim.language.verbs import compute


@dataclass(frozen=True)
class LocalSgd(Text):
    """Local SGD (Stich, ICLR 2019), and DiLoCo (Douillard et al., arXiv 2311.08105) with an outer optimiser, Nesterov's.

    Args:
        local: steps from one average to the next.
        outer_rate, momentum: of the outer optimiser; 1 and 0 are the plain average.
    """

    local: int = 4
    outer_rate: float = 1.0
    momentum: float = 0.0

    name, stale, least = "local-sgd", True, {"local": 1}

    def __call__(self, me):
        anchor, velocity = me.vector("anchor", me.weights.items), me.vector("velocity", me.weights.items)
        yield from me.mix(anchor, me.weights, 0, 1)
        for step in me.steps():
            yield from me.sleep()
            yield from compute(me)
            yield from me.update(samples=me.batch)
            if step % self.local == self.local - 1:
                yield from me.mix(me.weights, anchor, 1, -1)  # what has changed
                yield from allreduce(me, me.weights, me.workers)
                if self.momentum:
                    yield from me.mix(velocity, me.weights, self.momentum, 1 / me.n)
                    yield from me.mix(anchor, velocity, 1, self.outer_rate * self.momentum)
                yield from me.mix(anchor, me.weights, 1, self.outer_rate / me.n)
                yield from me.mix(me.weights, anchor, 0, 1)
