"""A protocol of one's own: `python -m sim.run --protocol growing_limit:GrowingLimit` in this folder."""

from dataclasses import dataclass

from trainsim.protocols.amb import AnytimeMinibatch
from trainsim.verbs.me import GRADIENT


@dataclass(frozen=True)
class GrowingLimit(AnytimeMinibatch):
    """Anytime minibatch with short steps first, while gradients of few samples are good enough, and longer ones later.

    Args:
        growth: factor on the time limit from one step to the next.
        longest_s: seconds that the limit ends at.
    """

    growth: float = 1.05
    longest_s: float = 0.2

    def worker(self, me):
        limit_s = self.time_limit_s
        for _ in me.steps():
            yield from me.take_up((yield from me.receive(me.master)))
            deadline_s = me.now_s + limit_s
            yield from me.sleep()
            yield from me.compute_until(deadline_s, self.partitions)
            yield from me.send(GRADIENT, me.master)
            limit_s = min(limit_s * self.growth, self.longest_s)
