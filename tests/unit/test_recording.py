"""trainsim.Recorder around loops that no library has: what it writes, what it refuses, what it does where a loop goes wrong."""

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from processes import ROOT

from calibration import checks
from sim.answers.outcome import of_trace
from sim.base.errors import WrongSetting
from sim.recording import traces
from trainsim import Recorder
from trainsim.recording import place
from trainsim.recording.samples import Samples
from trainsim.recording.steps import Call, Iteration, Pause, Steps, rows

LAUNCHED = [*(name for name, _ in place.LAUNCHERS), *(name for _, names in place.LAUNCHERS for name in names)]


@pytest.fixture(autouse=True)
def _nobody_has_launched_it(monkeypatch):
    for name in (*LAUNCHED, place.RESTARTS):
        monkeypatch.delenv(name, raising=False)


def recorded(folder: Path, loader, batch=8, **more) -> traces.Trace:
    recorder = Recorder(folder, batch, **more)
    for _ in recorder.steps(loader):
        pass
    recorder.close()
    return traces.read(folder)


def test_a_loop_is_a_trace_that_can_be_fitted(tmp_path):
    found = recorded(tmp_path / "run", range(12), warmup=2)
    assert (found.header.steps, found.header.warmup, found.header.workers, found.header.complete) == (10, 2, 1, True)
    assert list(found.rows[found.rows["step"] == 3]["activity"]) == ["input", "compute", "update"]
    checks.check(found, "run")


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"RANK": "3", "WORLD_SIZE": "4", "SLURM_PROCID": "0", "SLURM_NTASKS": "1"}, (3, 4)),
        ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}, (1, 2)),
        ({"SLURM_PROCID": "5", "SLURM_NTASKS": "8"}, (5, 8)),
        ({"RANK": "3"}, (0, 1)),
        ({}, (0, 1)),
    ],
)
def test_a_rank_is_that_of_its_launcher(monkeypatch, variables, said):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert place.here()[:2] == said


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"batch": 0}, "batch"),
        ({"batch": True}, "batch"),
        ({"warmup": -1}, "warmup"),
        ({"workload": "resnet5O"}, "did you mean resnet50"),
        ({"folder": 3}, "folder"),
        ({"folder": ""}, "folder"),
        ({"folder": "/dev/null"}, "a file of this name is there"),
        ({"folder": "/dev/null/run"}, "a folder that can be written"),
        ({"folder": "a\0b"}, "a folder that can be written"),
    ],
)
def test_a_wrong_setting_is_one_line(tmp_path, given, named):
    with pytest.raises(WrongSetting, match=named) as said:
        Recorder(**{"folder": tmp_path / "run", **given})
    assert "\n" not in str(said.value)


def test_a_launcher_that_says_no_rank_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "2")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(WrongSetting, match="RANK: given '2'; allowed: an integer from 0 to 1"):
        Recorder(tmp_path / "run")


def test_a_workload_may_be_named(tmp_path):
    (tmp_path / "own.toml").write_text('schema = "workload/1"\nname = "own"\nparameters = 900\nlayers = 3\n')
    for name, parameters in (("mlp", None), (str(tmp_path / "own.toml"), 900)):
        found = recorded(tmp_path / f"run-{parameters}", range(3), workload=name).header
        assert (found.workload, (found.model or {}).get("parameters")) == ("own" if parameters else name, parameters)


def test_a_folder_takes_one_run(tmp_path):
    recorded(tmp_path / "run", range(3))
    with pytest.raises(WrongSetting, match="in which no run was recorded") as refused:
        Recorder(tmp_path / "run", 8)
    assert str(refused.value).count("allowed:") == 1
    assert traces.read(tmp_path / "run").header.complete


