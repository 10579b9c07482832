"""A process that dies, is stopped or is interrupted, of every kind of run and at every moment.

The law: the run ends within seconds; the dead one is named where one died; no process stays; the trace
so far can be read; nobody sees a traceback. A stopped process is waited for, as a slow one is: the run goes on when it does,
and ends when it is killed. TRAINSIM_FAULTS=1 tries all of the matrix.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import product
from pathlib import Path

import psutil
import pytest
from processes import ROOT, Mark, until

from sim.recording import traces
from sim.recording.traces import HEADER_FILE, Activity

pytestmark = pytest.mark.tensorflow
ENDS_S = 600  # after the signal, of a run that it ends; a guard, far above the seconds that it takes
GOES_ON_S = 1200  # of a run that goes on to its end
GONE_S = 600  # of its processes after the run; a guard likewise
STOPPED_S = 1.0
ROWS = 100  # of a run that is amid
MANY, FEW = 1_000_000, 80  # steps of a run that a signal ends, and of one that may end before it
SLEEPS = "[[components]]\nmean_s = 0.02\nstd_s = 0.002\nweight = 1\n"  # or a short run would be over too soon
JOB = ["--batch", "16", "--warmup", "2"]
NUMPY = ["--engine", "numpy"]  # where any engine will do; it starts at once
RUNS = {
    "fmb": ["--workers", "1", "--protocol", "fmb", *NUMPY],
    "amb": ["--workers", "1", "--protocol", "amb", "--set", "time_limit_s=0.03", "--set", "partitions=2", *NUMPY],
    "ps-async over MPI": ["--workers", "1", "--protocol", "ps-async", "--runtime", "mpi", *NUMPY],
    "allreduce": ["--workers", "2", "--protocol", "allreduce", *NUMPY],
    "horovod over MPI": ["--workers", "2", "--protocol", "horovod", "--runtime", "mpi", *NUMPY],
    "ddp in the language": ["--workers", "2", "--protocol", "sim.texts.ddp:Ddp", *NUMPY],
    "ps-layers": ["--workers", "1", "--protocol", "ps-layers", *NUMPY],
    "hybrid": ["--workers", "1", "--protocol", "hybrid"],
    "ps-async": ["--workers", "2", "--protocol", "ps-async"],
    "ps-sync": ["--workers", "2", "--protocol", "ps-sync"],
    "collectives": ["--workers", "2", "--protocol", "allreduce", "--runtime", "tensorflow"],
    "horovod": ["--workers", "2", "--protocol", "allreduce", "--runtime", "horovod"],
}
FATES = {
    "killed": [signal.SIGKILL],
    "terminated": [signal.SIGTERM],
    "interrupted": [signal.SIGINT],
    "stopped, then killed": [signal.SIGSTOP, signal.SIGKILL],
    "stopped, then continued": [signal.SIGSTOP, signal.SIGCONT],
}
VICTIMS = ("worker", "first", "mpirun", "parent")  # first: rank 0
MOMENTS = ("at the start", "amid", "near the end")


@dataclass(frozen=True)
class Case:
    """What happens to whom, and when."""

    run: str
    victim: str
    fate: str
    moment: str

    def __str__(self) -> str:
        return f"{self.run}: {self.victim} {self.fate} {self.moment}"

    @property
    def name(self) -> str:
        """Of the victim, as the run should name it when it dies; a pattern."""
        return "rank 0 " if self.victim == "first" else "rank 1 "


ALL = [Case(*one) for one in product(RUNS, VICTIMS, FATES, MOMENTS)]
SOME = [
    Case("fmb", "first", "killed", "amid"),
    Case("fmb", "mpirun", "terminated", "at the start"),
    Case("amb", "worker", "killed", "near the end"),
    Case("amb", "parent", "terminated", "amid"),
    Case("ps-async over MPI", "worker", "stopped, then continued", "amid"),
    Case("allreduce", "worker", "interrupted", "amid"),
    Case("ddp in the language", "worker", "killed", "amid"),
    Case("ps-layers", "first", "stopped, then killed", "amid"),
    Case("ps-async", "worker", "killed", "amid"),
    Case("ps-async", "first", "killed", "amid"),
    Case("ps-sync", "parent", "interrupted", "amid"),
    Case("collectives", "worker", "killed", "amid"),
    Case("horovod", "worker", "killed", "amid"),
]
CASES = ALL if os.environ.get("TRAINSIM_FAULTS") == "1" else SOME


def _skipped(case: Case):
    """Where what it needs is not there."""
    marks = [pytest.mark.skip("Horovod is not installed: `make horovod`")] * (
        case.run == "horovod" and not find_spec("horovod")
    )
    return pytest.param(case, marks=marks)


class Started:
    """A run under way, and its victim."""

    def __init__(self, case: Case, folder: Path):
        self.case, self.trace, self.mark = case, folder / "t.parquet", Mark()
        steps = FEW if 0 in _codes(case) else MANY
        (folder / "sleeps.toml").write_text(SLEEPS)
        files = ["--stragglers", str(folder / "sleeps.toml"), "--trace", str(self.trace)]
        model = "bigram" if case.run == "hybrid" else "mlp"
        words = [*JOB, *RUNS[case.run], "--workload", model, "--steps", str(steps), *files]
        line = [sys.executable, "-m", "real.run", *words]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(line, **pipes, cwd=ROOT, env=self.mark.environment)

    def victim(self) -> psutil.Process | None:
        """The victim's process; None before it is there."""
        if self.case.victim == "parent":
            mine = psutil.Process(self.process.pid)
            return mine if mine.children() else None
        return next((process for process in self.mark.processes() if self._is_victim(process)), None)

    def _is_victim(self, process: psutil.Process) -> bool:
        try:
            words, rank = process.cmdline(), process.environ().get("OMPI_COMM_WORLD_RANK")
        except psutil.Error:
            return False
        if self.case.victim == "mpirun":
            return bool(words) and Path(words[0]).name in ("mpirun", "prterun") and process.pid != self.process.pid
        return rank == ("0" if self.case.victim == "first" else "1")

    def has_come(self) -> bool:
        """To the moment of the case; or it has ended."""
        if self.process.poll() is not None or self.case.moment == "at the start":
            return True
        lines = [line for file in self.parts.glob("rank-*.jsonl") for line in file.read_text().splitlines()[:-1]]
        if self.case.moment == "amid":
            return len(lines) > ROWS
        return any(Activity(*json.loads(line)).step > FEW - 20 for line in lines)

    @property
    def parts(self) -> Path:
        """Where its trace grows."""
        return Path(f"{self.trace}.parts")

    def signalled(self, number: signal.Signals, victim: psutil.Process) -> None:
        """Send it; the victim may have ended with the run."""
        with suppress(psutil.NoSuchProcess):
            victim.send_signal(number)

    def end(self) -> tuple[int, str]:
        """The code with which it ends, and what it said to its user."""
        _, words = self.process.communicate(timeout=GOES_ON_S if 0 in _codes(self.case) else ENDS_S)
        return self.process.returncode, words


