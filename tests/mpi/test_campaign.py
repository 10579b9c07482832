"""A campaign that was cut off goes on, for real."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from real.options import scenario
from real.run import parse
from sim.traces import Trace, read

pytestmark = pytest.mark.tensorflow
JOB = [
    "--protocol",
    "fmb",
    "--workload",
    "mlp",
    "--workers",
    "1",
    "--batch",
    "8",
    "--steps",
    "3",
    "--warmup",
    "1",
    "--stragglers",
    "none",
    "--trace",
]


def resumed(file, probe) -> subprocess.CompletedProcess:
    line = [sys.executable, "-m", "real.campaign", str(file), "--probe", str(probe), "--resume"]
    return subprocess.run(line, capture_output=True, text=True, timeout=120, check=False)


def test_only_what_is_left_is_run(tmp_path):
    """Of two cells one is done, and the probe is there; then there is nothing left, and nothing is launched."""
    done, left, probe, file = (tmp_path / name for name in ("a.parquet", "b.parquet", "probe.json", "cells.json"))
    cell = parse([*JOB, str(done)])
    Trace.of(scenario(cell).header("mpi"), []).write(done)
    probe.write_text("{}")
    file.write_text(json.dumps([[*JOB, str(done)], [*JOB, str(left)]]))
    first = resumed(file, probe)
    assert first.returncode == 0, first.stderr
    assert "cells left to run: 1" in first.stderr
    assert "cell 1 of 1" in first.stderr
    assert len(read(done).rows) == 0
    assert len(read(left).rows) > 0
    assert probe.read_text() == "{}"
    second = resumed(file, probe)
    assert (second.returncode, "cell 1" in second.stderr) == (0, False)
