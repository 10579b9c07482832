"""The command that measures a job in each engine, and why an engine that is not there is left out."""

from __future__ import annotations

import json
import os
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

CIMBA_PYTHON = (
    "TRAINSIM_CIMBA_PYTHON"  # the environment variable that names a Python that has Cimba, if this one does not
)
SMALL, SMALL_TAKES_S = Job(workers=2, steps=2), 120.0
Command = Callable[[Job], list[str]]


def in_python(name: str, python: str = sys.executable) -> Command:
    """A process of Python that runs `experiments.engines.child`."""
    return lambda job: [python, "-m", installed("experiments.engines.child"), name, json.dumps(asdict(job))]


def in_cimba(_folder: Path) -> Command:
    """A process of the Python that has Cimba."""
    return in_python("cimba", os.environ.get(CIMBA_PYTHON) or sys.executable)


OPTIONAL = {
    "simgrid": simgrid.compiled,
    "simgrid-semaphores": partial(simgrid.compiled, way=simgrid.SEMAPHORES),
    "cimba": in_cimba,
}
HINTS = {"cimba": f"; {CIMBA_PYTHON} may name a Python that has it"}


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
            left_out.append(f"{engine.title} is left out: {error}{HINTS.get(name, '')}")
    return commands, left_out
