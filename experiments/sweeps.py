"""How long a sweep of ten thousand scenarios takes, and a plan over more than twenty thousand configurations.

Some scenarios of each kind of experiments/grids/ten_thousand.toml are simulated one after another in this process by the engine, and one
run of a few of them by the event world. Their milliseconds are those of a core. Loading and compiling the engine does not count. Then the
whole grid is swept by the two commands that its file names, on the cores of this machine and by the ranks of mpirun, and the plan is
made, in the seconds of a clock. Other work on the machine makes all of that longer: the load average says how much there was.
"""

from __future__ import annotations

import math
import os
import random
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from experiments.kit import pages
from real.launching import mpirun
from sim import needs, options
from sim.base.errors import RunFailed
from sim.base.home import installed
from sim.base.progress import each
from sim.engine import install
from sim.plans import plan, question
from sim.simulation import simulate
from sim.sweep import swept
from sim.sweeps import grid, jobs, pools

if TYPE_CHECKING:
    from rich.table import Table

    from sim.sweeps.jobs import Job

GRID = Path(__file__).parent / "grids" / "ten_thousand.toml"
ROOT = Path(__file__).parents[1]
EACH, DEMO_EACH = 20, 2  # scenarios of each kind
EVENTS = 3  # of these that the event world simulates, which takes seconds each
SWEPT, DEMO_SWEPT = 1_000, 12  # scenarios that are built, and those of the demo's sweep
RANKS = 3
SAME = 1e-9  # seconds, and shares of idle time
PLAN = {
    "workload": "resnet50",
    "samples_per_s": 20_000,
    "protocols": ["allreduce", "horovod", "ps-sync"],
    "counts": [1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64],
    "batches": [16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],
    "servers": [1, 2, 4, 8],
    "placements": ["round-robin", "greedy"],
}
DEMO_PLAN = {**PLAN, "protocols": ["allreduce"], "hosts": ["g5.xlarge"], "counts": [1, 2, 4], "samples_per_s": 500}
PLAN_S = 60.0


class Spent(NamedTuple):
    """Milliseconds of a core for a scenario of one kind, in the mean.

    Args:
        event: one run by events.
        engine: all runs by the engine; None where it is not compiled.
        apart: the largest difference between both first runs, in seconds and shares of idle time.
    """

    event: float
    engine: float | None
    apart: float


