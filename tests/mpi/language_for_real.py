"""Ranks that run one of the texts below over MPI; rank 0 prints its steps' samples.

mpirun -n 2 ... python -m mpi4py tests/mpi/language_for_real.py NAME
"""

import sys
from dataclasses import dataclass

from real.language.ranks import run
from real.launching.ranks import join
from sim.language.job import Job
from sim.language.learning import Chain
from sim.language.text import Text


@dataclass(frozen=True)
class OtherSize(Text):
    """Half of the weights is taken for all of them."""

    name = "other-size"

    def __call__(self, me):
        for _ in me.steps():
            if me.rank == 0:
                yield from me.post(me.weights.part(0, 2), 1)
            else:
                yield from me.take(0, me.weights)


@dataclass(frozen=True)
class InTime(Text):
    """Nothing comes in time; a text that waits for ever is stopped; one of two handles is enough."""

    name = "in-time"

    def __call__(self, me):
        for _ in me.steps():
            begin_s = me.now()
            message = yield from me.take(1 - me.rank, until_s=begin_s + 0.02)
            assert message is None
            assert me.now() >= begin_s + 0.02
            endless = yield from me.start(self.endless(me))
            short = yield from me.start(self.short(me))
            yield from me.wait([endless, short], 1)
            yield from me.stop(endless)
            yield from me.wait(endless)
            yield from me.update(samples=1)

    def endless(self, me):
        yield from me.take(1 - me.rank)

    def short(self, me):
        yield from me.work(seconds=0.01)


@dataclass(frozen=True)
class Dies(Text):
    """Rank 1 divides by zero."""

    name = "dies"

    def __call__(self, me):
        for _ in me.steps():
            if me.rank == 1:
                yield from me.work(seconds=1 / 0)
            yield from me.take(1 - me.rank)


def ran(comm) -> None:
    model = Chain(width=4, depth=4)
    job = Job(comm.size, model.layers(), steps=3, batch=4, item_bytes=8)
    text = {one.name: one for one in (OtherSize, InTime, Dies)}[sys.argv[1]]()
    found = run(comm, job, text, model)
    if found is not None:
        print(found.samples)


if __name__ == "__main__":
    join("language_for_real", ran)
