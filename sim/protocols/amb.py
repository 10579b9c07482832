"""Anytime minibatch: fix the time, let the batch vary."""

from __future__ import annotations

from dataclasses import dataclass

from sim.base.errors import Default, WrongSetting
from sim.base.ranges import check_integer, check_seconds
from sim.protocols.base import Protocol
from sim.verbs import gather
from sim.verbs.me import GRADIENT, PARAMETERS


@dataclass(frozen=True)
class AnytimeMinibatch(Protocol):
    """Anytime minibatch, synchronous, in the hub form of the AMB repository (T. Adikari).

    Ferdinand, Al-Lawati, Draper, Nokleby, "Anytime Minibatch", ICLR 2019 (arXiv 2006.05752), algorithm 1, with a master in
    place of consensus. The minibatch is cut into micro-batches of int(batch / partitions); the clock is read before each,
    at least one is done, and the last overruns the limit. The induced sleep is inside the limit.

    Args:
        time_limit_s: seconds a worker computes in each step.
        partitions: micro-batches that a minibatch is cut into.
    """

    time_limit_s: float = 0.06
    partitions: int = 16

    name = "amb"

    def __post_init__(self):
        check_seconds("--set time_limit_s", self.time_limit_s)
        check_integer("--set partitions", self.partitions, 1)

    def check(self, scenario):
        if self.partitions > scenario.batch:
            usual = type(self).__dataclass_fields__["partitions"].default
            given = Default(usual) if self.partitions == usual else self.partitions
            raise WrongSetting("--set partitions", given, f"an integer from 1 to the batch, {scenario.batch}")

    def worker(self, me):
        for _ in me.steps():
            yield from me.take_up((yield from me.receive(me.master)))
            yield from self.compute(me)
            yield from me.send(GRADIENT, me.master)

    def master(self, me):
        for _ in me.steps():
            yield from me.send(PARAMETERS, me.workers)
            yield from gather(me, me.workers)
            yield from me.update()
            yield from me.evaluate()

    def alone(self, me):
        for _ in me.steps():
            yield from self.compute(me)
            yield from me.update()
            yield from me.evaluate()

    def compute(self, me):
        """One worker's step; the clock starts before the sleep."""
        deadline_s = me.now_s + self.time_limit_s
        yield from me.sleep()
        yield from me.compute_until(deadline_s, self.partitions)
