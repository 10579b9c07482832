"""Texts of one's own without a master, and what they leave of the gradients of a step: vectors whose last item is the number of samples."""

from dataclasses import dataclass

import numpy as np

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

    @staticmethod
    def expected(step, vectors, every=3):
        """What `mix` leaves of vectors whose last item is the number of samples."""
        return [sum(vectors)] * len(vectors) if step % every == 0 else vectors


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

    @staticmethod
    def expected(step, vectors):
        """As above."""
        return [mine + vectors[Gossip.peer(rank, step, len(vectors))] for rank, mine in enumerate(vectors)]


@dataclass(frozen=True)
class TopPart(Alone):
    """The first 50 numbers are summed; of the others each worker has its own."""

    def mix(self, me, step):
        yield from allreduce(me, me.gradient[:50], me.workers)
        return me.batch

    @staticmethod
    def expected(step, vectors):
        """As above."""
        return [np.concatenate([sum(vectors)[:50], mine[50:]]) for mine in vectors]


@dataclass(frozen=True)
class Swapped(Alone):
    """Two pieces of the gradient are exchanged one after the other; the second replaces one's own."""

    def mix(self, me, step):
        peer, first, second = me.rank ^ 1, me.gradient[:70], me.gradient[70:]
        yield from exchange(me, first, peer, peer, first, adds=True)
        yield from exchange(me, second, peer, peer, second)
        return me.batch

    @staticmethod
    def expected(step, vectors):
        """As above."""
        others = [vectors[rank ^ 1] for rank in range(len(vectors))]
        return [
            np.concatenate([(mine + other)[:70], other[70:-1], mine[-1:]])
            for mine, other in zip(vectors, others, strict=True)
        ]
