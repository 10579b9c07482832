"""Allreduce by other people's libraries: Horovod and TensorFlow's collectives train as our text over MPI does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest
from alike import ends_alike, trained
from processes import ROOT, under_mpirun

from calibration.importers import horovod_timeline
from sim.recording.traces import read

pytestmark = [pytest.mark.mpi, pytest.mark.tensorflow]
WITHOUT_HOROVOD = pytest.mark.skipif(find_spec("horovod") is None, reason="Horovod is not installed: `make horovod`")
RANKS, ROUNDS, BATCH = 3, 8, 32
JOB = ["--workload", "mlp", "--batch", BATCH, "--steps", 6, "--warmup", 2, "--optimiser", "sgd", "--stragglers"]
JOB += ["niagara*0.002", "--test-size", 40, "--evaluate-every", 1]
BY_TENSORFLOW = {
    "tensorflow": ["--protocol", "allreduce", "--runtime", "tensorflow"],
    "tensorflow unfused": ["--protocol", "allreduce", "--runtime", "tensorflow", "--set", "fused=False"],
}
BY_HOROVOD = {
    "horovod": ["--protocol", "allreduce", "--runtime", "horovod"],
    "horovod unfused": ["--protocol", "allreduce", "--runtime", "horovod", "--set", "fused=False"],
    "overlapped": ["--protocol", "horovod"],
}
LIBRARIES = [*BY_TENSORFLOW, *(pytest.param(name, marks=WITHOUT_HOROVOD) for name in BY_HOROVOD)]
STEP = ["sleep", "input", "compute", "wait", "receive", "pack", "update"]
# Eight updates at a rate of 0.1 of mean gradients below 1, each a sum of three in another order: at most
# 8 * 0.1 * 3 * 2**-24 = 1.5e-7 apart if no step magnified what the one before left, which a few steps hardly do.
TOLERANCE = 1e-6
BARRIER = ["--protocol", "ps-sync", "--set", "barrier=true", "--steps", 8]
KEPT = {
    "mpi": ["--protocol", "allreduce", "--steps", 8],
    "a step more": ["--protocol", "allreduce", "--steps", 9],
    "master": ["--protocol", "fmb", "--steps", 8],
    "two servers": [*BARRIER, "--runtime", "mpi", "--servers", 2],
    "two servers of TensorFlow": [*BARRIER, "--runtime", "tensorflow", "--servers", 2, "--variable-partitions", 2],
    "tensorflow": [*BY_TENSORFLOW["tensorflow"], "--steps", 8],
    "horovod": [*BY_HOROVOD["horovod"], "--steps", 8],
    "overlapped": [*BY_HOROVOD["overlapped"], "--steps", 8],
}
CELLS = {"mpi": ["--protocol", "allreduce"], **BY_TENSORFLOW, **(BY_HOROVOD if find_spec("horovod") else {})}
COMPARED = [name for name in list(KEPT)[2:] if name not in BY_HOROVOD or find_spec("horovod")]


@pytest.fixture(scope="module")
def folder(campaign):
    """With traces and parameters of runs in one launch; runs of fewer ranks last, to begin the libraries again."""
    plain = ["--workload", "mlp", "--batch", BATCH, "--warmup", 0, "--optimiser", "sgd", "--stragglers", "none"]
    asked = {f"{name}, kept": [*KEPT[name], *plain, "--workers", RANKS] for name in ("mpi", "a step more", *COMPARED)}
    for more, workers in (("", RANKS), (", fewer", RANKS - 1)):
        asked |= {f"{name}{more}": [*cell, *JOB, "--workers", workers] for name, cell in CELLS.items()}
    return campaign(asked, parameters=True)


@pytest.fixture(scope="module")
def recorded(folder):
    """Traces of the same job, by name."""
    return {name: read(folder / f"{name}.parquet") for of in CELLS for name in (of, f"{of}, fewer")}


@pytest.mark.parametrize("fewer", ["", ", fewer"])
@pytest.mark.parametrize("name", LIBRARIES)
def test_it_trains_as_our_text_does(recorded, name, fewer):
    ours, trace = recorded[f"mpi{fewer}"], recorded[f"{name}{fewer}"]
    header, ranks = trace.header, RANKS - bool(fewer)
    assert header.world == ("tensorflow" if name in BY_TENSORFLOW else "horovod")
    assert (header.ranks, header.servers, header.complete) == (ranks, 0, True)
    for activity in ("compute", "update", "evaluate", "sleep"):
        counted = [t.rows[t.rows["activity"] == activity].groupby(["rank", "samples"]).size() for t in (ours, trace)]
        assert counted[0].equals(counted[1])
        assert len(counted[0])
    assert ends_alike(trace)
    losses = [[loss for _, loss, _ in t.header.evaluations] for t in (ours, trace)]
    assert len(losses[0]) == ROUNDS
    assert losses[1] == pytest.approx(losses[0], rel=1e-5)


@pytest.mark.parametrize("name", LIBRARIES)
def test_its_trace_is_a_trace_like_any_other(recorded, name):
    rows = recorded[name].rows
    parameters = 4 * 79510
    for rank in range(RANKS):
        mine = rows[rows["rank"] == rank].sort_values(["start_s", "end_s"])
        assert (mine["start_s"].to_numpy()[1:] >= mine["end_s"].to_numpy()[:-1] - 1e-9).all()
        steps = mine[mine["activity"] != "evaluate"]["activity"].tolist()
        assert [activity for activity in steps if activity != "sleep"] == STEP[1:] * ROUNDS
    moved = rows[rows["activity"] == "receive"]
    assert (moved["bytes"] == parameters).all()
    last_s = rows[rows["activity"] == "compute"].groupby("step")["end_s"].max()
    assert (moved["start_s"] >= moved["step"].map(last_s) - 1e-9).all()


@pytest.mark.parametrize("name", [pytest.param(n, marks=[WITHOUT_HOROVOD] * (n in BY_HOROVOD)) for n in list(KEPT)[2:]])
def test_its_parameters_are_ours(folder, name):
    np.testing.assert_allclose(trained(folder, f"{name}, kept"), trained(folder, "mpi, kept"), rtol=0, atol=TOLERANCE)


def test_the_tolerance_would_see_a_step_too_many(folder):
    assert np.abs(trained(folder, "a step more, kept") - trained(folder, "mpi, kept")).max() > 100 * TOLERANCE


def test_a_rank_that_begins_late_is_waited_for():
    """A campaign begins the library once a run, and its ranks come when they can."""
    under_mpirun(2, "tests/mpi/begin_late.py")


@WITHOUT_HOROVOD
def test_horovods_own_timeline_calibrates_the_model(tmp_path):
    """As a user would: a run with its timeline, a profile of that, a prediction of another run."""
    timeline, profile = tmp_path / "timeline.json", tmp_path / "profile.toml"
    job = ["--workload", "mlp", "--batch", "32", "--steps", "30", "--stragglers", "none", "--workers", "2", "--quiet"]
    _module("real.run", "--protocol", "horovod", *job, HOROVOD_TIMELINE=str(timeline))
    found = horovod_timeline.read(timeline)
    assert found.ranks == 2
    assert len({one.step for one in found.reductions}) in range(30 + 10, 30 + 10 + 5)  # and to warm up
    assert sum(one.bytes for one in found.reductions) % (4 * 79510) == 0
    fitted = ["--from", "horovod-timeline", "--workload", "mlp", "--batch", 32, "-o", profile]
    _module("calibration.fit", timeline, *fitted)
    words = ["--protocol", "horovod", "--set", "algorithm=ring", "--cluster", profile, "--hosts", 4, "--batch", 32]
    answer = json.loads(_module("sim.run", *words, "--stragglers", "none", "--steps", 10, "--json").stdout)
    assert answer["step_s"]["mean"] > 0
    assert sorted(os.listdir(tmp_path)) == ["profile.toml", "timeline.json"]


def _module(module: str, *options, **environment: str) -> subprocess.CompletedProcess:
    line = [sys.executable, "-m", module, *map(str, options)]
    environment = os.environ | environment
    done = subprocess.run(line, capture_output=True, text=True, cwd=ROOT, env=environment, timeout=1200, check=False)
    assert done.returncode == 0, done.stderr
    return done
