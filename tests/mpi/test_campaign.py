"""A campaign that was cut off goes on, for real."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys

import pytest

from real.campaign import header_of
from real.run import parse
from sim.recording.traces import Trace, read

pytestmark = pytest.mark.tensorflow
JOB = shlex.split(
    "--engine numpy --protocol fmb --workload mlp --workers 1 --batch 8 --steps 3 --warmup 1 --stragglers none --trace"
)


def resumed(file, probe) -> subprocess.CompletedProcess:
    line = [sys.executable, "-m", "real.campaign", str(file), "--probe", str(probe), "--resume"]
    return subprocess.run(line, capture_output=True, text=True, timeout=1200, check=False)


def test_only_what_is_left_is_run(tmp_path):
    """Of three cells one is done, and the probe is there; then there is nothing left, and nothing is launched."""
    done, left, last, probe, file = (
        tmp_path / name for name in ("a.parquet", "b.parquet", "c.parquet", "probe.json", "cells.json")
    )
    Trace.of(header_of(parse([*JOB, str(done)])), []).write(done)
    probe.write_text("{}")
    file.write_text(json.dumps([[*JOB, str(trace)] for trace in (done, left, last)]))
    first = resumed(file, probe)
    assert first.returncode == 0, first.stderr
    assert "cells left to run: 2" in first.stderr
    assert "cell 1 of 2: fmb" in first.stderr
    assert "cell 2 of 2: fmb" in first.stderr  # one cell says nothing of the time that another takes
    assert len(read(done).rows) == 0
    assert len(read(left).rows) > 0
    assert probe.read_text() == "{}"
    second = resumed(file, probe)
    assert (second.returncode, "cell 1" in second.stderr) == (0, False)
