"""Real runs by JAX and NumPy on a machine that has no TensorFlow. Parameters are TensorFlow's (tests/tensorflow/test_jax.py)."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from sim.recording import traces

ROOT = Path(__file__).parents[2]
SMALL = shlex.split("--batch 32 --steps 6 --warmup 1 --stragglers none --optimiser mom --workers 2")
PROTOCOLS = {
    "fmb": "--workload mlp --test-size 50 --evaluate-every 3",
    "amb": "--workload mlp --set time_limit_s=0.05 --set partitions=4",
    "ps-async": "--workload mlp --servers 2",
    "ps-layers": "--workload mlp --servers 2",
    "horovod": "--workload mlp",
    "hybrid": "--workload bigram",
    "allreduce": "--workload transformer_small",
}
BY = [
    *(("jax", name) for name in PROTOCOLS),
    *(("numpy", name) for name in ("fmb", "amb", "ps-async", "hybrid", "allreduce")),
]
DENSE = {"hybrid": "--workload mlp", "allreduce": "--workload softmax"}  # in place of what NumPy has no operations for
GONE = """
import sys
class Gone:
    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0] in ('tensorflow', 'keras'):
            raise ModuleNotFoundError(name)
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
    """Of a campaign's traces, one for each engine and protocol."""
    folder, cells = tmp_path_factory.mktemp("traces"), []
    for engine, name in BY:
        more = DENSE.get(name, PROTOCOLS[name]) if engine == "numpy" else PROTOCOLS[name]
        words = f"--engine {engine} --protocol {name} {more} --trace {folder / f'{engine}-{name}.parquet'}"
        cells.append([*SMALL, *words.split()])
    (folder / "cells.json").write_text(json.dumps(cells))
    done = run("real.campaign", folder / "cells.json", **without)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize(("engine", "name"), BY)
def test_a_protocol_runs_over_mpi_without_tensorflow(folder, engine, name):
    header = traces.read(folder / f"{engine}-{name}.parquet").header
    assert (header.world, header.complete, header.training.engine) == ("mpi", True, engine)
    assert set(header.details["versions"]) == {"python", "numpy", engine}


def test_what_needs_tensorflow_says_so_in_one_line(without):
    """The default engine, and runtimes that are TensorFlow's."""
    for words, said in (
        ([], "TensorFlow"),
        (["--engine", "jax", "--runtime", "tensorflow"], "tensorflow with --runtime"),
    ):
        done = run("real.run", "--protocol", "ps-async", "--workers", 1, *words, **without)
        assert done.returncode == 2
        assert said in done.stderr
        assert len(done.stderr.splitlines()) == 1
