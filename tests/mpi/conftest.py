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


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    """Run cells, options of real.run by name, in one launch; the folder of NAME.parquet, and of NAME.npz and probe.json if asked for."""

    def run(cells: dict[str, list], parameters: bool = False, probe: bool = False, folder: Path | None = None) -> Path:
        folder = folder or tmp_path_factory.mktemp("runs")
        file, lines = folder / "cells.json", []
        for name, words in cells.items():
            kept = ["--parameters", folder / f"{name}.npz"] if parameters else []
            lines.append([str(word) for word in (*words, "--trace", folder / f"{name}.parquet", *kept)])
        file.write_text(json.dumps(lines))
        probed = ["--probe", str(folder / "probe.json")] if probe else []
        line = [sys.executable, "-m", "real.campaign", str(file), *probed]
        done = subprocess.run(line, capture_output=True, text=True, timeout=1200, check=False)
        assert done.returncode == 0, done.stderr
        return folder

    return run