def test_ranks_of_one_run_lie_beside_each_other_by_the_clocks_of_their_hosts(tmp_path, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    for rank in "01":
        monkeypatch.setenv("RANK", rank)
        recorder = Recorder(tmp_path / "run", 8, warmup=0)
        list(recorder.steps(range(4)))
        recorder.close()
    facts = tmp_path / "run" / "rank-00001.json"
    later = json.loads(facts.read_text())
    later["began_unix_s"] = json.loads((tmp_path / "run" / "rank-00000.json").read_text())["began_unix_s"] + 100
    facts.write_text(json.dumps(later))
    found = traces.read(tmp_path / "run")
    assert found.rows[found.rows["rank"] == 1]["start_s"].min() == pytest.approx(100, abs=5)
    assert found.header.communication_in_update  # of two ranks whose messages nobody saw
    facts.unlink()
    with pytest.raises(WrongSetting, match="rank-00001"):
        traces.read(tmp_path / "run")


# ---- batches


def test_samples_are_given_counted_or_told_by_a_function():
    arrays = {"x": np.zeros((5, 3)), "y": np.zeros(5)}
    assert [Samples(None).of(batch) for batch in (arrays, [np.zeros((4, 2)), 1], np.zeros(3))] == [5, 4, 3]
    assert Samples(len).of("four") == 4
    assert Samples(lambda batch: np.int64(6)).of(None) == 6
    for given, batch in ((None, "text"), (None, []), (None, np.zeros(())), (lambda _: 0, 1), (lambda _: 1.5, 1)):
        with pytest.raises(WrongSetting, match="batch"):
            Samples(given).of(batch)


def test_batches_may_differ_and_the_last_be_smaller(tmp_path):
    found = recorded(tmp_path / "run", [np.zeros(8)] * 9 + [np.zeros(3)], batch=None, warmup=1)
    assert found.header.batch == 8
    assert list(found.rows[found.rows["activity"] == "compute"]["samples"]) == [8] * 9 + [3]


def test_a_batch_that_cannot_be_told_ends_the_recording_and_not_the_loop(tmp_path, capsys):
    recorder = Recorder(tmp_path / "run", lambda batch: 1 / batch)
    assert list(recorder.steps([1, 1, 0, 1])) == [1, 1, 0, 1]
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "nothing more is recorded" in said


# ---- loops


def test_a_loader_needs_no_length_and_keeps_the_one_that_it_has(tmp_path):
    recorder = Recorder(tmp_path / "run", 8)
    assert len(recorder.steps(range(7))) == 7
    with pytest.raises(TypeError):
        len(recorder.steps(iter(range(7))))
    assert list(itertools.islice(recorder.steps(itertools.count()), 3)) == [0, 1, 2]


def test_what_passes_between_two_loops_is_no_part_of_the_run(tmp_path):
    recorder = Recorder(tmp_path / "run", 8, warmup=0)
    clock = itertools.count()
    recorder.now = lambda: recorder._began_s + next(clock)
    for epoch in range(2):
        for _ in recorder.steps(range(2)):
            pass
        recorder.now() if epoch else [recorder.now() for _ in range(50)]  # an evaluation
    recorder.close()
    rows_of = traces.read(tmp_path / "run").rows
    assert (rows_of[rows_of["activity"] == "update"]["end_s"].diff().dropna() == 2).all()


def test_of_a_loop_within_a_loop_the_inner_one_is_recorded(tmp_path, capsys):
    recorder = Recorder(tmp_path / "run", 8, warmup=0)
    for _ in recorder.steps(range(3)):
        for _ in recorder.steps(range(4)):
            pass
    recorder.close()
    assert traces.read(tmp_path / "run").header.steps == 12
    assert capsys.readouterr().err.count("a loop within a loop") == 1


def test_a_loop_in_another_thread_is_not_recorded(tmp_path, capsys):
    recorder = Recorder(tmp_path / "run", 8, warmup=0)
    for number in recorder.steps(range(5)):
        if number == 1:
            other = threading.Thread(target=list, args=(recorder.steps(range(100)),))
            other.start()
            other.join()
    recorder.close()
    assert traces.read(tmp_path / "run").header.steps == 5
    assert "another thread" in capsys.readouterr().err


def test_a_loop_that_is_left_keeps_the_steps_that_were_whole(tmp_path):
    recorder = Recorder(tmp_path / "run", 8, warmup=0)

    def loop():
        with recorder:
            for number in recorder.steps(range(9)):
                _ = 1 / (4 - number)

    with pytest.raises(ZeroDivisionError):
        loop()
    found = traces.read(tmp_path / "run")
    assert (found.header.steps, found.header.complete) == (4, False)


def test_a_disk_that_takes_no_more_ends_the_recording_and_not_the_loop(tmp_path, capsys, monkeypatch):
    recorder = Recorder(tmp_path / "run", 8)
    monkeypatch.setattr("trainsim.recording.recorder.BLOCK_S", 0.0)

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(os, "write", full)
        assert list(recorder.steps(range(5))) == [0, 1, 2, 3, 4]
        recorder.close()
    assert capsys.readouterr().err.count("No space left on device") == 1


def started(program: str, folder: Path) -> subprocess.Popen:
    """A user's program in a process of its own."""
    line, environment = [sys.executable, "-c", program], {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(line, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.processes
def test_a_loop_that_imports_nothing_is_recorded_with_pythons_own_library(tmp_path):
    program = (
        "import sys; from trainsim import Recorder; recorder = Recorder('run', 8)\n"
        "for _ in recorder.steps(range(9)): pass\n"
        "recorder.close()\n"
        "print(*{'numpy', 'pandas', 'pydantic', 'torch', 'scipy', 'tensorflow'} & set(sys.modules))"
    )
    assert started(program, tmp_path).communicate()[0] == b"\n"
    assert traces.read(tmp_path / "run").header.complete


@pytest.mark.processes
@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_process_that_is_killed_leaves_its_steps_up_to_the_last_block(tmp_path, by):
    program = (
        "import time; from trainsim import Recorder; recorder = Recorder('run', 8)\n"
        "for number in recorder.steps(range(10**6)):\n"
        "    time.sleep(0.01)\n"
        "    if number == 100: print('.', flush=True)\n"
    )
    with started(program, tmp_path) as process:
        assert process.stdout.read(1) == b"."
        process.send_signal(by)
        said = process.stderr.read().decode()
    found = traces.read(tmp_path / "run")
    assert found.header.steps > 20
    assert not found.header.complete
    assert ("KeyboardInterrupt" in said) == (by == signal.SIGINT)
    assert "trainsim" not in said


# ---- steps of several minibatches


def iteration(at: float, updates: bool = True, calls: tuple = ()) -> Iteration:
    """One second each: a tenth is input, the update begins after eight tenths."""
    return Iteration(at, at + 0.1, at + 1, 4, at + 0.8 if updates else None, list(calls))


def joined(updates: list[bool]) -> list[int]:
    steps = Steps()
    steps.joins = True
    found = [step for at, of in enumerate(updates) for step in steps.add(iteration(at, of))]
    return [len(step) for step in [*found, *steps.left()]]


@pytest.mark.parametrize(
    ("updates", "said"),
    [
        ([True] * 4, [1, 1, 1, 1]),
        ([False, False, True] * 3, [3, 3, 3]),
        ([False, False, False, True, True, False, True], [1, 1, 1, 1]),  # a scaler of losses skips until all is finite
        ([False, True, False, True, True], [2, 2, 1]),  # the last of an epoch
        ([False, True], [2]),
        ([False] * 70, [1] * 70),
    ],
)
def test_a_step_is_what_an_update_takes(updates, said):
    assert joined(updates) == said


def test_a_step_shows_what_computing_hides_of_messages():
    calls = (Call(0.5, 400, 0.9), Call(0.6, 100, 0.95))
    first = iteration(0.0, updates=False)
    last = iteration(1.0, calls=[Call(1 + call.start, call.bytes, 1 + call.end) for call in calls])
    found = [(row[4], *row[:2], row[5], row[6]) for row in rows(7, [first, last], 1, 2)]
    assert found == [
        ("input", 0.0, pytest.approx(0.2), 8, 0),
        ("receive", 1.5, 1.9, 0, 400),
        ("receive", 1.6, 1.95, 0, 100),
        ("compute", pytest.approx(0.2), 1.6, 8, 0),
        ("wait", 1.6, 1.95, 0, 0),
        ("update", 1.95, 2.0, 16, 0),
    ]


def test_a_pause_is_a_row_of_its_own_and_no_part_of_what_it_interrupts():
    one = iteration(0.0)
    one.pauses = [Pause("evaluate", 0.3, 0.5), Pause("checkpoint", 0.85, 0.95)]
    found = [(row[4], *map(pytest.approx, row[:2])) for row in rows(7, [one], 0, 1)]
    assert found == [
        ("input", 0.0, 0.1),
        ("evaluate", 0.1, 0.3),
        ("compute", 0.3, 0.8),
        ("checkpoint", 0.8, 0.9),
        ("update", 0.9, 1.0),
    ]


def ticking(recorder: Recorder):
    """Seconds that pass where the test says so, in place of the clock's."""
    passed = [recorder._began_s]
    recorder.now = lambda: passed[0]

    def wait(seconds: float) -> None:
        passed[0] += seconds

    return wait


def test_a_loop_names_its_evaluations_and_its_steps_are_as_long_as_without(tmp_path, capsys):
    recorder = Recorder(tmp_path / "run", 8, warmup=0)
    wait = ticking(recorder)
    for number in recorder.steps(range(6)):
        wait(1.0)
        if number % 3 == 2:
            with recorder.pause("evaluate"), recorder.pause("checkpoint"):
                for _ in recorder.steps(range(4)):
                    wait(10.0)
        with recorder.pause("checkpoint" if number < 5 else "lunch"):
            wait(1.0)
    recorder.close()
    found = traces.read(tmp_path / "run")
    assert list(of_trace(found).step_s[0]) == pytest.approx([1.0] * 6)
    for name, lasted in (("evaluate", [40.0, 40.0, 1.0]), ("checkpoint", [1.0] * 5)):
        paused = found.rows[found.rows["activity"] == name]
        assert list(paused["end_s"] - paused["start_s"]) == pytest.approx(lasted)
    said = capsys.readouterr().err
    assert "pause: given 'lunch'; allowed: evaluate or checkpoint; taken as evaluate" in said
    assert "a loop within a loop" not in said


def test_long_updates_are_taken_for_evaluations_and_said(tmp_path):
    recorder = Recorder(tmp_path / "run", 8, warmup=2)
    recorder._steps.joins = True
    wait = ticking(recorder)
    for number in recorder.steps(range(32)):
        wait(0.08)
        recorder.iteration.computed = recorder.now()
        wait(0.3 if number % 10 == 9 else 0.02)
    recorder.close()
    found = traces.read(tmp_path / "run")
    assert list(of_trace(found).step_s[0]) == pytest.approx([0.1] * 30)
    assert (found.rows["activity"] == "evaluate").sum() == 3
    assert found.header.details["notes"] == [
        "rank 0: in 3 of 30 steps the update takes 5 times the usual 20 ms or more: 280 ms more are taken as an evaluation or a "
        "checkpoint, no part of a step; recorder.pause() names them"
    ]


# ---- the verdict


class Loader(list):
    """Each minibatch is waited for; `num_workers` load beside the loop."""

    def __init__(self, wait, seconds: float, count: int, workers: int | None):
        super().__init__(range(count))
        self.wait, self.seconds = wait, seconds
        if workers is not None:
            self.num_workers = workers

    def __iter__(self):
        for one in super().__iter__():
            self.wait(self.seconds)
            yield one


SHARES = {
    0.6: "input 62%, compute 31%, update 7% of a step of 1930 ms, the mean of 6",
    0.1: "input 22%, compute 65%, update 14% of a step of 930 ms, the mean of 6",
    0.0: "compute 82%, update 18% of a step of 730 ms, the mean of 6",
}


@pytest.mark.parametrize(
    ("input_s", "workers", "bound", "then"),
    [
        (0.6, 1, "input", "more loader workers than 1"),
        (0.6, 0, "input", "load while computing"),
        (0.1, 2, "input", "more loader workers than 2"),  # they are the slower ones, or the loop would not wait
        (0.1, None, "compute", "lower precision"),
        (0.0, 2, "compute", "lower precision"),
    ],
)
def test_a_run_ends_with_what_limits_it_of_all_minibatches(tmp_path, capsys, input_s, workers, bound, then):
    recorder = Recorder(tmp_path / "run", 8, warmup=2)
    recorder._steps.joins = True
    wait = ticking(recorder)
    for number in recorder.steps(Loader(wait, input_s, 16, workers)):
        wait(0.3)
        if number % 2:
            recorder.iteration.computed = recorder.now()
            wait(2.13 if number == 9 else 0.13)
    recorder.close()
    printed = capsys.readouterr().err
    assert printed.startswith(f"trainsim Recorder: {bound}-bound: {SHARES[input_s]}; evaluations and checkpoints took ")
    assert f"; next: {then}" in printed
    assert printed.count("\n") == 1
    found = traces.read(tmp_path / "run")
    assert found.header.details["loader_workers"] == workers
    inputs = found.rows[found.rows["activity"] == "input"]
    assert list(inputs["end_s"] - inputs["start_s"]) == pytest.approx([2 * input_s] * 8, abs=1e-6)


def test_messages_that_nobody_saw_are_said_to_be_part_of_computing(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    recorder = Recorder(tmp_path / "run", 8, warmup=0)
    wait = ticking(recorder)
    for _ in recorder.steps(range(3)):
        wait(0.5)
    recorder.close()
    assert "compute-bound: compute and messages 100% of a step of 500 ms" in capsys.readouterr().err
