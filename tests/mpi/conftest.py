"""Real runs for the tests of this folder."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

SHARED_MEMORY = Path("/dev/shm")


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
        done = subprocess.run(line, capture_output=True, text=True, timeout=400, check=False)
        assert done.returncode == 0, done.stderr

    return run
