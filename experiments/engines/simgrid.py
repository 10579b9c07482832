"""The job as an S4U program of SimGrid (`simgrid_fmb.cpp`), compiled where there are a compiler and SimGrid's headers."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from experiments.engines.job import UPDATE_S, Job
from experiments.engines.process import last_line
from sim.base.errors import RunFailed

SOURCE = Path(__file__).with_name("simgrid_fmb.cpp")
COMPILER, FLAGS = "g++", ("-std=c++17", "-O2")
HEADER = "simgrid/s4u.hpp"
MESSAGES, SEMAPHORES = "messages", "semaphores"  # see the program


def command(way: str, folder: Path, job: Job) -> list[str]:
    """The command of a job in one of two ways; the program is compiled into a folder once.

    Raises:
        RunFailed: there is no compiler or no SimGrid, or they do not take the program.
    """
    program = folder / SOURCE.stem
    if not program.exists():
        _compile(program)
    return [str(program), way, *map(str, (job.workers, job.steps, job.port_s, UPDATE_S, job.mu, job.sigma, job.seed))]


def _compile(program: Path) -> None:
    compiler = shutil.which(COMPILER)
    if compiler is None:
        raise RunFailed(f"there is no {COMPILER}")
    words = [compiler, *FLAGS, str(SOURCE), "-o", str(program), "-lsimgrid"]
    done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if f"{HEADER}: No such file" in done.stderr:
        raise RunFailed(f"{COMPILER} finds no {HEADER} (Debian: libsimgrid-dev)")
    if done.returncode:
        complaint = next((line for line in done.stderr.splitlines() if "error" in line), last_line(done.stderr))
        raise RunFailed(f"{COMPILER} does not compile {SOURCE.name}: {complaint}")
