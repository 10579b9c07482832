"""The texts of the language over MPI: they end with the weights that they have in simulated time, and what is wrong ends in a line."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from processes import ROOT

from real.launching import mpirun
from sim.texts import TEXTS

# What trains depends on when; of ps-layers, which weights still come.
BY_THE_CLOCK = {"amb", "amb-dg", "kbatch-async", "ps-async", "ps-backup", "ps-layers", "ps-ssp", "ps-sync"}
SAID = re.compile(r"^weights\s+within (\S+) of those in simulated time; ([\d,]+) samples, simulated ([\d,]+)$", re.M)


def _python(*words: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=300, check=False, cwd=ROOT)


def _ran(names: list[str], *words: str) -> list[tuple[str, str, str]]:
    small = ["--width", "8", "--batch", "16", "--steps", "4", "--runs", "1"]
    done = _python("-m", "real.language.compare", *names, *small, *words)
    assert done.returncode == 0, done.stderr
    assert ("ran out of data" in done.stderr) <= (not {"amb", "amb-dg"}.isdisjoint(names))
    found = SAID.findall(done.stdout)
    assert len(found) == len(names), done.stdout
    return found


def test_all_texts_train_over_mpi_what_they_train_in_simulated_time():
    names = sorted(set(TEXTS) - BY_THE_CLOCK - {"hierarchical"})
    found = [*_ran(names), *_ran(["hierarchical"], "--set", "group=2")]
    for name, (apart, samples, simulated) in zip([*names, "hierarchical"], found, strict=True):
        assert float(apart) < 1e-12, name
        assert samples == simulated, name


def test_texts_that_ask_the_clock_train_over_mpi():
    for apart, samples, _ in _ran(sorted(BY_THE_CLOCK)):
        assert float(apart) < 10
        assert int(samples.replace(",", "")) > 0


def _under_mpirun(name: str) -> tuple[int, str]:
    line = mpirun.command(2, "x", [])
    line = [*line[: line.index("-m")], "-m", "mpi4py", "tests/mpi/language_for_real.py", name]
    done = subprocess.run(line, capture_output=True, text=True, timeout=120, check=False, cwd=ROOT)
    return done.returncode, done.stdout + done.stderr


def test_deadlines_stop_and_wait_with_a_count():
    code, said = _under_mpirun("in-time")
    assert code == 0, said
    assert "[" in said


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("other-size", "other-size, rank 1, language_for_real.py:27: 32 items taken from rank 0 into 64 of weights"),
        ("dies", "rank 1: dies, rank 1, language_for_real.py:65: ZeroDivisionError: division by zero"),
    ],
)
def test_what_is_wrong_ends_all_ranks_in_a_line(name, line):
    code, said = _under_mpirun(name)
    assert code
    assert line in said


def test_a_wrong_setting_is_refused_before_ranks_start():
    for words, said in (
        (["hierarchical", "--set", "group=3"], "group: given 3"),
        (["ddq"], "ddp"),
        (["ddp", "--set", "bucket_mb=x"], "bucket_mb"),
        (["ddp", "fsdp", "--set", "ahead=2"], "several texts"),
        (["ddp", "--ranks", "0"], "ranks: given 0"),
    ):
        done = _python("-m", "real.language.compare", *words)
        assert done.returncode == 2, done
        assert said in done.stderr
        assert "Traceback" not in done.stderr
