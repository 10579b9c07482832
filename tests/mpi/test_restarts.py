"""A real run whose rank is killed goes on from its checkpoint, and ends with the parameters of a run that nobody disturbed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from real.launching.supervisor import RANK
from real.recording import parameters
from sim.recording import traces

psutil = pytest.importorskip("psutil")
ROOT = Path(__file__).parents[2]
JOB = (
    "--engine numpy --protocol {} --workload mlp --batch 32 --steps 60 --warmup 0 --workers 2 --optimiser mom --seed 3"
)
SLOW = "constant(value=100ms)"  # of a run that is to be killed: it goes on for 5 s after its first checkpoint


def start(protocol, folder, name, stragglers, *more):
    line = [
        sys.executable,
        "-m",
        "real.run",
        *JOB.format(protocol).split(),
        "--stragglers",
        stragglers,
        "--quiet",
        "--json",
    ]
    line += ["--trace", folder / f"{name}.parquet", "--parameters", folder / f"{name}.npz", *more]
    environment = {**os.environ, "TMPDIR": str(folder)}
    pipe = subprocess.PIPE
    return subprocess.Popen(list(map(str, line)), stdout=pipe, stderr=pipe, text=True, cwd=ROOT, env=environment)


def kill(process, rank):
    for child in psutil.Process(process.pid).children(recursive=True):
        if child.environ().get(RANK) == str(rank):
            child.send_signal(signal.SIGKILL)
            return
    raise AssertionError("no such rank")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The parameters that a run ends with; those of an allreduce are the same, but for the order of sums (test_real_allreduce)."""
    folder = tmp_path_factory.mktemp("plain")
    plain = start("fmb", folder, "plain", "none")
    _, err = plain.communicate(timeout=1200)
    assert plain.returncode == 0, err
    return parameters.read(folder / "plain.npz")


@pytest.mark.parametrize(("protocol", "rank"), [("fmb", 0), ("allreduce", 1)])
def test_a_run_goes_on_where_a_rank_was_killed(tmp_path, undisturbed, protocol, rank):
    process = start(protocol, tmp_path, "killed", SLOW, "--restarts", 2, "--checkpoint-every", 7)
    while not list(tmp_path.glob("trainsim-attempts-*/checkpoint.npz")):
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    kill(process, rank)
    out, err = process.communicate(timeout=1200)
    assert process.returncode == 0, err
    assert f"rank {rank} died" in err
    assert "restart 1 of 2, from step" in err
    found = parameters.read(tmp_path / "killed.npz")
    for name, values in undisturbed.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-4, atol=1e-5)
    trace = traces.read(tmp_path / "killed.parquet")
    updates = trace.rows[(trace.rows["rank"] == 0) & (trace.rows["activity"] == "update")]
    assert updates["step"].tolist() == list(range(60))
    assert trace.header.details["restarts"] == 1
    assert '"restarts: 1; of the run' in out
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".npz", ".parquet"]
