"""Texts of one's own without a master."""

from dataclasses import dataclass

from sim.language.collectives import allreduce
from sim.language.text import Text
from sim.language.verbs import compute, exchange


@dataclass(frozen=True)
class Alone(Text):
    """Workers that train for themselves; what these texts have in common."""

    def __call__(self, me):
        for step in me.steps():
            yield from me.sleep()
            yield from compute(me)
            samples = yield from self.mix(me, step)
            yield from me.update(samples=samples)
            if me.rank == me.master:
                yield from me.evaluate()

    def mix(self, me, step):
        yield from ()
        return me.batch


@dataclass(frozen=True)
class Drifting(Alone):
    """Workers sum in steps that `every` divides, and else go on with their own gradients."""

    every: int = 3

    def mix(self, me, step):
        if step % self.every == 0:
            yield from allreduce(me, me.gradient, me.workers)
        return me.batch * (me.n if step % self.every == 0 else 1)


@dataclass(frozen=True)
class Gossip(Alone):
    """Each worker adds its neighbour's gradient, in turn the one before and the one after."""

    def mix(self, me, step):
        peer = self.peer(me.rank, step, me.n)
        yield from exchange(me, me.gradient, peer, peer, me.gradient, adds=True)
        return 2 * me.batch

    @staticmethod
    def peer(rank, step, workers):
        """Whom a rank swaps with, in a ring of an even number."""
        return (rank + (-1) ** (rank + step + 1)) % workers


@dataclass(frozen=True)
class TopPart(Alone):
    """The first 50 numbers are summed; of the others each worker has its own."""

    def mix(self, me, step):
        yield from allreduce(me, me.gradient[:50], me.workers)
        return me.batch


@dataclass(frozen=True)
class Swapped(Alone):
    """Two pieces of the gradient are exchanged one after the other; the second replaces one's own."""

    def mix(self, me, step):
        peer, first, second = me.rank ^ 1, me.gradient[:70], me.gradient[70:]
        yield from exchange(me, first, peer, peer, first, adds=True)
        yield from exchange(me, second, peer, peer, second)
        return me.batch