@pytest.fixture
def started(request, tmp_path):
    run = Started(request.param, tmp_path)
    yield run
    for left in run.mark.processes():
        left.kill()
    run.process.wait()
    run.process.stdout.close()
    run.process.stderr.close()


@pytest.mark.parametrize("started", [_skipped(case) for case in CASES], indirect=True, ids=str)
def test_a_fault_ends_the_run_in_a_line(started):
    case = started.case
    victim = until(started.victim)
    until(started.has_come)
    if case.moment == "amid":
        assert len(traces.read(started.parts).rows) > ROWS  # as it grows
    for number in FATES[case.fate]:
        started.signalled(number, victim)
        if number == signal.SIGSTOP:
            time.sleep(STOPPED_S)
            assert started.process.poll() in (None, 0), "a stopped process is waited for"
    code, words = started.end()
    until(lambda: not started.mark.processes(), GONE_S)
    assert code in _codes(case), words
    _check_trace(started, code)
    if case.fate == "interrupted" and case.moment == "at the start" and case.victim != "parent":
        return  # before our first line it is Python itself that complains
    assert "Traceback" not in words
    if code == 1 and case.victim in ("worker", "first"):
        assert re.search(f"real.run: .*{case.name}", words), words


def _codes(case: Case) -> set[int]:
    """With which a run may end: 0 where it has done with the victim."""
    dies = case.fate != "stopped, then continued"
    if not dies:
        return {0}
    of_parent = {signal.SIGKILL: -signal.SIGKILL}.get(FATES[case.fate][-1], 130)
    ends = of_parent if case.victim == "parent" else 1
    return {ends, 0} if case.moment == "near the end" else {ends}


def _check_trace(started: Started, code: int) -> None:
    """It is there, whole or so far, but for a run that had nothing to write; only who is killed outright leaves parts."""
    case = started.case
    if started.trace.exists():
        trace = traces.read(started.trace)
        assert trace.header.complete == (code == 0)
        assert len(trace.rows) >= (0 if case.moment == "at the start" else ROWS)
    else:
        assert code
        assert case.moment == "at the start" or code == -signal.SIGKILL
    if (started.parts / HEADER_FILE).exists():
        assert code == -signal.SIGKILL
        assert len(traces.read(started.parts).rows) >= (ROWS if case.moment == "amid" else 0)
