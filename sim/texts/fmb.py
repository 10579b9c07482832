"""Fixed minibatch: fix the batch, let the time vary."""

from dataclasses import dataclass

from sim.language.text import Text
from sim.language.verbs import compute, gather, push, send


@dataclass(frozen=True)
class FixedMinibatch(Text):
    """Synchronous, master and workers: the master waits for the gradients of all.

    Baseline of Ferdinand, Al-Lawati, Draper, Nokleby, "Anytime Minibatch", ICLR 2019 (arXiv 2006.05752), section 5.
    """

    name, servers, alone = "fmb", 1, True

    def __call__(self, me):
        if me.rank == me.master:
            for _ in me.steps():
                yield from send(me, me.weights, me.workers)
                samples = yield from gather(me, me.workers, me.gradient)
                yield from me.update(samples=samples)
                yield from me.evaluate()
        else:
            while (yield from me.follow(me.master, me.weights)):
                yield from me.sleep()
                yield from compute(me)
                yield from push(me, me.servers)
