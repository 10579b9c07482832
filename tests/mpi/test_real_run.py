"""real.run as a user starts it: alone, as one process, under mpirun; and what it says when that is wrong."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys

import pytest
from processes import ROOT

from real.launching import mpirun as launch
from sim.recording import traces
from sim.recording.curves import curves

pytestmark = pytest.mark.tensorflow
NUMPY = ["--engine", "numpy"]  # where any engine will do; it starts at once
SMALL = shlex.split("--workload mlp --batch 32 --steps 20 --warmup 2 --stragglers niagara*0.001 --json --quiet")


def run(*line, **environment) -> subprocess.CompletedProcess:
    line = (
        [sys.executable, "-m", "real.run", *map(str, line)]
        if line[0] != "mpirun"
        else [launch.mpirun(), *map(str, line[1:])]
    )
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", **environment}
    return subprocess.run(line, capture_output=True, text=True, cwd=ROOT, env=environment, timeout=1200, check=False)


def under_mpirun(ranks: int, *options) -> subprocess.CompletedProcess:
    python = [sys.executable, "-m", "mpi4py", "-m", "real.run"]
    return run("mpirun", "-n", ranks, "--oversubscribe", "--bind-to", "none", *python, *options)


def test_alone_it_launches_and_answers_as_the_simulator_does(tmp_path):
    """And replications have their own luck, and give an interval."""
    trace = tmp_path / "t.parquet"
    files = ["--test-size", 50, "--trace", trace]
    done = run("--protocol", "amb", "--workers", 2, *SMALL, *NUMPY, *files, "--replications", 2)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert (answer["world"], answer["scenario"]["workers"], answer["done"]["steps"]) == ("mpi", 2, 20)
    assert answer["scenario"]["training"]["optimiser"] == "rms"
    low, high = answer["interval"]["samples_per_s"]
    assert 0 < low < answer["samples_per_s"] < high
    assert len(answer["idle_fraction"]) == 3
    found = traces.read(trace)
    assert found.header.complete
    assert found.header.details["data"].startswith("digits")
    assert [step for step, *_ in found.header.evaluations] == [9, 19]
    assert curves(found).step.tolist() == [10, 20]
    assert [path.name for path in tmp_path.iterdir()] == ["t.parquet"]


def test_one_process_alone_trains_undistributed():
    answers = []
    for done in (run("--workers", 0, *SMALL, *NUMPY), under_mpirun(1, *SMALL, *NUMPY)):
        assert done.returncode == 0, done.stderr
        answers.append(json.loads(done.stdout))
    assert [answer["scenario"]["workers"] for answer in answers] == [0, 0]
    assert all(len(answer["idle_fraction"]) == 1 for answer in answers)


@pytest.mark.parametrize(("protocol", "ranks"), [("amb", 3), ("allreduce", 2)])
def test_under_mpirun_it_joins_and_counts_its_workers(protocol, ranks):
    """With a master besides them, or all of them."""
    done = under_mpirun(ranks, *SMALL, *NUMPY, "--protocol", protocol)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert (answer["scenario"]["workers"], len(answer["idle_fraction"])) == (2, ranks)


def test_under_mpirun_another_number_of_workers_is_refused():
    done = under_mpirun(3, "--workers", 5, *SMALL)
    assert done.returncode == 2
    assert "--workers: given 5; allowed: 2" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_mpirun_refuses_is_told(tmp_path):
    hosts = tmp_path / "cluster.toml"
    hosts.write_text('schema = "cluster/1"\n[[hosts]]\nname = "no-such-host.invalid"\ncores = 4\n')
    done = run("--workers", 1, *SMALL, "--cluster", hosts)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("real.run: mpirun ended with")
    assert "Traceback" not in done.stderr


def test_a_setting_that_a_rank_refuses_is_one_line():
    done = run("--workers", 1, *SMALL, "--learning-rate", "-1")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "-1" in done.stderr


def test_a_gpu_that_is_not_there_is_one_line():
    done = run("--workers", 1, *SMALL, "--device", "gpu")
    if done.returncode == 0:
        pytest.skip("this machine has a GPU")
    assert done.returncode == 2
    assert any(line.startswith("real.run: --device: given 'gpu'") for line in done.stderr.splitlines())
