"""Anytime minibatch with delayed gradients: workers compute for a fixed time, and the master updates in fixed time."""

from dataclasses import dataclass

from sim.language.text import Text
from sim.language.verbs import compute, fetch, gather_until, hand_on, spread, time_left


@dataclass(frozen=True)
class AnytimeDelayedGradients(Text):
    """Al-Lawati, Ferdinand, Draper, "Anytime Minibatch with Delayed Gradients", 2020 (arXiv 2012.08616)."""

    time_limit_s: float = 0.06  # seconds that a worker computes for a gradient, its sleep included
    partitions: int = 16  # micro-batches of a minibatch, each on the newest weights that have come
    window_s: float = 0.1  # from one update to the next, which takes at least one gradient
    delay_std_s: float = 0.0  # of messages that are held back where they have come (sim.language.text)

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
            end_s, micro = me.now() + self.time_limit_s, 0
            yield from me.sleep()
            yield from fetch(me)
            while micro == 0 or (micro < self.partitions and time_left(me, end_s)):
                if micro:
                    yield from me.take(me.master, me.weights, newest=True, until_s=me.now())
                yield from compute(me, micro, self.partitions)
                micro += 1
            sent = yield from hand_on(me, me.master, sent)
            going = yield from me.follow(me.master, me.weights, wait=False)
