"""Anytime minibatch with delayed gradients: workers compute for a fixed time, the master updates in fixed time."""

from __future__ import annotations

from dataclasses import dataclass

from sim.base.ranges import check_seconds
from sim.protocols.amb import AnytimeMinibatch
from sim.protocols.base import Protocol
from sim.verbs import answer, compute_renewing, newest, take
from sim.verbs.me import GRADIENT


@dataclass(frozen=True)
class AnytimeDelayedGradients(AnytimeMinibatch):
    """Anytime minibatch with delayed gradients, as the AMB repository (T. Adikari) runs it.

    Al-Lawati, Ferdinand, Draper, "Anytime Minibatch with Delayed Gradients", 2020 (arXiv 2012.08616); Al-Lawati, Adikari,
    Draper, "Asynchronous delayed optimization with time-varying minibatches", JSAIT 2021. The master updates with all
    gradients that have come when `window_s` has passed since its last update, at least one, and sends the parameters to all.
    Workers never wait: a gradient travels while the next is computed, and the newest parameters are taken up before each
    partition. A gradient so may be of several versions of them, and counts as of the oldest.

    Args:
        window_s: seconds from one update of the master to the next.
        delay_std_s: every message is delayed by |N(0, delay_std_s)| seconds where it is received; messages overtake.
    """

    window_s: float = 0.1
    delay_std_s: float = 0.0

    name = "amb-dg"
    alone = Protocol.alone  # which is refused: one process has no delays

    def __post_init__(self):
        super().__post_init__()
        check_seconds("--set window_s", self.window_s)
        check_seconds("--set delay_std_s", self.delay_std_s)

    def worker(self, me):
        while (yield from newest(me, me.master)):
            yield from self.compute(me)
            yield from me.send(GRADIENT, me.master, wait=False)

    def master(self, me):
        yield from answer(me, me.workers)
        window_ends_s = me.now_s + self.window_s
        while letter := (yield from take(me, me.workers)):
            yield from me.add(letter)
            while letter := (yield from take(me, me.workers, until_s=window_ends_s)):
                yield from me.add(letter)
            yield from me.update()
            window_ends_s = me.now_s + self.window_s
            yield from me.evaluate()
            yield from answer(me, me.workers)

    def compute(self, me):
        """One worker's step; the clock starts before the sleep."""
        deadline_s = me.now_s + self.time_limit_s
        yield from me.sleep()
        yield from compute_renewing(me, deadline_s, self.partitions, me.master)
