"""The comparison of speeds: engines simulate one job, ratios come from planted figures, engines that are not there are a line."""

import sys
from pathlib import Path

import numpy as np
import pytest

from experiments import speed
from experiments.engines import ours, simgrid, simpy_jobs
from experiments.engines.job import PASSING_S, UPDATE_S, Job
from experiments.engines.process import Measured, in_python, measure
from experiments.kit import kept
from experiments.speed import ENGINES, REFERENCE
from sim.base.errors import RunFailed, WrongSetting

WORKERS, STEPS = 10, 2000
FASTER = {"event": 0.5, "engine": 10.0}  # than the reference, as planted
SIMPY = "simpy_jobs:run"
LATER_ROUNDS = (1.0, 0.8, 1.1)  # of the reference's speed


def planted(step_s: float = 2.0, cpu_s: float = 0.5) -> Measured:
    return Measured([step_s] * 4, cpu_s, 10**8)


@pytest.fixture
def two(monkeypatch):
    """The reference and another engine, whose commands are no more than the engine's name and the number of workers."""
    some = {
        name: ENGINES[name]._replace(command=lambda _, job, name=name: (name, job.workers))
        for name in (REFERENCE, "event")
    }
    monkeypatch.setattr(speed, "ENGINES", some)
    monkeypatch.setattr(speed, "SIZES", {"fmb": (10, 100)})
    monkeypatch.setattr(speed, "of_answers", lambda: "")


@pytest.fixture
def results() -> speed.Results:
    """1,000 worker-steps a second of the reference with 10 workers, half as many with 100; three rounds."""
    found = {}
    for workers, slower in ((10, 1), (100, 2)):
        for name, faster in {REFERENCE: 1.0, **FASTER}.items():
            taken_s = [workers * 4 * slower / (1000 * faster * round_) for round_ in LATER_ROUNDS]
            found[name, workers] = [Measured([2.0] * 4, cpu_s, workers * 10**7) for cpu_s in taken_s]
    return found


@pytest.fixture(scope="module")
def steps_s() -> dict[str, np.ndarray]:
    job = Job(WORKERS, STEPS, seed=3)
    found = {REFERENCE: simpy_jobs.run(job), "event": ours.event(job)}
    return {name: np.array(values) for name, values in found.items()}


@pytest.mark.slow
def test_a_step_without_the_port_is_another_job(steps_s, monkeypatch):
    """The negative control: nothing else is left out, and the check sees it."""
    monkeypatch.setattr(simpy_jobs.simpy, "Resource", lambda env: simpy_resource(env, capacity=WORKERS))
    found = steps_s | {"simgrid": np.array(simpy_jobs.run(Job(WORKERS, 3000)))}
    with pytest.raises(RunFailed, match=r"^SimGrid, C\+\+ simulates another job: with 10 workers its mean step is "):
        speed.check(found, WORKERS)


simpy_resource = simpy_jobs.simpy.Resource


def test_one_worker_s_step_is_what_it_takes():
    """Two messages and an update besides computing, whose draws are those of the reference."""
    job = Job(1, 200, seed=1)
    compute_s = [step_s - 2 * job.port_s - UPDATE_S for step_s in ours.event(job)]
    assert job.port_s == PASSING_S
    assert min(compute_s) > 0
    assert np.mean(compute_s) == pytest.approx(1, abs=0.15)


@pytest.mark.slow
def test_the_engine_gives_the_steps_of_the_event_world():
    job = Job(7, 20, seed=2)
    np.testing.assert_allclose(ours.engine(job), ours.event(job), rtol=0, atol=1e-9)


def test_an_engine_that_is_not_compiled_is_left_out(monkeypatch):
    monkeypatch.setattr("sim.language.engine.job._kernel", None)
    with pytest.raises(WrongSetting, match="not compiled"):
        ours.engine(Job(2, 2))


def test_engines_are_compared_where_the_reference_takes_too_long():
    assert "10 workers: mean step 1 s in event world" in speed.check({"event": np.ones(1), "engine": np.ones(1)}, 10)
    with pytest.raises(RunFailed, match="engine simulates another job"):
        speed.check({"event": np.ones(1), "engine": np.full(1, 1.1)}, 10)


def test_the_table_shows_what_was_measured(results):
    results["simgrid", 10] = [planted(cpu_s=one.cpu_s * 4) for one in results["event", 10]]
    del results["event", 100]
    shown = kept.part(speed.table(results), Path())
    rows = {tuple(row[:2]): row[2:] for row in shown.rows}
    sizes = [
        ("SimPy, as documented", ("10", "100")),
        ("event world", ("10",)),
        ("engine", ("10", "100")),
        ("SimGrid, C++", ("10",)),
    ]
    assert list(rows) == [(name, size) for name, of in sizes for size in of]
    assert rows["event world", "10"] == ["5,000", "500 (30%)", "0.5 (0.5 to 0.5)", "4 (4 to 4)", "100"]
    assert rows["engine", "100"][3] == ""


@pytest.mark.usefixtures("two")
def test_engines_take_turns_at_being_first():
    order = speed.plan((10, 100), 2, seed=7)
    names = [name for name, _ in order]
    assert names == ["event", "simpy", "event", "simpy", "simpy", "event", "simpy", "event"]
    assert [job.workers for _, job in order] == [10, 10, 100, 100] * 2
    assert {job.seed for _, job in order} == {7, 8}


