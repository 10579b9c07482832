"""Texts of one's own without a master, and what they leave of the gradients of a step: vectors whose last item is the number of samples."""

from dataclasses import dataclass

import numpy as np
from sim.verbs import allreduce, reduce

from sim.collectives.base import swap
from sim.protocols.base import Protocol


@dataclass(frozen=True)
class Alone(Protocol):
    """Workers that train for themselves; what these texts have in common."""

    def worker(self, me):
        for step in me.steps():
            yield from me.sleep()
            yield from me.compute()
            yield from self.mix(me, step)
            yield from me.update()
            yield from me.evaluate()

    def mix(self, me, step):
        return
        yield


@dataclass(frozen=True)
class Drifting(Alone):
    """Workers sum in steps that `every` divides, and else go on with their own gradients."""

    every: int = 3

    def mix(self, me, step):
        if step % self.every == 0:
            yield from allreduce(me, "ring")

    @staticmethod
    def expected(step, vectors, every=3):
        """What `mix` leaves of vectors whose last item is the number of samples."""
        return [sum(vectors)] * len(vectors) if step % every == 0 else vectors


@dataclass(frozen=True)
class Gossip(Alone):
    """Each worker adds its neighbour's gradient, in turn the one before and the one after."""

    def mix(self, me, step):
        peer = self.peer(me.rank, step, len(me.workers))
        whole = slice(0, me.scenario.summed_items + 1)
        yield from me.exchange(swap(peer, whole, whole, adds=True))

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
    """The first 50 numbers are summed; of the others, and of the number of samples, each worker has its own."""

    def mix(self, me, step):
        yield from reduce(me, "ring", slice(0, 50))

    @staticmethod
    def expected(step, vectors):
        """As above."""
        return [np.concatenate([sum(vectors)[:50], mine[50:]]) for mine in vectors]


@dataclass(frozen=True)
class Swapped(Alone):
    """Two pieces of the gradient are exchanged one after the other; the second replaces one's own."""

    def mix(self, me, step):
        peer, items = me.rank ^ 1, me.scenario.summed_items
        yield from me.exchange(swap(peer, slice(0, 70), slice(0, 70), adds=True))
        yield from me.exchange(swap(peer, slice(70, items), slice(70, items), adds=False))

    @staticmethod
    def expected(step, vectors):
        """As above."""
        others = [vectors[rank ^ 1] for rank in range(len(vectors))]
        return [
            np.concatenate([(mine + other)[:70], other[70:-1], mine[-1:]])
            for mine, other in zip(vectors, others, strict=True)
        ]


@dataclass(frozen=True)
class Both(Alone):
    """Pieces are exchanged, and then all sum."""

    def mix(self, me, step):
        yield from me.exchange(swap(me.rank ^ 1, slice(0, 9), slice(0, 9), adds=True))
        yield from allreduce(me, "ring")


@dataclass(frozen=True)
class Twice(Alone):
    """Two calls sum one piece."""

    def mix(self, me, step):
        yield from reduce(me, "ring", slice(0, 50))
        yield from reduce(me, "ring", slice(40, 60))
