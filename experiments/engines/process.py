"""A process that measures one job: `python -m experiments.engines.process ENTRY JOB` prints what it took as an object (JSON)."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from pathlib import Path

from experiments.engines.job import Job
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
        peak_bytes: the most memory that the process had.
    """

    step_s: list[float]
    cpu_s: float
    peak_bytes: int


def in_python(entry: str, job: Job) -> list[str]:
    """The command of a job; `entry` is module:function of this package, which returns the seconds of a job's steps."""
    return [sys.executable, "-m", installed("experiments.engines.process"), entry, json.dumps(asdict(job))]


def measure(command: list[str], longest_s: float) -> Measured | None:
    """The measurement of a process; None if that takes longer than `longest_s`.

    Raises:
        RunFailed: the process cannot be started, or fails.
    """
    path = os.pathsep.join(filter(None, [str(OURS), os.environ.get("PYTHONPATH")]))
    environment = os.environ | {"PYTHONPATH": path}
    try:
        done = subprocess.run(
            command,
            timeout=longest_s,
            check=False,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            env=environment,
        )
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


def peak_bytes() -> int:
    """The most memory of this process since its program began; getrusage's maximum may be that of the process that started it."""
    found = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    assert found
    return 1024 * int(found[1])


def main(entry: str, words: str) -> None:
    """Print what a job takes; a small job before it imports and compiles everything."""
    module, _, function = entry.partition(":")
    run, job = getattr(import_module(installed(f"experiments.engines.{module}")), function), Job(**json.loads(words))
    run(replace(job, workers=2, steps=2))
    began_s = time.process_time()
    step_s = run(job)
    cpu_s = time.process_time() - began_s
    print(json.dumps(asdict(Measured(step_s, cpu_s, peak_bytes()))))


if __name__ == "__main__":
    main(*sys.argv[1:])