def run(out: Path, seed: int = 0, *, demo: bool = False) -> None:
    """Print milliseconds by kind, and how long the whole sweep and the plan took; the rows of the sweep go to out/sweep.parquet.

    Args:
        demo: few scenarios of each kind, and a small sweep and plan.
    """
    read = options.Readers(remember=True)
    asked = grid.crossed(grid.read(str(GRID)), read)
    kinds = by_kind(asked, seed, DEMO_EACH if demo else EACH)
    wanted = {kind: [jobs.of_options(one, read) for one in some] for kind, (some, _) in kinds.items()}
    spent = {kind: of_kind(some) for kind, some in each(wanted.items(), "simulating", lambda item: item[0])}
    pages.show(table({kind: (count, spent[kind]) for kind, (_, count) in kinds.items()}))
    if not install.keep():
        pages.show("numba does not compile here: the event world simulates all")
    begun_s, some = time.process_time(), asked[:: len(asked) // (DEMO_SWEPT if demo else SWEPT)]
    whole = [jobs.of_options(one, read) for one in some]
    pages.show(f"Building {len(whole):,} scenarios: {1e3 * (time.process_time() - begun_s) / len(whole):.2f} ms each")
    pages.show(*[of_sweep(whole, out)] if demo else [of_command(words, out) for words in ([], by_ranks())])
    pages.show(
        of_plan(seed, demo), f"Load average of the last minutes: {os.getloadavg()[1]:.1f} on {needs.cores()} cores"
    )


def by_kind(asked: list[Namespace], seed: int, count: int) -> dict[str, tuple[list[Namespace], int]]:
    """Of each kind of scenario some, drawn at random, and how many there are."""
    found: dict[str, list[Namespace]] = defaultdict(list)
    for one in asked:
        settings = [word for word in one.set if word.startswith("algorithm=")]
        found[" ".join([one.protocol, *settings])].append(one)
    draw = random.Random(seed)
    return {kind: (draw.sample(some, min(count, len(some))), len(some)) for kind, some in found.items()}


def of_kind(some: list[Job]) -> Spent:
    """The cost of scenarios of a kind."""
    event_ms, before = _timed(some[:EVENTS], "event", 1)
    if not install.keep():
        return Spent(event_ms, None, 0.0)
    _timed(some[:1], "engine", 1)  # loads it
    engine_ms, after = _timed(some, "engine", some[0].how.replications)
    return Spent(event_ms, engine_ms, max(float(np.abs(a - b[:1]).max()) for a, b in zip(before, after, strict=False)))


def _timed(some: list[Job], world: str, replications: int | None) -> tuple[float, list[np.ndarray]]:
    begun_s, found = time.process_time(), []
    for job in some:
        assert job.scenario
        outcome = simulate(job.scenario, world, replications).outcome
        found.append(np.concatenate([outcome.step_s, outcome.idle_fraction], axis=1))
    return 1e3 * (time.process_time() - begun_s) / len(some), found


def table(found: dict[str, tuple[int, Spent]]) -> Table:
    """A row for each kind, and their mean as they are in the grid."""
    headings = "scenario", "how many", "events, one run", "engine, all runs", "apart"
    shown = pages.table("Milliseconds of a core for a scenario", *headings)
    shown.columns[0].justify = "left"
    for kind, (count, spent) in found.items():
        how = "-" if spent.engine is None else f"{spent.engine:.1f}"
        shown.add_row(kind, f"{count:,}", f"{spent.event:.1f}", how, f"{spent.apart:.0e}")
    counts = np.array([count for count, _ in found.values()])
    means = [
        np.average([getattr(spent, name) or math.nan for _, spent in found.values()], weights=counts)
        for name in ("event", "engine")
    ]
    shown.add_row("all", f"{counts.sum():,}", *(f"{mean:.1f}" for mean in means), "")
    shown.add_row("seconds of a core for all", "", *(f"{counts.sum() * mean / 1e3:.0f}" for mean in means), "")
    return shown


def of_sweep(whole: list[Job], out: Path) -> str:
    """A sweep on all cores."""
    with tempfile.TemporaryDirectory(dir=out) as folder:
        path, begun_s = Path(folder) / "sweep.parquet", time.monotonic()
        rows = swept(whole, str(path), pools.of_size(None), resume=False)
        took_s = time.monotonic() - begun_s
        path.replace(out / "sweep.parquet")
    failed = len(rows) - rows["error"].null_count
    return f"A sweep of {len(rows):,} of these scenarios on {needs.cores()} cores: {took_s:.0f} s, {failed} failed"


def by_ranks() -> list[str]:
    """The words that start a sweep's ranks: one deals, and one a core simulates."""
    about = ["--bind-to", "none", "--oversubscribe", "--allow-run-as-root"]
    return [mpirun.mpirun(), "-n", str(RANKS), *about]


def of_command(words: list[str], out: Path) -> str:
    """The whole grid by the command of its file, in seconds of a clock from the shell.

    Raises:
        RunFailed: the command fails.
    """
    path = out / ("ranks.parquet" if words else "sweep.parquet")
    futures = ["-m", "mpi4py.futures"] if words else []
    line = [
        *words,
        sys.executable,
        *futures,
        "-m",
        installed("sim.sweep"),
        str(GRID.relative_to(ROOT)),
        "-o",
        str(path.resolve()),
    ]
    begun_s = time.monotonic()
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise RunFailed(f"{' '.join(line)}: {done.stderr.strip()}")
    how = f"{RANKS} ranks of mpirun on {needs.cores()} cores" if words else f"{needs.cores()} cores"
    return f"The whole grid on {how}: {time.monotonic() - begun_s:.0f} s, {done.stdout.split(': ')[-1].strip()}"


def of_plan(seed: int, demo: bool) -> str:
    """A plan on all cores."""
    found = plan.answer(
        question.read(None, {**(DEMO_PLAN if demo else PLAN), "seed": seed}), pools.of_size(None), PLAN_S
    )
    cut = "" if found.whole else ", cut short"
    said = f"{found.configurations:,} configurations screened, {len(found.simulated):,} simulated"
    return f"A plan on {needs.cores()} cores: {said}, {found.wall_s:.0f} s{cut}"
