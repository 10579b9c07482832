"""The commands as a user types them: their answers, and one line and exit 2 for whatever is wrong."""

import json
import os
import re
import subprocess
import sys

import pytest
from processes import ROOT
from test_architecture import HEAVY

COMMANDS = (
    *("sim.run", "sim.sweep", "sim.plan", "sim.timeline", "sim.plot", "sim.protocols.check", "sim.workloads"),
    *("sim.hosts", "calibration.fit", "calibration.check", "calibration.slow", "experiments.run"),
    *("real.run", "real.campaign", "real.probe", "real.calibrate"),
)
KEYS = {
    *("schema", "version", "scenario", "world", "asked", "done", "samples_per_s", "step_s", "samples_per_step"),
    *("idle_fraction", "interval", "basis", "notes", "wall_s"),
}


def run(module: str, *options, cwd=ROOT, **environment) -> subprocess.CompletedProcess:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    line = [sys.executable, "-m", module, *map(str, options)]
    return subprocess.run(line, capture_output=True, text=True, env=environment, cwd=cwd, timeout=300, check=False)


def refused(done: subprocess.CompletedProcess) -> str:
    """The one line that a refusal is."""
    assert done.returncode == 2, done
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    return lines[0]


@pytest.mark.processes
def test_with_nothing_but_a_protocol_it_answers():
    done = run("sim.run", "--protocol", "amb")
    assert done.returncode == 0
    assert done.stderr == ""
    for word in ("throughput", "nothing is known", "measure first", "p95", "idle", "stragglers cost"):
        assert word in done.stdout
    assert len(done.stdout.splitlines()) <= 8
    assert all(len(line) <= 80 for line in done.stdout.splitlines())
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize("protocol", ["amb", "fmb"])
def test_json_is_one_object_and_nothing_else(protocol, here):
    done = here("sim.run", "--protocol", protocol, "--json", "--workers", 2, "--steps", 30, "--seed", 5)
    answer = json.loads(done.stdout)
    assert set(answer) == KEYS
    assert set(answer["step_s"]) == {"mean", "p50", "p95", "p99"}
    assert set(answer["samples_per_step"]) == {"mean", "sd"}
    assert set(answer["interval"]) == {"level", "samples_per_s", "why_none", "run_to_run", "not_known"}
    assert (answer["interval"]["level"], answer["interval"]["why_none"]) == (0.9, None)
    assert answer["interval"]["samples_per_s"][0] < answer["samples_per_s"] / 5
    asked = answer["scenario"]
    assert (asked["protocol"], asked["workers"], asked["steps"], asked["seed"]) == (protocol, 2, 30, 5)
    assert len(answer["idle_fraction"]) == 3


@pytest.mark.slow
def test_partitions_are_searched_for(here):
    """The answer is of the number that was found."""
    job = ["--protocol", "hybrid", "--workload", "lstm_lm", "--servers", 2, "--steps", 3, "--replications", 1, "--json"]
    found = json.loads(here("sim.run", *job, "--variable-partitions", "search").stdout)
    assert set(found) == KEYS | {"variable_partitions", "tokens_per_s"}
    search = found["variable_partitions"]
    assert min(map(int, search["tried"])) == 2
    given = json.loads(here("sim.run", *job, "--variable-partitions", search["best"]).stdout)
    assert given["step_s"] == found["step_s"]
    assert "variable partitions, searched for" in here(
        "sim.run", *job[:-1], "--variable-partitions", "search"
    ).stdout.replace("\n", " ")


@pytest.mark.slow
def test_changes_are_compared_with_as_many_parts_as_were_found(here):
    """A change of nothing changes nothing; as many parts as servers would."""
    job = ["--protocol", "hybrid", "--workload", "lm1b", "--workers", 4, "--servers", 2, "--stragglers", "none"]
    job += ["--steps", 3, "--replications", 1, "--json"]
    found = json.loads(here("sim.run", *job, "--variable-partitions", "search", "--what-if", "servers=2").stdout)
    assert found["variable_partitions"]["best"] > 2
    assert found["what_if"][0]["throughput_ratio"] == 1.0


@pytest.mark.slow
def test_an_answer_in_less_time_comes_of_fewer_runs_and_steps(here):
    steps = 100
    job = ("--world", "event", "--protocol", "fmb", "--workers", 2, "--stragglers", "none", "--steps", steps)
    done = here("sim.run", *job, "--within", 1e-6)
    said = " ".join(done.stdout.split())
    assert f" of {steps} steps of one run (warm-up: 1 of 10), because time ran out; --within SECONDS" in said
    hurried = json.loads(here("sim.run", *job, "--json", "--within", 1e-6).stdout)
    assert hurried["asked"] == {"runs": 20, "steps": steps, "warmup": 10}
    assert hurried["done"]["steps"] < steps / 10
    assert f" of {steps} steps" in hurried["notes"][-1]
    job = (*job[:-1], 100)
    whole = json.loads(here("sim.run", *job, "--json").stdout)
    assert whole["asked"] == whole["done"] == {"runs": 20, "steps": 100, "warmup": 10}
    asked = json.loads(here("sim.run", *job, "--json", "--replications", 2).stdout)
    assert asked["done"]["runs"] == 2


