"""Real runs by NumPy on a machine that has no TensorFlow. Parameters are TensorFlow's (tests/tensorflow/test_numpy.py)."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys

import pytest
from processes import ROOT

from sim.recording import traces

SMALL = shlex.split("--batch 32 --steps 6 --warmup 1 --stragglers none --optimiser mom --workers 2")
PROTOCOLS = {
    "fmb": "--workload mlp --test-size 50 --evaluate-every 3",
    "amb": "--workload mlp --set time_limit_s=0.05 --set partitions=4",
    "ps-async": "--workload mlp --servers 2",
    "hybrid": "--workload mlp",
    "allreduce": "--workload softmax",
}
GONE = """
import sys
class Gone:
    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0] in ('tensorflow', 'keras'):
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Gone())
"""


def run(*line, **environment) -> subprocess.CompletedProcess:
    line = [sys.executable, "-m", *map(str, line)]
    return subprocess.run(
        line, capture_output=True, text=True, cwd=ROOT, env=os.environ | environment, timeout=1200, check=False
    )


@pytest.fixture(scope="module")
def without(tmp_path_factory):
    """The environment of a Python without TensorFlow."""
    folder = tmp_path_factory.mktemp("gone")
    (folder / "sitecustomize.py").write_text(GONE)
    return {"PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory, without):
    """Of a campaign's traces, one for each protocol."""
    folder, cells = tmp_path_factory.mktemp("traces"), []
    for name, more in PROTOCOLS.items():
        words = f"--engine numpy --protocol {name} {more} --trace {folder / f'{name}.parquet'}"
        cells.append([*SMALL, *words.split()])
    (folder / "cells.json").write_text(json.dumps(cells))
    done = run("real.campaign", folder / "cells.json", **without)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_protocol_runs_over_mpi_without_tensorflow(folder, name):
    header = traces.read(folder / f"{name}.parquet").header
    assert (header.world, header.complete, header.training.engine) == ("mpi", True, "numpy")
    assert set(header.details["versions"]) == {"python", "numpy"}


def test_what_needs_tensorflow_says_so_in_one_line(without):
    """The default engine, and runtimes that are TensorFlow's."""
    for words, said in (
        ([], "tensorflow"),
        (["--engine", "numpy", "--runtime", "tensorflow"], "tensorflow with --runtime"),
    ):
        done = run("real.run", "--protocol", "ps-async", "--workers", 1, *words, **without)
        assert done.returncode == 2
        assert said in done.stderr
        assert len(done.stderr.splitlines()) == 1
