"""One rank of a launch that runs cells, and keeps their traces and parameters.

mpirun ... python -m mpi4py tests/mpi/keep_all_parameters.py CELLS.json FILE.npz: options of real.run by name. The array NAME has all
parameters that the run ends with, and NAME/RANK those of a rank that updates all of them.
"""

import json
import sys
from pathlib import Path

import numpy as np

from real.campaign import Runners
from real.language.rank import TextRank
from real.launching.polling import barrier
from real.launching.ranks import join
from real.options import scenario
from real.recording.parameters import joined
from real.run import parse


def train(comm, cells: dict[str, list[str]], file: str) -> None:
    asked = {name: parse(words) for name, words in cells.items()}
    runners, kept, follow = Runners(comm, list(asked.values())), {}, TextRank.follow
    for name, cell in asked.items():
        mine = []

        def keep(me, said=None, mine=mine):
            follow(me, said)
            mine.append((me.parameters.copy(), me.pieces()))

        TextRank.follow = keep
        trace = runners.of(cell).run(scenario(cell))
        if trace is not None:
            trace.write(cell.trace)
        barrier(comm)
        every = [of for one in comm.gather(mine) or [] for of in one]
        kept |= {f"{name}/{rank}": values for rank, (values, _) in enumerate(every) if values.size}
        if every:
            pieces = [piece for _, held in every for piece in held]
            whole = joined(scenario(cell).workload, pieces).values()
            kept[name] = np.concatenate([values.ravel() for values in whole])
    if comm.rank == 0:
        np.savez(file, **kept)


if __name__ == "__main__":
    join("keep_all_parameters", lambda comm: train(comm, json.loads(Path(sys.argv[1]).read_text()), sys.argv[2]))
