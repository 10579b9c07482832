"""Fixed minibatch: fix the batch, let the time vary."""

from __future__ import annotations

from dataclasses import dataclass

from sim.protocols.base import Protocol
from sim.verbs import gather
from sim.verbs.me import GRADIENT, PARAMETERS


@dataclass(frozen=True)
class FixedMinibatch(Protocol):
    """Fixed minibatch, synchronous, master and workers.

    Every worker computes the gradient of its whole minibatch; the master waits for all of them, so the slowest decides.
    Baseline of Ferdinand, Al-Lawati, Draper, Nokleby, "Anytime Minibatch", ICLR 2019 (arXiv 2006.05752), section 5.
    """

    name = "fmb"

    def worker(self, me):
        for _ in me.steps():
            yield from me.take_up((yield from me.receive(me.master)))
            yield from me.sleep()
            yield from me.compute()
            yield from me.send(GRADIENT, me.master)

    def master(self, me):
        for _ in me.steps():
            yield from me.send(PARAMETERS, me.workers)
            yield from gather(me, me.workers)
            yield from me.update()
            yield from me.evaluate()

    def alone(self, me):
        for _ in me.steps():
            yield from me.sleep()
            yield from me.compute()
            yield from me.update()
            yield from me.evaluate()
