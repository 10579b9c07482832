"""Have a process measure a job, and read what it says."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from sim.base.errors import RunFailed
from sim.base.home import installed

# The folder of all packages, for a Python that does not have them.
OURS = Path(__file__).parents[1 + installed("experiments.engines").count(".")]


@dataclass(frozen=True)
class Measured:
    """The time and memory of one job in one engine.

    Args:
        step_s: simulated seconds of each step, shape (steps,).
        cpu_s: seconds of a core, without imports and compilation.
        wall_s: seconds by the clock, likewise.
        before_bytes: memory of the process before the job.
        peak_bytes: the most memory that it had.
    """

    step_s: list[float]
    cpu_s: float
    wall_s: float
    before_bytes: int
    peak_bytes: int


Results = dict[tuple[str, int], list[Measured]]  # by engine and number of workers


def measure(command: list[str], longest_s: float) -> Measured | None:
    """The measurement of a process; None if that takes longer than `longest_s`.

    Raises:
        RunFailed: the process cannot be started, or fails.
    """
    path = os.pathsep.join(filter(None, [str(OURS), os.environ.get("PYTHONPATH")]))
    about = {
        "capture_output": True,
        "text": True,
        "stdin": subprocess.DEVNULL,
        "env": os.environ | {"PYTHONPATH": path},
    }
    try:
        done = subprocess.run(command, timeout=longest_s, check=False, **about)
    except subprocess.TimeoutExpired:
        return None
    except OSError as error:
        raise RunFailed(f"{command[0]} does not run ({error.strerror})") from error
    if done.returncode:
        raise RunFailed(f"{Path(command[0]).name} failed: {last_line(done.stderr)}")
    return Measured(**json.loads(done.stdout.splitlines()[-1]))


def last_line(text: str) -> str:
    """The last line that is not blank: what a failed program says in the end."""
    return next((" ".join(line.split()) for line in reversed(text.splitlines()) if line.strip()), "it said nothing")
