"""`trainsim learn`: when runs end, what is evaluated, what is written, and what is refused."""

import json
import math
import re
import shlex
import signal
import subprocess
import sys
from dataclasses import replace
from math import log

import event
import numpy as np
import pandas as pd
import pytest
from learning_jobs import MODEL, TRAINING, job
from test_commands import refused
from test_learning import rows

from real import learn as command_of_learn
from real.learning.learned import in_a_line
from real.learning.learning import learn
from real.learning.trainer import Trainer
from real.training.trainee import Training
from sim.base.errors import WrongSetting
from sim.efficiency import law
from sim.recording import curves
from sim.recording.curves import reached
from sim.recording.traces import read

USUAL = {
    "--protocol": "fmb",
    "--workload": "softmax",
    "--engine": "numpy",
    "--data": "synthetic",
    "--batch": "20",
    "--workers": "2",
    "--steps": "8",
    "--replications": "2",
}


def asked(*words: str) -> list[str]:
    """A command line, whose words replace the usual ones."""
    return [*words, *(word for option in USUAL.items() if option[0] not in words for word in option)]


# ---- runs


@pytest.mark.slow
def test_a_run_ends_when_its_target_is_reached():
    """At the first evaluation that reaches it; the runs are the first parts of those without a target."""
    scenario = job("ps-async", steps=60)
    whole, found = (learn(scenario, TRAINING, until, 3, evaluate_every=1) for until in (None, "accuracy=0.9"))
    assert whole.time_s is None
    for short, long, time_s, updates in zip(found.curves, whole.curves, found.times_s, found.updates, strict=True):
        size = len(short.time_s)
        assert 1 < size < len(long.time_s)
        for name in vars(long):
            np.testing.assert_array_equal(getattr(short, name), getattr(long, name)[:size])
        assert (short.accuracy[:-1] < 0.9).all()
        assert short.accuracy[-1] >= 0.9
        assert (time_s, updates) == (short.time_s[-1], short.step[-1])
        assert time_s == reached(long, "accuracy=0.9")
    assert found.time_s == pytest.approx(np.exp(np.log(found.times_s).mean()))
    assert found.interval[0] < found.time_s < found.interval[1]


def test_a_run_that_does_not_reach_its_target_is_said():
    """Of five runs, so short that some reach it."""
    full = learn(job("fmb", steps=6), TRAINING, replications=5, evaluate_every=1)
    best = sorted(one.accuracy.max() for one in full.curves)
    assert best[1] < best[3]
    found = learn(job("fmb", steps=6), TRAINING, f"accuracy={best[3]}", 5, evaluate_every=1)
    missed = int(np.isnan(found.times_s).sum())
    assert 0 < missed < 5
    assert (found.time_s, found.interval) == (None, None)
    assert in_a_line(found) == found.notes[0] == f"{missed} of 5 runs did not reach accuracy {best[3]:g} in 6 steps"
    assert found.best_accuracy == best[-1]


def test_evaluations_take_no_time_unless_they_are_asked_to():
    scenario = job("fmb", steps=20)
    free, waited = (
        learn(replace(scenario, test_size=size, evaluate_every=5), TRAINING, replications=1, want_trace=True)
        for size in (0, 200)
    )
    assert rows(free.trace) == rows(event.trace(scenario))
    assert waited.curves[0].step.tolist() == [5, 10, 15, 20]
    expected = event.trace(replace(scenario, test_size=200, evaluate_every=5))
    assert rows(waited.trace) == rows(expected, end_s=waited.curves[0].time_s[-1])
    assert waited.curves[0].time_s[-1] > free.curves[0].time_s[-1]


