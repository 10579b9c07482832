"""A sweep whose scenarios are simulated by the ranks of mpirun."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd

from real.launching import mpirun as launch
from sim.sweep import sweep

ROOT = Path(__file__).parents[2]
GRID = 'schema = "sweep/1"\n[options]\nprotocol = ["amb", "ps-async"]\nworkers = [1, 2, 3]\n'
GRID += 'workload = "mlp"\nsteps = 4\nwarmup = 1\nreplications = 2\n[[scenarios]]\nseed = [0, 1]\n'


def test_ranks_give_the_rows_that_processes_give(tmp_path):
    """The same file and the same command, with mpirun and without."""
    (tmp_path / "grid.toml").write_text(GRID)
    mpirun = [launch.mpirun(), "-n", "3", "--oversubscribe", "--bind-to", "none", "--allow-run-as-root", sys.executable]
    words = ["-m", "sim.sweep", "grid.toml", "-o"]
    rows = {}
    for name, started in (("ranks", [*mpirun, "-m", "mpi4py.futures"]), ("alone", [sys.executable])):
        line = [*started, *words, f"{name}.parquet"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            line, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=1200, check=False
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout == f"{name}.parquet: 12 of 12 scenarios simulated\n"
        rows[name] = pd.read_parquet(tmp_path / f"{name}.parquet").drop(columns="wall_s")
    assert rows["ranks"]["error"].isna().all()
    pd.testing.assert_frame_equal(rows["ranks"], rows["alone"])


SCRIPT = """
import sys
from mpi4py.futures import MPIPoolExecutor
from sim import Scenario, protocols, read_workload
from sim.sweep import sweep
if __name__ == "__main__":
    job = {"steps": 4, "warmup": 1}
    wanted = [Scenario(protocols.make("fmb"), read_workload("mlp"), workers=n, **job) for n in (1, 2, 3)]
    with MPIPoolExecutor() as executor:
        sweep(wanted, sys.argv[1], executor, replications=2)
"""


def test_a_program_passes_its_own_executor(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    mpirun = [launch.mpirun(), "-n", "3", "--oversubscribe", "--bind-to", "none", "--allow-run-as-root", sys.executable]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    line = [*mpirun, "-m", "mpi4py.futures", "script.py", "x.parquet"]
    done = subprocess.run(
        line, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=1200, check=False
    )
    assert done.returncode == 0, done.stderr
    job = ["--protocol", "fmb", "--workload", "mlp", "--stragglers", "none", "--steps", "4", "--warmup", "1"]
    words = [[*job, "--replications", "2", "--workers", str(workers)] for workers in (1, 2, 3)]
    alone = sweep(words, str(tmp_path / "y.parquet"), processes=1)
    pd.testing.assert_series_equal(pd.read_parquet(tmp_path / "x.parquet")["step_mean_s"], alone["step_mean_s"])
