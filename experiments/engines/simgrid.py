"""The jobs as S4U programs of SimGrid (`simgrid_fmb.cpp`, `simgrid_ranks.cpp`), compiled where there are a compiler and headers."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from experiments.engines.job import COMPUTE_S, UPDATE_S, Job
from experiments.engines.process import last_line
from sim.base.errors import RunFailed

COMPILER, FLAGS = "g++", ("-std=c++17", "-O2")
HEADER = "simgrid/s4u.hpp"


def command(folder: Path, job: Job) -> list[str]:
    """The command of a job; the program is compiled into a folder once.

    Raises:
        RunFailed: there is no compiler or no SimGrid, or they do not take the program.
    """
    source = Path(__file__).with_name("simgrid_fmb.cpp" if job.text == "fmb" else "simgrid_ranks.cpp")
    program = folder / source.stem
    if not program.exists():
        _compile(source, program)
    words: tuple
    if job.text == "fmb":
        words = (job.workers, job.steps, job.port_s, UPDATE_S, job.mu, job.sigma, job.seed)
    else:
        words = (job.text, job.workers, job.steps, job.message_s, COMPUTE_S, *job.shifts)
    return [str(program), *map(str, words)]


def _compile(source: Path, program: Path) -> None:
    compiler = shutil.which(COMPILER)
    if compiler is None:
        raise RunFailed(f"there is no {COMPILER}")
    words = [compiler, *FLAGS, str(source), "-o", str(program), "-lsimgrid"]
    done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if f"{HEADER}: No such file" in done.stderr:
        raise RunFailed(f"{COMPILER} finds no {HEADER} (Debian: libsimgrid-dev)")
    if done.returncode:
        complaint = next((line for line in done.stderr.splitlines() if "error" in line), last_line(done.stderr))
        raise RunFailed(f"{COMPILER} does not compile {source.name}: {complaint}")
