"""Ctrl-C while a program begins: a line and exit code 130, wherever the signal arrives."""

import os
import subprocess
import sys

import pytest
from documents import ROOT

from sim.base import interrupts

INTERRUPTING = "import os, signal\ntry:\n    os.kill(os.getpid(), signal.SIGINT)\n    sum(range(10**5))\nexcept BaseException:\n    pass\n"
COMMANDS = {"python -m sim.run": ["-m", "sim.run"], "python -m trainsim": ["-m", "trainsim", "run"]}


def ended(words: list[str], folder, **further) -> subprocess.CompletedProcess:
    """Run Python with these words and the modules of a folder, which come before all others."""
    paths = os.pathsep.join([str(folder), str(ROOT)])
    environment = os.environ | {"PYTHONPATH": paths}
    return subprocess.run(
        [sys.executable, *words], env=environment, capture_output=True, text=True, timeout=300, check=False, **further
    )


@pytest.mark.processes
@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize("module", ["argparse", "numpy"], ids=["before the command", "in the command"])
def test_an_interrupt_that_an_import_swallows_ends_the_program(words, module, tmp_path):
    (tmp_path / f"{module}.py").write_text(INTERRUPTING)
    done = ended([*words, "--protocol", "amb", "--steps", "3"], tmp_path)
    assert (done.returncode, done.stdout) == (interrupts.EXIT_CODE, "")
    assert done.stderr in ("sim.run: interrupted\n", "trainsim: interrupted\n")


@pytest.mark.processes
def test_a_program_that_ignores_interrupts_goes_on(tmp_path):
    (tmp_path / "argparse.py").write_text(f"{INTERRUPTING}raise SystemExit('went on')\n")
    shell = f"trap '' INT; exec {sys.executable} -m sim.run"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    done = subprocess.run(
        ["sh", "-c", shell], env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.stderr.strip() == "went on"


@pytest.mark.processes
def test_a_program_of_a_user_keeps_its_own_way(tmp_path):
    text = "import signal, sim, trainsim.main\nassert signal.getsignal(signal.SIGINT) is signal.default_int_handler\n"
    (tmp_path / "theirs.py").write_text(text)
    for words in (["-m", "theirs"], [str(tmp_path / "theirs.py"), "-m", "sim.run"], ["-c", text]):
        done = ended(words, tmp_path)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("-m sim.run --workers 2", "sim.run"),
        ("-X importtime -W error -I -m calibration.fit", "calibration.fit"),
        ("/usr/bin/trainsim run", "trainsim"),
        ("-m mpi4py -m real.run", None),
        ("-m simulator", None),
        ("-c pass -m sim.run", None),
        ("sim/run.py", None),
        ("-m", None),
        ("", None),
    ],
)
def test_a_program_of_ours_is_known_by_its_command_line(line, found):
    assert interrupts.program(line.split()) == found
