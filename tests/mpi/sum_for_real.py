"""One rank of a launch of which some ranks sum vectors of small and many chunks by every algorithm, and compare.

mpirun ... python -m mpi4py tests/mpi/sum_for_real.py
"""

from dataclasses import dataclass

import numpy as np

from real.language.ranks import run
from real.launching.ranks import join
from sim.language.collectives import NAMES, summed
from sim.language.job import Job
from sim.language.learning import Chain
from sim.language.text import Text

RANKS = (1, 2, 3, 5)
SIZES = (1, 30_000, 1_000_000)  # smaller than the ranks, sent at once, and sent when asked for in chunks


@dataclass(frozen=True)
class Sums(Text):
    """Ranks sum the first items of their weights, which are those of all times the rank's number from 1."""

    algorithm: str
    size: int

    def __call__(self, me):
        for _ in me.steps():
            yield from me.mix(me.weights, me.weights, me.rank + 1, 0)
            yield from summed(me, me.weights[: self.size], self.algorithm)


def sums(comm) -> None:
    model = Chain(width=1000, depth=1)
    job = Job(comm.size, model.layers(), item_bytes=8)
    for algorithm in NAMES[1:]:
        for size in SIZES:
            found = run(comm, job, Sums(algorithm, size), model)
            for rank, weights in enumerate(found.weights if found else ()):
                times = np.full(weights.size, rank + 1.0)
                times[:size] = comm.size * (comm.size + 1) / 2
                np.testing.assert_allclose(weights, times * model.weights(), err_msg=f"{algorithm} of {size}")


def sums_of_some(comm) -> None:
    for ranks in RANKS:
        some = comm.Split(comm.rank < ranks, comm.rank)
        if comm.rank < ranks:
            sums(some)


if __name__ == "__main__":
    join("sum_for_real", sums_of_some)
