"""A rank that dies, and Ctrl-C: the run ends within seconds, with a name, no process left, and the trace so far."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from sim import traces

pytestmark = pytest.mark.tensorflow
ROOT = Path(__file__).parents[2]
JOB = ["--workload", "mlp", "--workers", "2", "--batch", "32", "--steps", "100000"]
LONGEST_S = 10  # of a run whose rank has died; the requirement, far above the second it takes


@pytest.fixture
def long_run(tmp_path, request):
    """A run in full swing, of fmb or of the protocol asked for; its processes, and its trace file."""
    trace = tmp_path / "t.parquet"
    protocol = ["--protocol", *getattr(request, "param", "fmb").split()]
    line = [sys.executable, "-m", "real.run", *JOB, *protocol, "--trace", str(trace)]
    started = subprocess.Popen(line, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    process = psutil.Process(started.pid)
    _until(lambda: _rows(Path(f"{trace}.parts")) > 500)
    yield started, process.children(recursive=True), trace
    for left in [*process.children(recursive=True), process] if process.is_running() else []:
        left.kill()
    started.wait()
    started.stdout.close()
    started.stderr.close()


def _rows(parts: Path) -> int:
    return sum(part.read_text().count("\n") for part in parts.glob("rank-*.jsonl"))


def _until(happens, longest_s: float = 60) -> None:
    give_up_s = time.monotonic() + longest_s
    while not happens():
        assert time.monotonic() < give_up_s
        time.sleep(0.05)


def ranks(processes) -> list[psutil.Process]:
    """Rank processes in order of rank."""
    found = {p.environ()["OMPI_COMM_WORLD_RANK"]: p for p in processes if "OMPI_COMM_WORLD_RANK" in p.environ()}
    return [found[rank] for rank in sorted(found)]


def _end(started, processes) -> str:
    _, words = started.communicate(timeout=LONGEST_S)
    _gone, left = psutil.wait_procs(processes, timeout=2)
    assert not left
    return words


@pytest.mark.parametrize(
    ("long_run", "rank"),
    [("fmb", 0), ("fmb", 2), ("allreduce", 1), ("hybrid --workload bigram", 0)],
    indirect=["long_run"],
)
def test_a_killed_rank_ends_the_run_with_its_name(long_run, rank):
    started, processes, trace = long_run
    ranks(processes)[rank].send_signal(signal.SIGKILL)
    words = _end(started, processes)
    assert started.returncode == 1
    assert f"rank {rank} died" in words
    assert "Traceback" not in words
    assert not traces.read(trace).header.complete
    assert len(traces.read(trace).rows) > 500
    assert os.listdir(trace.parent) == [trace.name]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_ends_and_keeps_its_trace(long_run, number):
    started, processes, trace = long_run
    started.send_signal(number)
    words = _end(started, processes)
    assert started.returncode == 130
    assert words.splitlines()[-1] == "real.run: interrupted"
    assert "Traceback" not in words
    assert len(traces.read(trace).rows) > 500


def test_a_trace_can_be_read_while_it_grows(long_run):
    *_, trace = long_run
    rows = traces.read(f"{trace}.parts").rows
    assert len(rows) > 500
    assert (rows["end_s"] >= rows["start_s"]).all()
