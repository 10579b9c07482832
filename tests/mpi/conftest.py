"""Real runs for the tests of this folder."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest


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
