"""What tests that start processes share: to wait for something, and to find what a test has left."""

import os
import subprocess
import sys
import time
import uuid
from contextlib import suppress
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[1]
AT_WORK_S = 300  # for something to happen that takes seconds on a quiet machine


def until(happens, longest_s: float = AT_WORK_S):
    """What `happens()` gives, once it is true."""
    give_up_s = time.monotonic() + longest_s
    while not (happened := happens()):
        assert time.monotonic() < give_up_s, f"waited {longest_s:g} s"
        time.sleep(0.05)
    return happened


def under_mpirun(ranks: int, program: str, longest_s: float = 1200) -> None:
    """Run a program of the tests, whose ranks must all end well.

    Args:
        ranks: 1 or more.
        program: from the root of the project.
        longest_s: until ranks that wait for each other are ended, in seconds.
    """
    from real.launching import mpirun

    root = ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"]
    environment = {**os.environ, **dict.fromkeys(root, "1"), "PYTHONPATH": "."}
    line = [mpirun.mpirun(), "-n", str(ranks), "--oversubscribe", "--bind-to", "none", sys.executable, "-m", "mpi4py"]
    done = subprocess.run(
        [*line, program], capture_output=True, text=True, cwd=ROOT, env=environment, timeout=longest_s, check=False
    )
    assert done.returncode == 0, done.stderr


class Mark:
    """An entry in the environment by which all processes of a test are known, whoever has become their parent."""

    def __init__(self):
        self.name, self.value = "TRAINSIM_TEST", str(uuid.uuid4())

    @property
    def environment(self) -> dict[str, str]:
        """For what is started."""
        return {**os.environ, self.name: self.value}

    def processes(self) -> list[psutil.Process]:
        """Those that live."""
        found = []
        for process in psutil.process_iter():
            with suppress(OSError, psutil.Error):
                environment = Path(f"/proc/{process.pid}/environ").read_bytes()
                if f"{self.name}={self.value}".encode() in environment.split(b"\0"):
                    found.append(process)
        return found
