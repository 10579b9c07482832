"""How long a sweep of ten thousand scenarios takes, and a plan over more than twenty thousand configurations.

The grid is swept by the command that its file names, on the cores of this machine, and then the plan is made, in the seconds of a clock.
Other work on the machine makes all of that longer: the load average says how much there was.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from experiments.kit import pages
from sim import needs
from sim.base.errors import RunFailed
from sim.base.home import installed
from sim.plans import plan, question
from sim.sweeps import pools

GRID = Path(__file__).parent / "grids" / "ten_thousand.toml"
ROOT = Path(__file__).parents[1]
PLAN = {
    "workload": "resnet50",
    "samples_per_s": 20_000,
    "protocols": ["allreduce", "horovod", "ps-sync"],
    "counts": [1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64],
    "batches": [16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],
    "servers": [1, 2, 4, 8],
    "placements": ["round-robin", "greedy"],
}
PLAN_S = 60.0


def run(out: Path, seed: int = 0) -> None:
    """Print how long the sweep takes, and the plan; rows of the sweep go to out/sweep.parquet."""
    pages.show(of_grid(out))
    pages.show(of_plan(seed), f"Load average of the last minutes: {os.getloadavg()[1]:.1f} on {needs.cores()} cores")


def of_grid(out: Path) -> str:
    """The whole grid by the command of its file, in seconds of a clock from the shell.

    Raises:
        RunFailed: the command fails.
    """
    path = out / "sweep.parquet"
    path.unlink(missing_ok=True)  # an earlier run's, which may have been interrupted
    shutil.rmtree(f"{path}.parts", ignore_errors=True)
    sweep = ["-m", installed("sim.sweep"), str(GRID.relative_to(ROOT)), "-o", str(path.resolve())]
    line = [sys.executable, *sweep]
    begun_s = time.monotonic()
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise RunFailed(f"{' '.join(line)}: {done.stderr.strip()}")
    took_s = time.monotonic() - begun_s
    return f"The whole grid on {needs.cores()} cores: {took_s:.0f} s, {done.stdout.split(': ')[-1].strip()}"


def of_plan(seed: int) -> str:
    """A plan on all cores."""
    found = plan.answer(question.read(None, {**PLAN, "seed": seed}), pools.of_size(None), PLAN_S)
    cut = "" if found.whole else ", cut short"
    said = f"{found.configurations:,} configurations screened, {len(found.simulated):,} simulated"
    return f"A plan on {needs.cores()} cores: {said}, {found.wall_s:.0f} s{cut}"
