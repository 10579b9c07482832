"""Allreduce by other people's libraries: Horovod and TensorFlow's collectives train as our text over MPI does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import psutil
import pytest

from calibration.importers import horovod_timeline
from real.parameters import read as read_parameters
from sim.traces import read

pytestmark = [pytest.mark.mpi, pytest.mark.tensorflow]
ROOT = Path(__file__).parents[2]
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
LONGEST_S = 10  # of a run whose rank has died; the requirement, far above the second it takes
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
COMPARED = [name for name in list(KEPT)[2:] if name not in BY_HOROVOD or find_spec("horovod")]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory, campaign):
    """Runs of the same job in one launch, by name; of fewer ranks last, to begin the libraries again."""
    folder = tmp_path_factory.mktemp("libraries")
    cells = {"mpi": ["--protocol", "allreduce"], **BY_TENSORFLOW}
    cells |= BY_HOROVOD if find_spec("horovod") else {}
    asked = {name: [*cell, "--workers", RANKS] for name, cell in cells.items()}
    asked |= {f"{name}, fewer": [*cell, "--workers", RANKS - 1] for name, cell in cells.items()}
    campaign([[*cell, *JOB, "--trace", folder / f"{name}.parquet"] for name, cell in asked.items()], folder)
    return {name: read(folder / f"{name}.parquet") for name in asked}


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
    assert len(set(header.details["parameters_crc32"])) == 1
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


@pytest.fixture(scope="module")
def parameters(tmp_path_factory, campaign):
    """What the same job ends with, float32 (parameters,), by runtime."""
    folder = tmp_path_factory.mktemp("parameters")
    job = ["--workload", "mlp", "--batch", BATCH, "--warmup", 0, "--optimiser", "sgd", "--stragglers", "none"]
    cells = {name: [*KEPT[name], *job, "--workers", RANKS] for name in ("mpi", "a step more", *COMPARED)}
    files = {name: ["--trace", folder / f"{name}.parquet", "--parameters", folder / f"{name}.npz"] for name in cells}
    campaign([[*cell, *files[name]] for name, cell in cells.items()], folder)
    return {name: np.concatenate([v.ravel() for v in read_parameters(files[name][-1]).values()]) for name in cells}


@pytest.mark.parametrize("name", [pytest.param(n, marks=[WITHOUT_HOROVOD] * (n in BY_HOROVOD)) for n in list(KEPT)[2:]])
def test_its_parameters_are_ours(parameters, name):
    np.testing.assert_allclose(parameters[name], parameters["mpi"], rtol=0, atol=TOLERANCE)


def test_the_tolerance_would_see_a_step_too_many(parameters):
    assert np.abs(parameters["a step more"] - parameters["mpi"]).max() > 100 * TOLERANCE


@pytest.mark.parametrize("runtime", ["tensorflow", pytest.param("horovod", marks=WITHOUT_HOROVOD)])
@pytest.mark.parametrize(
    ("rank", "number", "code", "words"),
    [(1, signal.SIGKILL, 1, "rank 1 died"), (None, signal.SIGINT, 130, "interrupted")],
)
def test_what_a_death_or_ctrl_c_does(tmp_path, runtime, rank, number, code, words):
    trace = tmp_path / "t.parquet"
    line = [sys.executable, "-m", "real.run", "--protocol", "allreduce", "--runtime", runtime, "--workload", "mlp"]
    line += ["--workers", "2", "--batch", "32", "--steps", "100000", "--trace", str(trace)]
    with subprocess.Popen(line, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as started:
        processes = _until(lambda: _in_full_swing(Path(f"{trace}.parts"), started.pid))
        of = {p.environ().get("OMPI_COMM_WORLD_RANK"): p for p in processes}
        started.send_signal(number) if rank is None else of[str(rank)].send_signal(number)
        _, err = started.communicate(timeout=LONGEST_S)
    _gone, left = psutil.wait_procs(processes, timeout=2)
    assert not left
    assert started.returncode == code, err
    assert words in err
    assert "Traceback" not in err
    assert len(read(trace).rows) > 300
    assert os.listdir(tmp_path) == [trace.name]


@WITHOUT_HOROVOD
def test_horovods_own_timeline_calibrates_the_model(tmp_path):
    """As a user would: a run with its timeline, a profile of that, a prediction of another run."""
    timeline, profile = tmp_path / "timeline.json", tmp_path / "profile.toml"
    job = ["--workload", "mlp", "--batch", "32", "--steps", "30", "--stragglers", "none", "--workers", "2", "--quiet"]
    _module("real.run", "--protocol", "horovod", *job, "--replications", "2", "--horovod-timeline", timeline)
    found = horovod_timeline.read(timeline)
    assert found.ranks == 2
    assert len({one.step for one in found.reductions}) in range(
        30 + 10, 30 + 10 + 5
    )  # of one replication, and to warm up
    assert sum(one.bytes for one in found.reductions) % (4 * 79510) == 0
    _module(
        "calibration.fit", timeline, "--from", "horovod-timeline", "--workload", "mlp", "--batch", 32, "-o", profile
    )
    words = ["--protocol", "horovod", "--set", "algorithm=ring", "--cluster", profile, "--workers", 4, "--batch", 32]
    answer = json.loads(_module("sim.run", *words, "--stragglers", "none", "--steps", 10, "--json").stdout)
    assert answer["step_s"]["mean"] > 0
    assert sorted(os.listdir(tmp_path)) == ["profile.toml", "timeline.json"]


def _module(module: str, *options) -> subprocess.CompletedProcess:
    line = [sys.executable, "-m", module, *map(str, options)]
    done = subprocess.run(line, capture_output=True, text=True, cwd=ROOT, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    return done


def _in_full_swing(parts: Path, pid: int) -> list[psutil.Process]:
    """Its processes, once they have written a little."""
    rows = sum(part.read_text().count("\n") for part in parts.glob("rank-*.jsonl"))
    return psutil.Process(pid).children(recursive=True) if rows > 300 else []


def _until(happens, longest_s: float = 60):
    give_up_s = time.monotonic() + longest_s
    while not (happened := happens()):
        assert time.monotonic() < give_up_s
        time.sleep(0.05)
    return happened
