"""One rank of a launch that trains the same job by several runtimes, and keeps rank 0's parameters after each.

mpirun ... python -m mpi4py tests/mpi/keep_parameters.py FILE.npz RUNTIME...
"""

import sys

import numpy as np

from real.campaign import Runners
from real.options import scenario
from real.ranks import join
from real.run import parse
from real.waiting import barrier
from real.worlds.mpi import Rank

JOB = ["--workload", "mlp", "--batch", "32", "--warmup", "0", "--optimiser", "sgd", "--stragglers", "none"]
CELLS = {
    "mpi": ["--protocol", "allreduce", "--runtime", "mpi", "--steps", "8"],
    "tensorflow": ["--protocol", "allreduce", "--runtime", "tensorflow", "--steps", "8"],
    "horovod": ["--protocol", "allreduce", "--runtime", "horovod", "--steps", "8"],
    "overlapped": ["--protocol", "horovod", "--steps", "8"],
    "a step more": ["--protocol", "allreduce", "--runtime", "mpi", "--steps", "9"],
}


def train(comm, file: str, names: list[str]) -> None:
    kept, finish = {}, Rank.finish
    cells = {name: parse([*JOB, "--workers", str(comm.size), *CELLS[name]]) for name in names}
    runners = Runners(comm, list(cells.values()))
    for name, cell in cells.items():

        def keep(me, name=name):
            kept[name] = me.parameters.copy()
            finish(me)

        Rank.finish = keep
        runners.of(cell).run(scenario(cell))
        barrier(comm)
    if comm.rank == 0:
        np.savez(file, **kept)
    runners.end()


if __name__ == "__main__":
    join(lambda comm: train(comm, sys.argv[1], sys.argv[2:]))
