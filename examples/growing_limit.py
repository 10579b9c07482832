"""A protocol of one's own: `python -m sim.run --protocol growing_limit:GrowingLimit` in this folder."""

from dataclasses import dataclass

from trainsim.language.text import Text
from trainsim.language.verbs import compute_until, gather, push, send


@dataclass(frozen=True)
class GrowingLimit(Text):
    """Anytime minibatch with short steps first, while gradients of few samples are good enough, and longer ones later.

    Args:
        time_limit_s: seconds that a worker computes in the first step, its sleep included.
        partitions: micro-batches that a minibatch is cut into.
        growth: factor on the time limit from one step to the next.
        longest_s: seconds that the limit ends at.
    """

    time_limit_s: float = 0.06
    partitions: int = 16
    growth: float = 1.05
    longest_s: float = 0.2

    servers, micros, loops = 1, "partitions", True

    def __call__(self, me):
        if me.rank == me.master:
            for _ in me.steps():
                yield from send(me, me.weights, me.workers)
                samples = yield from gather(me, me.workers, me.gradient)
                yield from me.update(samples=samples)
                yield from me.evaluate()
        else:
            limit_s = self.time_limit_s
            while (yield from me.follow(me.master, me.weights)):
                end_s = me.now() + limit_s
                yield from me.sleep()
                yield from compute_until(me, end_s, self.partitions)
                yield from push(me, me.servers)
                limit_s = min(limit_s * self.growth, self.longest_s)
