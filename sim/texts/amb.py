"""Anytime minibatch: fix the time, let the batch vary."""

from dataclasses import dataclass

from sim.language.text import Text
from sim.language.verbs import compute_until, gather, push, send


@dataclass(frozen=True)
class AnytimeMinibatch(Text):
    """Ferdinand, Al-Lawati, Draper, Nokleby, "Anytime Minibatch", ICLR 2019 (arXiv 2006.05752), algorithm 1, with a master.

    Args:
        time_limit_s: seconds that a worker computes in each step, its sleep included; the last micro-batch overruns them.
        partitions: micro-batches that a minibatch is cut into.
    """

    time_limit_s: float = 0.06
    partitions: int = 16

    name, servers, micros, loops, alone = "amb", 1, "partitions", True, True

    def __call__(self, me):
        if me.rank == me.master:
            for _ in me.steps():
                yield from send(me, me.weights, me.workers)
                samples = yield from gather(me, me.workers, me.gradient)
                yield from me.update(samples=samples)
                yield from me.evaluate()
        else:
            while (yield from me.follow(me.master, me.weights)):
                end_s = me.now() + self.time_limit_s
                yield from me.sleep()
                yield from compute_until(me, end_s, self.partitions)
                yield from push(me, me.servers)
