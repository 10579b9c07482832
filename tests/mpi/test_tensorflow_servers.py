"""real.run with TensorFlow's own servers, as a user starts it: alone, by hand, under mpirun."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from calibration import probes
from real.launching import mpirun as launch
from real.servers.tasks import free_port
from sim.answers import staleness
from sim.answers.outcome import of_trace
from sim.recording import traces
from sim.recording.curves import curves

pytestmark = pytest.mark.tensorflow
ROOT = Path(__file__).parents[2]
MODEL = ["--workload", "mlp", "--warmup", "5"]
SMALL = [*MODEL, "--stragglers", "none"]
GUARD_S = 1200  # far above what anything here takes


def line(*options) -> list[str]:
    return [sys.executable, "-m", "real.run", *SMALL, *map(str, options)]


def run(*options) -> subprocess.CompletedProcess:
    return subprocess.run(line(*options), capture_output=True, text=True, cwd=ROOT, timeout=GUARD_S, check=False)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory, campaign) -> dict[str, traces.Trace]:
    """Runs of every protocol in one launch, by name."""
    folder = tmp_path_factory.mktemp("servers")
    cells = {
        "async": ["--protocol", "ps-async", "--workers", 2, "--servers", 2],
        "sync": ["--protocol", "ps-sync", "--workers", 3, "--optimiser", "sgd"],
        "backup": ["--protocol", "ps-backup", "--workers", 3],
        "parted": [
            "--protocol",
            "ps-async",
            "--workers",
            1,
            "--servers",
            2,
            "--variable-partitions",
            3,
            "--test-size",
            100,
            "--optimiser",
            "sgd",  # TensorFlow's RMSprop begins with mean squares of 1, and one worker's 40 updates move little
        ],
        "slow": ["--protocol", "ps-async", "--workers", 3, "--test-size", 100],
    }
    law = {name: "niagara*0.01" if name == "slow" else "none" for name in cells}
    campaign(
        [
            [*MODEL, "--stragglers", law[name], "--steps", 40, *cell, "--trace", folder / f"{name}.parquet"]
            for name, cell in cells.items()
        ],
        folder,
    )
    return {name: traces.read(folder / f"{name}.parquet") for name in cells}


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
    assert staleness.of_trace(recorded["async"]).max() >= 1
    assert not staleness.of_trace(recorded["parted"]).any()


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
    due = [
        (step + 1) // 10 for step in steps
    ]  # others' updates may come between two looks, and a look after the next is due
    assert due == sorted(set(due))
    assert (min(due) >= 1, max(due)) == (True, 4)
    found = curves(recorded[name])  # whose worker evaluates, while servers' updates go on
    assert (found.step >= (np.array(steps) + 1) * recorded[name].header.updates_per_step).all()
    assert (np.diff(found.time_s) > 0).all()
    _, loss, accuracy = evaluations[-1]
    assert loss < np.log(10)
    assert accuracy > (0.5 if name == "parted" else 0.2)  # others' order, and so what they learn, is the machine's


def test_alone_it_starts_servers_and_workers_and_answers(tmp_path):
    done = run("--protocol", "ps-sync", "--workers", 2, "--steps", 30, "--json", "--trace", tmp_path / "t.parquet")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert (answer["world"], answer["scenario"]["workers"], answer["done"]["steps"]) == ("tensorflow", 2, 30)
    assert os.listdir(tmp_path) == ["t.parquet"]


def test_under_mpirun_ranks_become_servers_and_workers():
    python = [sys.executable, "-m", "mpi4py", "-m", "real.run", *SMALL]
    mpirun = [launch.mpirun(), "-n", "3", "--oversubscribe", "--bind-to", "none", "--allow-run-as-root"]
    words = [*mpirun, *python, "--protocol", "ps-async", "--steps", "20", "--json", "--quiet"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, timeout=GUARD_S, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["scenario"]["workers"] == 2


def by_hand(ps: str, workers: str) -> list[subprocess.Popen]:
    """Server 0 and workers 0 and 1; the last is given `workers` as its list, the others what they should be."""
    ports = [free_port() for _ in range(3)]
    lists = [f"127.0.0.1:{ports[0]}", f"127.0.0.1:{ports[1]},127.0.0.1:{ports[2]}"]
    given = [lists, lists, [lists[0], workers.format(*ports)] if workers else lists]
    started = []
    for (job, task), (ps_hosts, worker_hosts) in zip((("ps", 0), ("worker", 0), ("worker", 1)), given, strict=True):
        hand = ["--job", job, "--task", task, "--ps-hosts", ps_hosts, "--worker-hosts", worker_hosts]
        words = line("--protocol", "ps-async", "--steps", 20, "--quiet", *hand)
        started.append(subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT))
    return started


def test_by_hand_each_process_is_told_its_part():
    started = by_hand("", "")
    said = [process.communicate(timeout=GUARD_S) for process in started]
    assert [process.returncode for process in started] == [0, 0, 0], said
    assert "samples/s" in said[1][0]
    assert not said[0][0] + said[2][0]


def test_lists_that_disagree_are_refused_by_all():
    started = by_hand("", f"127.0.0.1:{free_port()},127.0.0.1:{{2}}")
    said = [process.communicate(timeout=GUARD_S) for process in started]
    assert [process.returncode for process in started] == [2, 2, 2], said
    assert all("the same lists on every process" in err for _, err in said)


def test_what_a_further_server_costs_is_probed(campaign, tmp_path):
    """For each way of updating that the campaign has; its threads, whatever else, take processor time."""
    cell = [*SMALL, "--protocol", "ps-async", "--workers", 1, "--servers", 2, "--steps", 5]
    campaign([[*cell, "--trace", tmp_path / "a.parquet"]], tmp_path, tmp_path / "probe.json")
    found = probes.read(str(tmp_path / "probe.json")).further_server
    assert list(found) == ["asynchronous"]
    assert found["asynchronous"].processor_s > 0
