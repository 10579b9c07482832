"""Decentralised SGD: ranks average with neighbours, or with a peer that is drawn."""

from dataclasses import dataclass

from sim.language.text import Text, require
from sim.language.verbs import compute, exchange


@dataclass(frozen=True)
class DecentralisedSgd(Text):
    """D-PSGD (Lian et al., NIPS 2017, algorithm 1): the gradient at a rank's own weights is applied to an average of its neighbours'.

    Args:
        drawn: another peer in each step, with half of its weights; else both neighbours on a ring, with a third each.
    """

    drawn: bool = False

    name, stale = "d-psgd", True

    def check(self, job):
        require(job.ranks > 1, "ranks", job.ranks, "an integer from 2")

    def __call__(self, me):
        other, left, right = me.vector("other", me.weights.items), (me.rank - 1) % me.n, (me.rank + 1) % me.n
        for _ in me.steps():
            yield from me.sleep()
            yield from compute(me)
            if self.drawn:
                far = 1 + me.draw(me.n - 1)
                yield from exchange(me, me.weights, (me.rank + far) % me.n, (me.rank - far) % me.n, other)
                yield from me.mix(me.weights, other, 1 / 2, 1 / 2)
            else:
                to_left = yield from me.post(me.weights, left)
                to_right = yield from me.post(me.weights, right)
                yield from me.mix(me.weights, me.weights, 1 / 3, 0)
                for peer in (left, right):
                    yield from me.take(peer, me.weights, adds=True, weight=1 / 3)
                yield from me.wait([to_left, to_right])
            yield from me.update(samples=me.batch)