@pytest.mark.slow
def test_evaluations_come_more_rarely_as_the_run_goes_on():
    found = learn(job("ps-async", steps=400), TRAINING, replications=1).curves[0]
    assert found.step[:50].tolist() == list(range(1, 51))
    assert found.step[-1] == 1200
    assert (np.diff(found.step[50:-1]) == found.step[50:-2] // 50).all()


@pytest.mark.parametrize("protocol", ["fmb", "ps-async", "allreduce"])
def test_a_trace_has_the_same_curves(protocol, tmp_path):
    """It is the beginning of the simulation's, until the last evaluation."""
    found = learn(job(protocol, steps=40), TRAINING, "accuracy=0.9", 2, want_trace=True)
    assert rows(found.trace) == rows(event.trace(job(protocol, steps=40)), end_s=found.times_s[0])
    early = found.at("accuracy=0.5")
    assert found.slower_than(early).value == pytest.approx(found.time_s / early.time_s)
    assert found.time_s > 1.1 * early.time_s
    found.trace.write(tmp_path / "a.parquet")
    trace = read(tmp_path / "a.parquet")
    assert (trace.header.world, trace.header.training) == ("learning", found.training)
    for name, column in vars(curves.curves(trace)).items():
        np.testing.assert_allclose(column, getattr(found.curves[0], name), err_msg=name)


def test_an_own_trainer_is_used_again():
    scenario = job("fmb")
    trainer = Trainer(MODEL, scenario.seed, TRAINING)
    one, other = (learn(scenario, TRAINING, replications=1, trainer=trainer) for _ in range(2))
    np.testing.assert_array_equal(one.curves[0].loss, other.curves[0].loss)


def test_work_done_is_said_as_it_is_done():
    """In all that of the runs, though a run ends early."""
    from real.learning.learning import work

    scenario, done = job("ps-async", steps=60), []
    learn(scenario, TRAINING, "accuracy=0.8", 2, done=done.append)
    assert sum(done) == pytest.approx(2 * work(scenario))
    assert min(done) >= 0


@pytest.mark.slow
def test_a_target_takes_no_longer_than_training_with_slower_computing_does():
    """amb's steps last as long whatever computing takes, which is known within a factor 11: fewer samples make updates noisier."""
    costs = MODEL.costs.model_copy(update={"error": 1.48})
    scenario = job("amb", "time_limit_s=30ms", "partitions=8", steps=300, stragglers="exponential(mean=10ms)")
    scenario = replace(scenario, batch=256, workload=MODEL.model_copy(update={"costs": costs}))
    found = learn(scenario, TRAINING, "accuracy=0.9", 3)
    low, high = found.not_known
    slower = log(high / found.time_s)
    speed = found.speed.answer()["interval"]["not_known"]
    assert "all work" in found.at_ends
    assert slower < 0.7 * log(found.speed.samples_per_s / speed[0])
    assert low <= found.time_s <= high
    assert found.run_to_run[0] > found.interval[0]
    assert found.run_to_run[1] < found.interval[1]
    told = found.answer()["interval"]
    assert (told["run_to_run"], told["not_known"]) == (list(found.run_to_run), list(found.not_known))


# ---- the command


@pytest.mark.slow
def test_the_command_answers(capsys, tmp_path):
    table, trace, page, plot = (tmp_path / name for name in ("a.csv", "a.jsonl", "a.html", "a.png"))
    outputs = ["-o", str(table), "--trace", str(trace), "--report", str(page), "--plot", str(plot)]
    words = asked(
        "--protocol", "ps-async", "--until", "loss=2", "--what-if", "workers=1", "--json", "--quiet", *outputs
    )
    assert command_of_learn.main(words) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["schema"], found["runs"], found["target"]) == ("learned/1", 2, {"of": "loss", "value": 2.0})
    assert found["time_s"] > 0
    (other,) = found["what_if"]
    assert (other["change"], other["answer"]["scenario"]["workers"]) == ("workers=1", 1)
    assert other["time_ratio"]["pairs"] == 2
    frame = pd.read_csv(table)
    assert set(frame["replication"]) == {0, 1}
    assert set(frame["change"].fillna("")) == {"", "workers=1"}
    assert len(frame) == sum(len(one["step"]) for answer in (found, other["answer"]) for one in answer["curves"])
    assert read(trace).header.world == "learning"
    assert page.read_text().startswith("<!doctype html>")
    assert plot.stat().st_size > 0


