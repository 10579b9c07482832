"""Anytime minibatch with delayed gradients: workers compute for a fixed time, and the master updates in fixed time."""

from dataclasses import dataclass

from sim.language.text import Delayed
from sim.language.verbs import compute_renewing, gather_until, hand_on, spread


@dataclass(frozen=True)
class AnytimeDelayedGradients(Delayed):
    """Al-Lawati, Ferdinand, Draper, "Anytime Minibatch with Delayed Gradients", 2020 (arXiv 2012.08616)."""

    time_limit_s: float = 0.06  # seconds that a worker computes for a gradient, its sleep included
    partitions: int = 16  # micro-batches of a minibatch, each on the newest weights that have come
    window_s: float = 0.1  # from one update to the next, which takes at least one gradient

    name, servers, micros = "amb-dg", 1, "partitions"

    def __call__(self, me):
        if me.rank == me.master:
            yield from spread(me, me.weights, me.workers)
            end_s = me.now() + self.window_s
            for _ in me.steps():
                samples = yield from gather_until(me, me.workers, me.gradient, end_s)
                yield from me.update(samples=samples)
                end_s = me.now() + self.window_s
                yield from me.evaluate()
                yield from spread(me, me.weights, me.workers)
            return
        going, sent = (yield from me.follow(me.master, me.weights)), []
        while going:
            end_s = me.now() + self.time_limit_s
            yield from me.sleep()
            yield from compute_renewing(me, end_s, self.partitions)
            sent = yield from hand_on(me, me.master, sent)
            going = yield from me.follow(me.master, me.weights, wait=False)
