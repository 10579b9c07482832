"""One rank of a launch that runs cells, and keeps their traces and every rank's parameters.

mpirun ... python -m mpi4py tests/mpi/keep_all_parameters.py CELLS.json FILE.npz: options of real.run by name; arrays are NAME/RANK.
"""

import json
import sys
from pathlib import Path

import numpy as np

from real.campaign import Runners
from real.launching.ranks import join
from real.options import scenario
from real.run import parse
from real.worlds.mpi import Rank
from real.launching.polling import barrier


def train(comm, cells: dict[str, list[str]], file: str) -> None:
    asked = {name: parse(words) for name, words in cells.items()}
    runners, kept, finish = Runners(comm, list(asked.values())), {}, Rank.finish
    for name, cell in asked.items():
        mine = []

        def keep(me, mine=mine):
            mine.append(me.parameters.copy())
            finish(me)

        Rank.finish = keep
        trace = runners.of(cell).run(scenario(cell))
        if trace is not None:
            trace.write(cell.trace)
        barrier(comm)
        for rank, parameters in enumerate(comm.gather(mine) or []):
            kept |= {f"{name}/{rank}": values for values in parameters}
    if comm.rank == 0:
        np.savez(file, **kept)


if __name__ == "__main__":
    join("keep_all_parameters", lambda comm: train(comm, json.loads(Path(sys.argv[1]).read_text()), sys.argv[2]))