@pytest.mark.slow
def test_a_table_of_steps_is_one_that_a_plan_takes(tmp_path):
    file = tmp_path / "steps.csv"
    words = asked("--until", "loss=2.2", "--steps", "200", "--batch", "4", "--what-if", "batch=8", "--quiet")
    assert command_of_learn.main([*words, "--steps-table", str(file)]) == 0
    table = pd.read_csv(file)
    assert list(table.columns) == ["batch", "steps"]
    found = law.read(str(file))
    assert found.batches == (8, 16)
    assert found.steps(8).median == pytest.approx(np.exp(np.log(table["steps"][table["batch"] == 8]).mean()), rel=0.2)


def test_a_table_without_rows_is_said(tmp_path, capsys):
    file = tmp_path / "steps.csv"
    assert command_of_learn.main(asked("--until", "loss=0.001", "--steps-table", str(file), "--quiet")) == 0
    assert "has no rows: no run reached loss 0.001" in capsys.readouterr().err


@pytest.mark.slow
def test_the_answer_is_a_line_and_a_table(capsys):
    assert command_of_learn.main(asked("--until", "loss=2", "--what-if", "protocol=ps-async")) == 0
    said = capsys.readouterr().out
    assert re.match(r"loss 2 after [\d.]+ m?s \([\d.]+ m?s to [\d.]+ m?s, 9 in 10\), 2 runs\n", said)
    assert re.search(r"^protocol=ps-async", said, re.MULTILINE)


@pytest.mark.slow
def test_a_job_without_a_target_reaches_none_and_its_training_is_said(capsys):
    assert command_of_learn.main(asked("--weight-decay", "0.25", "--until", "loss=2")) == 0
    with_target = capsys.readouterr().out
    assert "weight decay 0.25" in with_target
    words = asked("--what-if", "workers=3", "--json")
    at = words.index("--until") if "--until" in words else None
    words = words if at is None else words[:at] + words[at + 2 :]
    assert command_of_learn.main(words) == 0
    assert json.loads(capsys.readouterr().out)["training"]["weight_decay"] == 5e-4
    assert command_of_learn.main([one for one in words if one != "--json"]) == 0
    assert "not reached" not in capsys.readouterr().out


def test_weight_decay_changes_what_is_learned():
    runs = [learn(job("fmb", steps=6), replace(TRAINING, weight_decay=each)) for each in (0.0, 0.5)]
    assert runs[0].curves[0].loss[-1] != runs[1].curves[0].loss[-1]
    with pytest.raises(WrongSetting, match="--weight-decay"):
        learn(job("fmb", steps=6), replace(TRAINING, weight_decay=-1.0))


REFUSED = {
    "--until": ["--until", "accuracy=1.5"],
    "--until ": ["--until", "speed=3"],
    "--until  ": ["--until", "loss=0"],
    "--workload": ["--workload", "vgg16"],
    "--workload ": ["--workload", "mnist"],  # which NumPy has no operations for
    "--optimiser": shlex.split("--workload bigram --data words --engine tensorflow --optimiser adm --protocol hybrid"),
    "--set algorithm": ["--protocol", "allreduce", "--set", "algorithm=unknown"],
    "--set local": ["--protocol", "local-sgd", "--set", "local=0"],
    "--evaluate-every": ["--evaluate-every", "0"],
    "--output": ["-o", "x.txt"],
    "--steps-table": ["--until", "loss=2", "--steps-table", "x.txt"],
    "--steps-table ": ["--steps-table", "x.csv"],  # without a target
    "--steps-table  ": ["--until", "loss=2", "--steps-table", "x.csv", "--protocol", "amb"],
    "--trace": ["--trace", "x.txt"],
    "--plot": ["--plot", "x.txt"],
    "--report": ["--report", "x.txt"],
    "--data": ["--data", "nowhere"],
    "--learning-rate": ["--learning-rate", "0"],
    "--what-if": ["--what-if", "speed=3"],
    "--what-if ": ["--what-if", "workload=vgg16"],
}


