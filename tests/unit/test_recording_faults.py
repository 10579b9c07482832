"""trainsim.Recorder where the system, or the program around its loop, fails: the training goes on, files stay whole."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from types import ModuleType, SimpleNamespace

import pytest
from processes import ROOT

from sim.base.errors import RunFailed, WrongSetting
from sim.recording import traces
from trainsim import Recorder
from trainsim.recording import place

FULL = OSError(28, "No space left on device")


@pytest.fixture(autouse=True)
def _alone(monkeypatch, tmp_path):
    """No launcher, and a block after each step."""
    for name in (place.RESTARTS, *(name for name, _ in place.LAUNCHERS)):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("trainsim.recording.recorder.BLOCK_S", 0.0)
    monkeypatch.chdir(tmp_path)


class Stderr:
    """One that takes nothing."""

    def __init__(self, error: Exception):
        self.error = error

    def write(self, _):
        raise self.error

    def flush(self):
        raise self.error


@pytest.mark.parametrize(
    "stderr",
    [Stderr(FULL), Stderr(ValueError("I/O operation on closed file")), Stderr(BrokenPipeError()), None],
    ids=["full", "closed", "pipe", "none"],
)
def test_a_warning_that_cannot_be_printed_ends_no_training(tmp_path, monkeypatch, capsys, stderr):
    recorder = Recorder(tmp_path / "run", lambda batch: 1 / batch)
    with monkeypatch.context() as here:
        here.setattr(sys, "stderr", stderr)
        assert list(recorder.steps([1, 0, 1])) == [1, 0, 1]
        recorder.close()
    assert capsys.readouterr().out == ""


def test_an_error_that_cannot_be_told_ends_no_training(tmp_path):
    class Odd(Exception):
        def __str__(self):
            raise RuntimeError

    def batch(_):
        raise Odd

    assert list(Recorder(tmp_path / "run", batch).steps([1, 2])) == [1, 2]


def test_a_disk_that_is_full_ends_no_training_by_keras(tmp_path, monkeypatch, capsys):
    keras = ModuleType("keras.callbacks")
    keras.Callback = object
    monkeypatch.setitem(sys.modules, "keras.callbacks", keras)
    recorder = Recorder(tmp_path / "run", 8)
    told = recorder.keras()
    told.model = SimpleNamespace(name="net", trainable_variables=[SimpleNamespace(path="w", shape=(3,))])
    monkeypatch.setitem(sys.modules, "keras", SimpleNamespace(__version__="3"))

    def full(*_):
        raise RunFailed("no space")

    monkeypatch.setattr("trainsim.recording.files.write_text", full)
    told.on_epoch_begin(0)
    told.on_train_batch_begin(0)
    told.on_train_batch_end(0)
    assert "nothing more is recorded: no space" in capsys.readouterr().err


@pytest.mark.parametrize("error", [RunFailed("cannot write: No space left on device"), FULL])
def test_a_start_that_fails_leaves_no_file_and_is_a_wrong_setting(tmp_path, monkeypatch, error):
    def full(*_):
        raise error

    with monkeypatch.context() as disk:
        disk.setattr("trainsim.recording.files.write_text", full)
        with pytest.raises(WrongSetting, match=r"a folder that can be written \(.*No space left on device\)"):
            Recorder(tmp_path / "run", 8)
    assert not list((tmp_path / "run").iterdir())
    Recorder(tmp_path / "run", 8).close()


def test_a_file_of_the_users_is_not_taken_for_the_recorders(tmp_path):
    (tmp_path / "workload.toml").write_text("mine")
    with pytest.raises(WrongSetting, match=r"in which no run was recorded: workload\.toml is there"):
        Recorder(tmp_path, 8)
    assert [one.name for one in tmp_path.iterdir()] == ["workload.toml"]


def test_a_loop_that_changes_its_folder_keeps_all(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    recorder = Recorder("run", 8, warmup=0)
    for number in recorder.steps(range(5)):
        if number == 2:
            monkeypatch.chdir(tmp_path / "elsewhere")
    recorder.close()
    found = traces.read(tmp_path / "run")
    assert (found.header.steps, found.header.complete) == (5, True)


@pytest.mark.processes
def test_a_program_that_closes_all_descriptors_keeps_its_own_files(tmp_path):
    program = (
        "import os; from trainsim import Recorder; recorder = Recorder('run', 8, warmup=0)\n"
        "import trainsim.recording.recorder as of; of.BLOCK_S = 0\n"
        "for number in recorder.steps(range(20)):\n"
        "    if number == 8: os.closerange(3, 100); mine = open('mine.txt', 'w'); mine.write('precious'); mine.flush()\n"
        "recorder.close()\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=environment, check=True)
    assert (tmp_path / "mine.txt").read_text() == "precious"
    assert traces.read(tmp_path / "run").header.steps == 20


def test_a_file_that_another_has_put_in_its_place_is_not_written(tmp_path, capsys):
    recorder = Recorder(tmp_path / "run", 8)
    rows, facts = tmp_path / "run" / "rank-00000.jsonl", tmp_path / "run" / "rank-00000.json"
    for number in recorder.steps(range(9)):
        if number == 4:
            rows.unlink()
            rows.write_text("theirs")
            facts.write_text("theirs")
    recorder.close()
    assert (rows.read_text(), facts.read_text()) == ("theirs", "theirs")
    assert capsys.readouterr().err.count("nothing more is recorded") == 1


def test_a_process_that_was_forked_in_the_loop_writes_nothing(tmp_path):
    recorder, own = Recorder(tmp_path / "run", 8, warmup=0), os.getpid()
    for number in recorder.steps(range(6)):
        if number == 2 and (child := os.fork()):
            os.waitpid(child, 0)
    if os.getpid() != own:
        os._exit(0)
    recorder.close()
    assert traces.read(tmp_path / "run").header.steps == 6


class Endless(Mapping):
    """Each of its values is another one."""

    def __getitem__(self, _):
        return Endless()

    def __iter__(self):
        return itertools.repeat("more")

    def __len__(self):
        return 1


def test_a_batch_without_an_end_ends_the_recording_and_not_the_loop(tmp_path, capsys):
    itself: list = []
    itself.append(itself)
    for number, batch in enumerate((itself, {"x": itself}, Endless())):
        assert list(Recorder(tmp_path / f"run-{number}").steps([batch] * 3)) == [batch] * 3
    assert capsys.readouterr().err.count("does not tell them") == 3


# ---- whether a run is complete


def leave(how: str, numbers) -> None:
    for number in numbers:
        if number == 3 and how == "break":
            break
        if number == 3 and how == "interrupt":
            raise KeyboardInterrupt


@pytest.mark.parametrize(("how", "complete"), [("end", True), ("break", False), ("interrupt", False)])
def test_a_run_is_complete_if_its_loop_came_to_its_end(tmp_path, how, complete):
    recorder = Recorder(tmp_path / "run", 8, warmup=0)
    with contextlib.suppress(KeyboardInterrupt):
        leave(how, recorder.steps(range(9)))
    recorder.close()
    assert traces.read(tmp_path / "run").header.complete == complete


@pytest.mark.processes
def test_a_program_that_exits_within_the_loop_is_cut_short(tmp_path):
    program = (
        "import sys; from trainsim import Recorder; recorder = Recorder('run', 8, warmup=0)\n"
        "for number in recorder.steps(range(20)):\n"
        "    if number == 8: sys.exit(0)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=environment, check=True)
    assert json.loads((tmp_path / "run" / "rank-00000.json").read_text())["complete"] is False
