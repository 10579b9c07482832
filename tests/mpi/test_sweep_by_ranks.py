"""A sweep whose scenarios are simulated by the ranks of mpirun."""

from __future__ import annotations

import os
import subprocess
import sys

import pandas as pd
import pyarrow.parquet as pq
from processes import ROOT

from real.launching import mpirun as launch

GRID = 'schema = "sweep/1"\n[options]\nprotocol = ["amb", "ps-async"]\nworkers = [1, 2, 3]\n'
GRID += 'workload = "mlp"\nsteps = 4\nwarmup = 1\nreplications = 2\n[[scenarios]]\nseed = [0, 1]\n'
LEFT = 5


def test_ranks_give_the_rows_that_processes_give(tmp_path):
    """The same file and the same command, without mpirun and with: there five rows are left of a sweep that was killed, and stay."""
    (tmp_path / "grid.toml").write_text(GRID)
    mpirun = [launch.mpirun(), "-n", "3", "--oversubscribe", "--bind-to", "none", "--allow-run-as-root", sys.executable]
    words, rows = ["-m", "sim.sweep", "grid.toml", "--resume", "-o"], {}
    for name, started in (("alone", [sys.executable]), ("ranks", [*mpirun, "-m", "mpi4py.futures"])):
        line = [*started, *words, f"{name}.parquet"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            line, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=1200, check=False
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.endswith(f"{name}.parquet: 12 of 12 scenarios simulated\n")
        rows[name] = pd.read_parquet(tmp_path / f"{name}.parquet")
        left = tmp_path / "ranks.parquet.parts"
        left.mkdir(exist_ok=True)
        pq.write_table(pq.read_table(tmp_path / f"{name}.parquet")[:LEFT], left / "part-000000.parquet")
    assert rows["ranks"]["error"].isna().all()
    same = rows["ranks"]["wall_s"] == rows["alone"]["wall_s"]
    assert same[:LEFT].all()
    assert not same[LEFT:].any()
    pd.testing.assert_frame_equal(*(one.drop(columns="wall_s") for one in rows.values()))