@pytest.mark.parametrize("words", REFUSED.values(), ids=REFUSED)
def test_a_wrong_setting_is_one_line(words, here, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert refused(here("real.learn", *asked(*words))).startswith("real.learn: ")
    assert not list(tmp_path.iterdir())


def test_python_is_told_too():
    for change, name in (({"replications": 0}, "--replications"), ({"until": "accuracy=2"}, "--until")):
        with pytest.raises(WrongSetting, match=f"^{name}: given "):
            learn(job("fmb"), TRAINING, **change)


@pytest.mark.parametrize("given", [3, 0.5, "numpy", object(), [job("fmb")]], ids=lambda given: type(given).__name__)
@pytest.mark.parametrize("name", ["scenario", "training", "until", "trainer", "evaluate_every", "done"])
def test_an_argument_of_another_kind_is_refused_by_its_name(name, given):
    if (name, given) in (("until", "numpy"), ("evaluate_every", 3)):
        return
    with pytest.raises(WrongSetting, match=f"^{name}: given "):
        learn(**{"scenario": job("fmb"), "training": TRAINING} | {name: given})


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("optimiser", "best"),
        ("learning_rate", "a"),
        ("learning_rate", 0.0),
        ("decay_steps", 10**30),
        ("decay_rate", math.nan),
        ("device", "tpu"),
        ("threads", 10**30),
        ("threads", 0),
        ("engine", "torch"),
        ("data", 5),
    ],
)
def test_a_setting_of_training_that_cannot_be_is_refused(name, given):
    with pytest.raises(WrongSetting, match=f"^--{name.replace('_', '-')}: given "):
        Training(**{name: given})


def test_a_job_that_reaches_its_target_later_is_slower():
    """By the ratio of the times, run by run, and the other way round by its inverse."""
    quick, slow = (
        learn(job("fmb", stragglers=law), TRAINING, "accuracy=0.1", 3) for law in ("none", "exponential(mean=1s)")
    )
    for one, other in ((slow, quick), (quick, slow)):
        found = one.slower_than(other)
        assert found.value == pytest.approx(np.exp(np.log(one.times_s / other.times_s).mean()))
        assert found.interval[0] <= found.value <= found.interval[1]
    assert slow.slower_than(quick).value > 1
    assert slow.slower_than(learn(job("fmb"), TRAINING, replications=3)) is None  # which has no target


def test_what_was_learned_is_compared_with_what_was_learned():
    found = learn(job("fmb"), TRAINING, "accuracy=0.1", 1)
    for array in (found.times_s, found.curves[0].loss):
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 7
    for wrong in (lambda: found.slower_than(5), lambda: found.at(5), lambda: found.at(None)):
        with pytest.raises(WrongSetting, match=r"^(base|target): (given|missing)"):
            wrong()


@pytest.mark.processes
def test_ctrl_c_ends_it_with_a_line(tmp_path):
    """While it trains; nothing is written."""
    words = asked("--steps", "1000000", "--trace", str(tmp_path / "a.jsonl"))
    with subprocess.Popen([sys.executable, "-m", "real.learn", *words], stderr=subprocess.PIPE, text=True) as running:
        try:
            assert running.stderr.readline().startswith("at most about ")  # and training begins
            running.send_signal(signal.SIGINT)
            said = running.communicate(timeout=60)[1]
        finally:
            running.kill()
    assert running.returncode == 130
    assert said.splitlines()[-1] == "real.learn: interrupted"
    assert not list(tmp_path.iterdir())
