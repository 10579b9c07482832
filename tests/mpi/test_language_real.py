"""real.run over MPI: they train to the bit what others train, and leave the trace of who did what."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from alike import trained
from processes import ROOT

from sim.answers.outcome import of_trace
from sim.recording.conformance import gradients
from sim.recording.traces import read

STEPS, WARMUP, WORKERS, BATCH = 4, 1, 2, 32
JOB = f"--runtime mpi --engine numpy --workload mlp --optimiser mom --workers {WORKERS} --batch {BATCH} --steps {STEPS} --warmup {WARMUP}"
FMB = "sim.texts.fmb:FixedMinibatch"
CELLS = {
    "fmb": "--protocol fmb --test-size 50 --evaluate-every 2 --stragglers niagara*0.002",
    "own": f"--protocol {FMB}",
    "amb": "--protocol amb --set time_limit_s=3600 --set partitions=4",
    "ps-barrier": "--protocol ps-sync --set barrier=true --servers 2",
    "ps-layers": "--protocol ps-layers",
    "ps-async": "--protocol ps-async",
    "allreduce": "--protocol allreduce --set algorithm=ring",
    "ddp": "--protocol sim.texts.ddp:Ddp --set bucket_mb=0.01",
    "fsdp": "--protocol sim.texts.fsdp:Fsdp",
    "horovod": "--protocol horovod",
    "local-sgd": "--protocol sim.texts.local_sgd:LocalSgd",
}
SYNCHRONOUS = sorted(set(CELLS) - {"fmb", "ps-async", "local-sgd"})
OWN = """
from dataclasses import dataclass
from sim.language.text import Text
from sim.language.verbs import compute

@dataclass(frozen=True)
class Fails(Text):
    name = "fails"
    def __call__(self, me):
        for step in me.steps():
            yield from compute(me)
            if me.rank == 1 and step == 4:
                1 / 0
            yield from me.update(samples=me.batch)

@dataclass(frozen=True)
class Rate(Text):
    name = "rate"
    def __call__(self, me):
        for step in me.steps():
            yield from me.update(rate=0.1)
"""


@pytest.fixture(scope="module")
def folder(campaign):
    return campaign({name: [*JOB.split(), *words.split()] for name, words in CELLS.items()}, parameters=True)


@pytest.mark.parametrize("name", SYNCHRONOUS)
def test_synchronous_texts_train_to_the_bit_what_a_master_does(folder, name):
    """But for the order of a sum: parts of a minibatch are added up one after another."""
    apart = np.abs(trained(folder, name) - trained(folder, "fmb")).max()
    assert apart <= (1e-6 if name == "amb" else 0)


@pytest.mark.parametrize("name", sorted(CELLS))
def test_steps_and_samples_of_a_trace(folder, name):
    trace = read(folder / f"{name}.parquet")
    found = of_trace(trace)
    assert found.step_s.shape == (1, STEPS)
    assert (found.samples == WORKERS * BATCH).all()
    assert gradients(trace).computed >= (STEPS + WARMUP) * WORKERS * BATCH
    assert trace.header.complete


def test_waits_of_a_rank_are_apart_from_one_another_and_from_what_it_computes(folder):
    for name in ("ddp", "horovod", "fsdp"):
        rows = read(folder / f"{name}.parquet").rows
        # Others mark where one has ended.
        waits = rows[(rows["activity"] == "wait") & (rows["end_s"] > rows["start_s"])]
        for _, mine in waits.sort_values("start_s").groupby("rank"):
            assert (mine["start_s"].to_numpy()[1:] >= mine["end_s"].to_numpy()[:-1]).all(), name


def _run(*words: str, **environment) -> subprocess.CompletedProcess:
    given = {**dict(zip(*[iter(JOB.split())] * 2, strict=True)), **dict(zip(*[iter(words)] * 2, strict=True))}
    line = [sys.executable, "-m", "real.run", *(word for pair in given.items() for word in pair), "--quiet", "--json"]
    return subprocess.run(
        line, capture_output=True, text=True, cwd=ROOT, env=os.environ | environment, timeout=300, check=False
    )


def test_one_process_trains_alone():
    done = _run("--protocol", "sim.texts.ddp:Ddp", "--workers", "1")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["world"] == "mpi"


def test_what_no_engine_has_is_refused_in_a_line(tmp_path):
    (tmp_path / "own_texts.py").write_text(OWN)
    own = {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    for words, code, said in (
        (["--protocol", "sim.texts.pipeline:Pipeline"], 2, "activation"),
        (["--protocol", "own_texts:Rate"], 2, "without a rate of the text's own"),
        (["--protocol", "own_texts:Fails"], 1, "fails, rank 1, own_texts.py:13: ZeroDivisionError: division by zero"),
    ):
        done = _run(*words, **own)
        assert done.returncode == code, done.stderr
        assert said in done.stderr
        assert len(done.stderr.splitlines()) == 1, done.stderr