@pytest.fixture
def recorded(tmp_path, here):
    """A trace in the folder."""
    job = ("--protocol", "fmb", "--workers", 2, "--steps", 5, "--replications", 1, "--json")
    assert here("sim.run", *job, "--trace", tmp_path / "t.jsonl").returncode == 0
    return tmp_path / "t.jsonl"


@pytest.mark.parametrize(("module", "name"), [("sim.timeline", "t.json"), ("sim.plot", "t.svg")])
def test_a_trace_becomes_a_timeline_and_a_picture(module, name, recorded, tmp_path, here):
    done = here(module, recorded, "-o", tmp_path / name)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    text = (tmp_path / name).read_text()
    assert "worker 1" in text if name == "t.json" else "<svg" in text


ENDING = re.compile(r'^if __name__ == "__main__":\n    command\.run\(', re.MULTILINE)
PACKAGES = ("sim", "real", "calibration", "experiments")
MAINS = sorted(  # of all commands, those too that only we use
    str(path.relative_to(ROOT).with_suffix("")).replace("/", ".").removesuffix(".__main__")
    for package in PACKAGES
    for path in (ROOT / package).rglob("*.py")
    if ENDING.search(path.read_text())
)
HELPED = f"""
import sys
from importlib import import_module
for name in {MAINS!r}:
    try:
        import_module(name).main(["--help"])
    except SystemExit as end:
        assert not end.code
    print(name, *[heavy for heavy in {HEAVY!r} if heavy in sys.modules], file=sys.stderr)
"""


@pytest.mark.processes
def test_help_loads_nothing_heavy():
    """Of all commands in one process: the first line that names more than its command has the culprit."""
    done = subprocess.run([sys.executable, "-c", HELPED], capture_output=True, text=True, cwd=ROOT, check=False)
    assert set(COMMANDS) < set(MAINS)
    assert done.stderr.splitlines() == MAINS
    used = [
        line.removeprefix("usage: ").removeprefix("python -m ")
        for line in done.stdout.splitlines()
        if "usage: " in line
    ]
    assert [line.split()[0] for line in used] == MAINS


REFUSED = {
    "sim.run": ["--protocol", "abm"],
    "sim.sweep": ["--protocol", "abm", "-o", "x.parquet"],
    "sim.plan": ["nowhere.toml"],
    "real.run": ["--protocol", "abm"],
    "real.campaign": ["nowhere.json"],
    "real.probe": ["--protocol", "-o", "probe.json"],
    "real.calibrate": ["--protocol", "abm", "-o", "profile.toml"],
    "calibration.fit": ["nowhere.parquet", "-o", "profile.toml"],
    "calibration.check": ["nowhere.toml", "nowhere.parquet"],
    "calibration.slow": ["nowhere.parquet"],
    "sim.timeline": ["nowhere.parquet", "-o", "t.json"],
    "sim.plot": ["nowhere.parquet", "-o", "t.png"],
    "sim.protocols.check": ["abm"],
    "sim.workloads": ["from", "nowhere.json"],
    "sim.hosts": ["show", "V1000"],
    "experiments.run": ["published", "--demo"],
}
NAMES_COME_LAST = ("experiments.run", "sim.workloads", "sim.hosts")


@pytest.mark.processes
@pytest.mark.parametrize("module", COMMANDS)
def test_a_process_refuses_in_one_line_and_exits_with_2(module):
    line = refused(run(module, *REFUSED[module]))
    assert line.startswith(f"{module}: ")
    assert REFUSED[module][-1 if module in NAMES_COME_LAST else 0] in line


