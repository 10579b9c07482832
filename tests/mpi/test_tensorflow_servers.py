"""real.run with TensorFlow's own servers, in one launch, and as a user starts it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from processes import ROOT

from calibration import probes
from real.servers.task_runner import Worker
from sim.answers.outcome import of_trace, staleness_of
from sim.recording import traces
from sim.recording.curves import curves

pytestmark = pytest.mark.tensorflow
MODEL = ["--workload", "mlp", "--warmup", "5"]
SMALL = [*MODEL, "--stragglers", "none"]
GUARD_S = 1200  # far above what anything here takes


@pytest.fixture(scope="module")
def folder(campaign):
    """With the traces of runs of every protocol in one launch, and a probe."""
    two = ["--protocol", "ps-async", "--servers", 2]
    # TensorFlow's RMSprop begins with mean squares of 1, and one worker's 40 updates move little.
    parted = ["--workers", 1, "--variable-partitions", 3, "--test-size", 100, "--optimiser", "sgd"]
    cells = {
        "async": [*two, "--workers", 2],
        "sync": ["--protocol", "ps-sync", "--workers", 3, "--optimiser", "sgd"],
        "backup": ["--protocol", "ps-backup", "--workers", 3],
        "parted": [*two, *parted],
        "slow": ["--protocol", "ps-async", "--workers", 3, "--test-size", 100],
    }
    luck = {name: "niagara*0.01" if name == "slow" else "none" for name in cells}
    usual = [*MODEL, "--steps", 40, "--stragglers"]
    return campaign({name: [*usual, luck[name], *cell] for name, cell in cells.items()}, probe=True)


@pytest.fixture(scope="module")
def recorded(folder) -> dict[str, traces.Trace]:
    return {file.stem: traces.read(file) for file in folder.glob("*.parquet")}


@pytest.mark.parametrize("name", ["async", "sync", "backup", "parted", "slow"])
def test_a_trace_of_tensorflow_s_servers_is_a_trace_like_any_other(recorded, name):
    trace = recorded[name]
    header, rows = trace.header, trace.rows
    assert header.world == "tensorflow"
    assert (rows["end_s"] >= rows["start_s"]).all()
    assert set(rows["rank"]) == set(range(header.ranks))
    outcome = of_trace(trace)
    assert outcome.step_s.shape == (1, 40)
    each = header.batch * (header.updates_per_step if name != "backup" else 2)
    assert (outcome.samples == (each if name != "sync" else 3 * header.batch)).all()
    for worker in range(header.servers, header.ranks):
        mine = rows[rows["rank"] == worker].sort_values(["start_s", "end_s"])
        assert (mine["start_s"].to_numpy()[1:] >= mine["end_s"].to_numpy()[:-1] - 1e-9).all()
    assert set(header.cpu_s) == {str(rank) for rank in range(header.ranks)}


def test_asynchronous_gradients_are_stale(recorded):
    assert staleness_of(recorded["async"]).max() >= 1
    assert not staleness_of(recorded["parted"]).any()


def test_synchronous_gradients_are_of_the_version_that_they_update(recorded):
    """An accumulator drops all others. Clocks are read late on a busy machine, and a gradient that seems to come late is not recorded."""
    trace = recorded["sync"]
    rows = trace.rows[trace.rows["rank"] == 0]
    added = rows[rows["activity"] == "reduce"]
    assert (added["version"] == added["step"]).all()
    assert len(added) > np.count_nonzero(rows["activity"] == "update") > trace.header.steps


def test_backup_workers_gradients_are_dropped(recorded):
    rows = recorded["backup"].rows
    computed = np.count_nonzero((rows["rank"] >= 1) & (rows["activity"] == "compute"))
    updates = np.count_nonzero((rows["rank"] == 0) & (rows["activity"] == "update"))
    assert updates >= 45
    assert computed > 2 * updates - 3


def test_the_induced_sleeps_are_the_simulator_s(recorded):
    from sim.job.scenario import Scenario
    from sim.model.workload import NAMED
    from sim.protocols import make
    from sim.stragglers import read

    rows = recorded["slow"].rows
    scenario = Scenario(make("ps-async"), NAMED["mlp"], workers=3, stragglers=read("niagara*0.01"))
    for worker in (1, 2, 3):
        asleep = rows[(rows["rank"] == worker) & (rows["activity"] == "sleep")].sort_values("step")[:20]
        drawn = scenario.draws.sleeps(0, worker)
        over_s = asleep["end_s"] - asleep["start_s"] - [drawn[step] for step in asleep["step"]]
        assert over_s.min() > -1e-3  # each may last longer, where the machine has other things to do


@pytest.mark.parametrize("name", ["slow", "parted"])
def test_it_learns(recorded, name):
    evaluations = recorded[name].header.evaluations
    steps = [step for step, *_ in evaluations]
    # Others' updates may come between two looks, and a look after the next is due.
    due = [(step + 1) // 10 for step in steps]
    assert due == sorted(set(due))
    assert (min(due) >= 1, max(due)) == (True, 4)
    found = curves(recorded[name])  # whose worker evaluates, while servers' updates go on
    assert (found.step >= (np.array(steps) + 1) * recorded[name].header.updates_per_step).all()
    assert (np.diff(found.time_s) > 0).all()
    _, loss, accuracy = evaluations[-1]
    assert loss < np.log(10)
    assert accuracy > (0.5 if name == "parted" else 0.2)  # others' order, and so what they learn, is the machine's


def test_alone_it_starts_servers_and_workers_and_answers(tmp_path):
    words = f"--protocol ps-sync --workers 2 --steps 30 --json --trace {tmp_path / 't.parquet'}".split()
    line = [sys.executable, "-m", "real.run", *SMALL, *words]
    done = subprocess.run(line, capture_output=True, text=True, cwd=ROOT, timeout=GUARD_S, check=False)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert (answer["world"], answer["scenario"]["workers"], answer["done"]["steps"]) == ("tensorflow", 2, 30)
    assert os.listdir(tmp_path) == ["t.parquet"]


def test_the_last_update_is_recorded_although_its_workers_know_of_it_first():
    """A token says that an update was made; the thread that made it may still be on its way back from TensorFlow."""
    scenario, chief = SimpleNamespace(rounds=2, servers=1), SimpleNamespace(is_chief=True)
    team, replica = SimpleNamespace(gather=lambda *_: None), SimpleNamespace(tokens=True)
    worker: Any = SimpleNamespace(scenario=scenario, tasks=chief, team=team, replica=replica, updates=["first"])
    recorded: list = []
    transcript: Any = SimpleNamespace(updated=recorded.append, account=dict)
    late = threading.Timer(0.1, worker.updates.append, ["second"])
    late.start()
    Worker._gathered(worker, transcript, None)
    assert recorded == ["first", "second"]


def test_what_a_further_server_costs_is_probed(folder):
    """For each way of updating that the campaign has; its threads, whatever else, take processor time."""
    found = probes.read(str(folder / "probe.json")).further_server
    assert list(found) == ["asynchronous", "synchronous"]
    assert found["asynchronous"].processor_s > 0
