"""The command that measures a job in each engine, and why an engine that is not there is left out."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path

from experiments.engines import ENGINES, simgrid
from experiments.engines.job import Job
from experiments.engines.measured import measure
from sim.base.errors import RunFailed
from sim.base.home import installed

SMALL, SMALL_TAKES_S = Job(workers=2, steps=2), 120.0
Command = Callable[[Job], list[str]]


def in_python(name: str) -> Command:
    """A process of Python that runs `experiments.engines.child`."""
    return lambda job: [sys.executable, "-m", installed("experiments.engines.child"), name, json.dumps(asdict(job))]


OPTIONAL = {
    "simgrid": simgrid.compiled,
    "simgrid-semaphores": partial(simgrid.compiled, way=simgrid.SEMAPHORES),
}


def available(folder: Path) -> tuple[dict[str, Command], list[str]]:
    """The commands of the engines that are here, and a line for each that is not; programs are compiled into a folder."""
    commands, left_out = {}, []
    for name, engine in ENGINES.items():
        try:
            commands[name] = OPTIONAL[name](folder) if name in OPTIONAL else in_python(name)
            if name in OPTIONAL and measure(commands[name](SMALL), SMALL_TAKES_S) is None:
                raise RunFailed(f"a small job takes it more than {SMALL_TAKES_S:.0f} s")
        except RunFailed as error:
            commands.pop(name, None)
            left_out.append(f"{engine.title} is left out: {error}")
    return commands, left_out
