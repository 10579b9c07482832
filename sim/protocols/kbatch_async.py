"""K-batch asynchronous: an update of the next K gradients, and nobody waits."""

from __future__ import annotations

from dataclasses import dataclass

from sim.base.ranges import check_integer, check_seconds
from sim.protocols.base import Protocol
from sim.verbs import answer, newest, take
from sim.verbs.me import GRADIENT


@dataclass(frozen=True)
class KBatchAsynchronous(Protocol):
    """K-batch asynchronous SGD with a fixed minibatch, as the AMB repository (T. Adikari) runs it.

    Dutta, Joshi, Ghosh, Dube, Nagpurkar, "Slow and Stale Gradients Can Win the Race", AISTATS 2018, section 2; Al-Lawati,
    Adikari, Draper, "Asynchronous delayed optimization with time-varying minibatches", JSAIT 2021. The master updates with
    the next `gradients` that come, whoever sent them, and sends the parameters to all. A worker has one gradient under way at
    most while it computes the next, and begins each on the newest parameters that have come.

    Args:
        gradients: K, messages that make an update; 0 is as many as there are workers. Of far fewer, parameters wait at the master's port
            for those before: all workers get them after each update.
        delay_std_s: every message is delayed by |N(0, delay_std_s)| seconds where it is received; messages overtake.
    """

    gradients: int = 0
    delay_std_s: float = 0.0

    name = "kbatch-async"

    def __post_init__(self):
        check_integer("--set gradients", self.gradients, 0)
        check_seconds("--set delay_std_s", self.delay_std_s)

    def gradients_per_update(self, workers):
        return self.gradients or workers

    def worker(self, me):
        while (yield from newest(me, me.master)):
            yield from me.sleep()
            yield from me.compute()
            yield from me.send(GRADIENT, me.master, wait=False)

    def master(self, me):
        yield from answer(me, me.workers)
        added, needed = 0, self.gradients_per_update(len(me.workers))
        while letter := (yield from take(me, me.workers)):
            yield from me.add(letter)
            added += 1
            if added == needed:
                yield from me.update()
                yield from me.evaluate()
                yield from answer(me, me.workers)
                added = 0
