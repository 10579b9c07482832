"""A user's own protocol over MPI: the simulated record, sums that are sums, and mistakes that are told before ranks start."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sim import event, protocols, stragglers
from sim.job.scenario import Scenario
from sim.model import workload
from sim.recording.conformance import order, record
from sim.recording.traces import read

pytestmark = [pytest.mark.mpi, pytest.mark.tensorflow]
ROOT = Path(__file__).parents[2]
JOB = ["--workers", "2", "--workload", "mlp", "--batch", "32", "--steps", "5", "--warmup", "2", "--optimiser", "sgd"]
OWN = """
from dataclasses import dataclass

from sim.protocols.base import Protocol
from sim.verbs.me import GRADIENT, PARAMETERS
from sim.verbs import allreduce, gather


@dataclass(frozen=True)
class Rounds(Protocol):
    rounds: int = 2

    def worker(self, me):
        for _ in me.steps():
            yield from me.take_up((yield from me.receive(me.master)))
            yield from me.sleep()
            for _ in range(self.rounds):
                yield from me.compute()
                yield from me.send(GRADIENT, me.master)

    def master(self, me):
        for _ in me.steps():
            yield from me.send(PARAMETERS, me.workers)
            for _ in range(self.rounds):
                yield from gather(me, me.workers)
            yield from me.update()
            yield from me.evaluate()


@dataclass(frozen=True)
class Apart(Rounds):
    def master(self, me):
        for _ in me.steps():
            for worker in list(me.workers)[::-1]:
                yield from me.send(PARAMETERS, worker)
            for _ in range(self.rounds):
                for worker in me.workers:
                    yield from gather(me, [worker])
            yield from me.update()
            yield from me.evaluate()


@dataclass(frozen=True)
class Ring(Protocol):
    def worker(self, me):
        for _ in me.steps():
            yield from me.sleep()
            yield from me.compute()
            yield from allreduce(me, "ring")
            yield from me.update()
            yield from me.evaluate()


@dataclass(frozen=True)
class Deadlock(Rounds):
    def master(self, me):
        for _ in me.steps():
            yield from gather(me, me.workers)
            yield from me.update()
"""


@pytest.fixture
def module(module):
    """The name of a user's module with these texts."""
    return module(OWN)


def test_real_and_simulated_records_of_ones_own_are_equal(module, campaign, tmp_path):
    luck = ["--stragglers", "niagara*0.002", "--test-size", "10", "--evaluate-every", "3"]
    names = ("Rounds", "Apart", "Ring")
    files = [["--parameters", tmp_path / f"{name}.npz", "--trace", tmp_path / f"{name}.parquet"] for name in names]
    cells = [[*JOB, *luck, "--protocol", f"{module}:{name}", *of] for name, of in zip(names, files, strict=True)]
    campaign(cells, tmp_path)
    for name in names:
        real = read(tmp_path / f"{name}.parquet")
        protocol = protocols.make(real.header.protocol, [f"{k}={v}" for k, v in real.header.settings.items()])
        assert (protocols.name_of(protocol), real.header.world) == (f"{module}:{name}", "mpi")
        job = {"workers": 2, "batch": 32, "steps": 5, "warmup": 2, "test_size": 10, "evaluate_every": 3}
        scenario = Scenario(protocol, workload.read("mlp"), stragglers=stragglers.read("niagara*0.002"), **job)
        alike = event.trace(scenario)
        assert record(real) == record(alike)
        assert order(real) == order(alike)
    rounds, apart = (np.load(tmp_path / f"{name}.npz") for name in ("Rounds", "Apart"))
    for key in rounds.files:  # the same gradients, in another order
        np.testing.assert_allclose(rounds[key], apart[key], rtol=1e-5, atol=1e-6)


def test_a_deadlock_is_told_before_ranks_are_started(module):
    line = [sys.executable, "-m", "real.run", *JOB, "--protocol", f"{module}:Deadlock"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=1200, check=False, cwd=ROOT)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"real.run: deadlock in {module}:Deadlock: ranks 0, 1, 2 wait for ever\n"


def test_a_campaign_is_told_of_one_before_it_begins(module, tmp_path):
    cell = [*JOB, "--protocol", f"{module}:Deadlock", "--trace", str(tmp_path / "t.parquet")]
    (tmp_path / "cells.json").write_text(json.dumps([cell]))
    line = [sys.executable, "-m", "real.campaign", str(tmp_path / "cells.json")]
    done = subprocess.run(line, capture_output=True, text=True, timeout=1200, check=False, cwd=ROOT)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"real.campaign: deadlock in {module}:Deadlock: ranks 0, 1, 2 wait for ever\n"


REFUSED = r"answers none of the jobs; refused: \w+\.py:\d+: not in the subset: list\(me\.workers\)"


@pytest.mark.parametrize(
    ("name", "said"), [("Apart", REFUSED), ("Ring", r"answers \d+ of the jobs, as the event world does$")]
)
def test_a_stranger_checks_one_in_every_world(module, name, said):
    line = [sys.executable, "-m", "sim.protocols.check", f"{module}:{name}"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=1200, check=False, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(rf"^engine +{said}", done.stdout, re.MULTILINE)
    assert "real run      2 workers trained, and their record is the simulated one" in done.stdout