WRONG = {
    "setting without a value": ("--protocol amb --set time_limit_s", ["'time_limit_s'; allowed: NAME=VALUE"]),
    "setting's type": ("--protocol amb --set partitions=many", ["partitions", "many", "integer"]),
    "seconds' range": (
        "--protocol amb --set time_limit_s=1e99",
        ["time_limit_s", "1e+99", "allowed: seconds from 0 to 1,000,000"],
    ),
    "one more argument": ("--steps 3 b.txt", ["'b.txt' is one argument too many"]),
    "more partitions than samples": ("--protocol amb --batch 4 --set partitions=5", ["partitions", "5", "4"]),
    "steps' type": ("--steps ten", ["--steps: given 'ten'; allowed: an integer"]),
    "time's type": ("--within soon", ["--within: given 'soon'; allowed: a number"]),
    "variable partitions": ("--variable-partitions many", ["--variable-partitions", "many", "search"]),
    "nothing to search for": (
        "--protocol hybrid --variable-partitions search",
        ["--variable-partitions", "search", "no sparse variables"],
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_options_are_one_line(what, here):
    options, words = WRONG[what]
    line = refused(here("sim.run", *options.split()))
    assert all(word in line for word in words), line


WRONG_REAL = {
    "optimiser": ("--optimiser adam", ["--optimiser", "adam", "adm"]),
    "data": ("--data nowhere.npz", ["--data", "nowhere.npz"]),
    "device": ("--device tpu", ["--device", "tpu", "gpu"]),
    "more ranks than memory": ("--workers 100000", ["--workers", "100000", "memory"]),
    "parameters": ("--parameters kept.csv", ["--parameters", "kept.csv", ".npz"]),
    "optimiser of rows": (
        "--protocol hybrid --workload lstm_lm --optimiser adm",
        ["--optimiser", "adm", "sgd, mom, rms"],
    ),
    "rows beside dense": ("--protocol ps-sync --workload lstm_lm", ["--protocol", "ps-sync", "hybrid"]),
    "rows gathered": (
        "--protocol allreduce --workload lstm_lm --set sparse_as_dense=false --optimiser adm",
        ["--optimiser", "adm", "sgd, mom, rms"],
    ),
    "rows gathered by a library": (
        "--protocol allreduce --workload lstm_lm --set sparse_as_dense=false --runtime tensorflow",
        ["--set sparse_as_dense", "true with --runtime tensorflow"],
    ),
    "servers without parts": (
        "--protocol hybrid --workload lstm_lm --servers 2",
        ["--servers", "--variable-partitions"],
    ),
    "evaluation": ("--protocol hybrid --workload lstm_lm --test-size 9", ["--test-size", "9"]),
    "backup": ("--protocol ps-backup --set backup=3", ["--set backup", "fewer than the workers"]),
    "engine": ("--engine torch", ["--engine", "torch", "tensorflow", "numpy"]),
    "model of an engine": (
        "--engine numpy --workload cifar10",
        ["--workload", "cifar10", "toy_fc, mlp, softmax with --engine numpy"],
    ),
    "device of an engine": ("--engine numpy --device gpu", ["--device", "cpu with --engine numpy"]),
    "engine of a runtime": (
        "--engine numpy --protocol ps-async --runtime tensorflow",
        ["--engine", "numpy", "tensorflow with --runtime tensorflow"],
    ),
}


@pytest.mark.parametrize("what", WRONG_REAL)
def test_wrong_options_of_real_runs_are_one_line(what, here):
    pytest.importorskip("psutil")
    options, words = WRONG_REAL[what]
    line = refused(here("real.run", *options.split()))
    assert all(word in line for word in words), line


@pytest.mark.processes
def test_without_tensorflow_the_simulator_works_and_real_runs_say_so(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "class Gone:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('tensorflow', 'mpi4py'):\n"
        "            raise ModuleNotFoundError(name, name=name)\n"
        "sys.meta_path.insert(0, Gone())\n"
    )
    path = f"{tmp_path}{os.pathsep}{ROOT}"
    assert run("sim.run", "--json", PYTHONPATH=path).returncode == 0
    line = refused(run("real.run", PYTHONPATH=path))
    assert "tensorflow" in line
    assert "pip install" in line


@pytest.mark.processes
def test_without_mpirun_real_runs_say_so(tmp_path):
    """A Python without mpirun beside it, and an empty PATH."""
    python = tmp_path / "python"
    python.symlink_to(sys.executable)
    script = (
        "import sys; sys.path[:0] = sys.argv.pop().split(':'); "
        "from sim import command; from real import run; "
        "command.run('real.run', lambda: run.main(['--workers', '1', '--data', 'synthetic']))"
    )
    environment = {**os.environ, "PATH": ""}
    line = [str(python), "-c", script, ":".join([str(ROOT), *filter(None, sys.path)])]
    done = subprocess.run(line, capture_output=True, text=True, env=environment, timeout=300, check=False)
    assert "mpirun" in refused(done)


def test_wrong_campaigns_are_one_line(tmp_path, here):
    file = tmp_path / "cells.json"
    twice = '[["--protocol", "amb", "--trace", "amb.parquet", "--replications", "2"]]'
    for text, word in (("{", "JSON"), ("[]", "at least one"), ('[["--workers", "1"]]', "--trace"), (twice, "--repl")):
        file.write_text(text)
        assert word in refused(here("real.campaign", file))
    assert "nowhere.json" in refused(here("real.campaign", "nowhere.json"))


def test_experiments_are_listed_by_their_questions(here):
    done = here("experiments.run")
    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.splitlines()][:1] == ["validate"]
    assert all(line.endswith("?") for line in done.stdout.splitlines())
    assert "allowed: validate, servers" in refused(here("experiments.run", "nothing"))
