"""Measure one job in one engine, in a process of its own: `python -m experiments.engines.child ENGINE JOB` prints an object (JSON)."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from experiments.engines import ENGINES
from experiments.engines.job import Job
from sim.base.home import installed


def peak_bytes() -> int:
    """The most memory of this process since its program began; getrusage's maximum may be that of the process that started it."""
    return 1024 * int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1])


def measured(run: Callable[[Job], list[float]], job: Job) -> dict:
    """What a job takes, as experiments.engines.measured.Measured has it; a small job before it imports and compiles everything."""
    run(replace(job, workers=2, steps=2))
    before_bytes, wall_s, cpu_s = peak_bytes(), time.perf_counter(), time.process_time()
    step_s = run(job)
    took = {"wall_s": time.perf_counter() - wall_s, "cpu_s": time.process_time() - cpu_s}
    return {"step_s": step_s, "before_bytes": before_bytes, "peak_bytes": peak_bytes(), **took}


def main(name: str, job: str) -> None:
    """Print what a job takes in an engine."""
    module, _, function = ENGINES[name].entry.partition(":")
    run = getattr(import_module(installed(f"experiments.engines.{module}")), function)
    print(json.dumps(measured(run, Job(**json.loads(job)))))


if __name__ == "__main__":
    main(*sys.argv[1:])
