"""Real runs for the tests of this folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

SHARED_MEMORY = Path("/dev/shm")
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session", autouse=True)
def _nothing_stays():
    """What killed ranks leave, files of TensorFlow's and shared memory of Open MPI's, goes when the tests have ended."""
    here = SHARED_MEMORY if SHARED_MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="trainsim-", dir=here) as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", folder)
        patch.setenv("OMPI_MCA_btl_sm_backing_directory", folder)
        yield


@pytest.fixture(scope="session")
def campaign():
    """Run cells (lists of real.run's options) in one launch; after a probe, written to the file `probe`, if given."""

    def run(cells, folder, probe=None) -> None:
        file = folder / "cells.json"
        file.write_text(json.dumps([[str(word) for word in cell] for cell in cells]))
        line = [sys.executable, "-m", "real.campaign", str(file), *(["--probe", str(probe)] if probe else [])]
        done = subprocess.run(line, capture_output=True, text=True, timeout=1200, check=False)
        assert done.returncode == 0, done.stderr

    return run


@pytest.fixture(scope="session")
def all_parameters():
    """Run cells (lists of real.run's options, by name) in one launch; parameters, NAME and NAME/RANK. Traces are NAME.parquet."""

    def run(cells, folder):
        from real.launching import mpirun

        asked = {name: [*map(str, words), "--trace", str(folder / f"{name}.parquet")] for name, words in cells.items()}
        (folder / "kept.json").write_text(json.dumps(asked))
        line = [mpirun.mpirun(), "-n", 4, "--oversubscribe", "--bind-to", "none", "--allow-run-as-root", sys.executable]
        line += ["-m", "mpi4py", ROOT / "tests/mpi/keep_all_parameters.py", folder / "kept.json", folder / "kept.npz"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        words = [str(word) for word in line]
        done = subprocess.run(
            words, capture_output=True, text=True, cwd=ROOT, env=environment, timeout=1200, check=False
        )
        assert done.returncode == 0, done.stderr
        return np.load(folder / "kept.npz")

    return run