@pytest.mark.usefixtures("two")
def test_what_takes_too_long_is_left_out(monkeypatch, tmp_path):
    asked = []

    def taking(command, longest_s):
        asked.append(command)
        return None if command == ("event", 100) else planted(cpu_s=6.0 if command == (REFERENCE, 10) else 0.5)

    monkeypatch.setattr(speed, "measure", taking)
    found, failed = speed.measured(tmp_path, (10, 100, 1000), 2, seed=0)
    assert set(found) == {(REFERENCE, 10), (REFERENCE, 100), (REFERENCE, 1000), ("event", 10)}
    assert not failed
    assert asked.count(("event", 100)) == asked.count((REFERENCE, 10)) == 1, "what takes long is measured once"
    assert ("event", 1000) not in asked


@pytest.mark.usefixtures("two")
def test_an_engine_that_fails_is_a_line_and_the_reference_ends_the_experiment(monkeypatch, tmp_path):
    def failing(command, longest_s):
        if command == (broken, 100):
            raise RunFailed("python failed: no memory")
        return planted()

    monkeypatch.setattr(speed, "measure", failing)
    broken = "event"
    found, failed = speed.measured(tmp_path, (10, 100), 2, seed=0)
    assert set(found) == {(REFERENCE, 10), (REFERENCE, 100), ("event", 10)}
    assert failed == ["event world is left out from 100 workers on: python failed: no memory"]
    broken = REFERENCE
    with pytest.raises(RunFailed, match="no memory"):
        speed.measured(tmp_path, (10, 100), 2, seed=0)


@pytest.mark.processes
def test_a_job_is_measured_in_a_process_of_its_own():
    held = np.ones(30_000_000)
    one = measure(in_python(SIMPY, Job(5, 4, seed=2)), 60)
    assert one.step_s == simpy_jobs.run(Job(5, 4, seed=2))
    assert 0 < one.peak_bytes < held.nbytes, "what this process has does not count"
    assert one.cpu_s > 0


@pytest.mark.processes
def test_a_process_that_takes_too_long_measures_nothing():
    assert measure([sys.executable, "-c", "import time; time.sleep(60)"], 0.2) is None


@pytest.mark.processes
def test_a_process_that_fails_is_a_line():
    with pytest.raises(RunFailed, match=r"failed: SystemError: no more$"):
        measure([sys.executable, "-c", "raise SystemError('no more')"], 60)


def test_a_missing_compiler_is_a_line(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RunFailed, match=r"^there is no g\+\+$"):
        simgrid.command(tmp_path, Job(2, 2))


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ("f.cpp:1: fatal error: simgrid/s4u.hpp: No such file or directory", r"finds no simgrid/s4u.hpp \(Debian: "),
        ("f.cpp: In function:\nf.cpp:9: error: no sg4\n   ^", "does not compile .*: f.cpp:9: error: no sg4$"),
    ],
)
def test_a_missing_library_is_a_line(said, line, monkeypatch, tmp_path):
    compiler = tmp_path / simgrid.COMPILER
    compiler.write_text(f'#!/bin/sh\necho "{said}" >&2\nexit 1\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RunFailed, match=line):
        simgrid.command(tmp_path, Job(2, 2))


@pytest.mark.usefixtures("two")
def test_the_experiment_reports_and_says_what_is_left_out(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(speed.ENGINES, "simgrid", ENGINES["simgrid"])
    monkeypatch.setattr(speed, "measure", lambda command, longest_s: planted())
    monkeypatch.setenv("PATH", str(tmp_path))
    speed.run(tmp_path)
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "SimGrid, C++ is left out from 10 workers on: there is no g++"
    assert "100 workers: mean step 2 s in SimPy, as documented; the furthest from it is event world" in shown[2]


@pytest.fixture(scope="module")
def simgrid_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("simgrid")
    try:
        simgrid.command(folder, Job(2, 2))
    except RunFailed as error:
        if "there is no" in str(error) or "finds no" in str(error):
            pytest.skip(str(error))
        raise
    return folder


@pytest.mark.processes
@pytest.mark.parametrize("workers", [2, 200])
def test_simgrid_simulates_the_same_job(simgrid_folder, workers):
    job = Job(workers, 20_000 // workers, seed=5)
    one = measure(simgrid.command(simgrid_folder, job), 60)
    assert len(one.step_s) == job.steps
    speed.check({REFERENCE: np.array(simpy_jobs.run(job)), "simgrid": np.array(one.step_s)}, workers)


OF_RANKS = pytest.mark.parametrize("text", ["ddp", "local-sgd", "d-psgd"])


@OF_RANKS
@pytest.mark.parametrize("run", [ours.event, ours.engine])
def test_equal_ranks_take_the_same_steps_by_hand(text, run):
    job = Job(6, 8, seed=3, text=text)
    assert run(job) == pytest.approx(simpy_jobs.run(job), rel=1e-9)


@pytest.mark.processes
@OF_RANKS
def test_simgrid_simulates_the_same_job_of_equal_ranks(simgrid_folder, text):
    job = Job(6, 8, seed=3, text=text)
    one = measure(simgrid.command(simgrid_folder, job), 60)
    assert one.step_s == pytest.approx(simpy_jobs.run(job), rel=1e-6)
