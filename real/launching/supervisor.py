"""A supervisor: it starts the ranks again from the last checkpoint when one dies, and kills ranks at random if it is asked to."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from real.launching import mpirun as launch
from real.recording import growing_trace as parts
from real.recording.attempts import FOLDER, Attempts
from sim.base.errors import RunFailed, WrongSetting
from sim.base.ranges import MOST, check_integer
from sim.job.scenario import Scenario
from sim.studies import failures

EVERY = 50  # steps between checkpoints
PROTOCOLS = ("fmb", "amb", "allreduce")  # protocols whose rank 0 has all that is needed to go on
RANK = "OMPI_COMM_WORLD_RANK"


def check(given: Namespace, scenario: Scenario, world: str) -> None:
    """Refuse what a supervisor cannot do.

    Raises:
        WrongSetting: naming the option.
    """
    if given.restarts is None:
        for name in ("failures", "checkpoint_every"):
            if getattr(given, name) is not None:
                raise WrongSetting(f"--{name.replace('_', '-')}", getattr(given, name), "nothing without --restarts")
        return
    check_integer("--restarts", given.restarts, 0, MOST)
    if given.checkpoint_every is not None:
        check_integer("--checkpoint-every", given.checkpoint_every, 1, MOST)
    if given.failures:
        mtbf_s(given.failures)
    _check_job(given, scenario, world)


def _check_job(given: Namespace, scenario: Scenario, world: str) -> None:
    allowed = ""
    if scenario.protocol.name not in PROTOCOLS or world != "mpi":
        allowed = f"one of {', '.join(PROTOCOLS)} over MPI with it: rank 0 has the whole state of these"
    elif scenario.ranks == 1 or scenario.traffic.sends_rows or scenario.gathered_variables:
        allowed = "with it, at least one worker, and no rows of sparse variables"
    elif given.replications not in (None, 1) or given.testbed or given.cluster:
        allowed = "one run on this machine with it"
    elif not given.trace:
        allowed = "with it --trace FILE, which has the whole run"
    elif launch.joined() and FOLDER not in os.environ:
        allowed = "nothing under mpirun or srun: the command that launches the ranks by itself supervises them"
    if allowed:
        raise WrongSetting("--restarts", given.restarts, allowed)


def mtbf_s(text: str) -> float:
    """Mean time between the failures of a rank, of a text as sim.run's --failures has it.

    Raises:
        WrongSetting: it is none, or says more.
    """
    found = failures.read(text)
    if found != failures.Failures(found.mtbf_s):
        raise WrongSetting("--failures", text, "mtbf=TIME alone: restarts and checkpoints take their real time")
    return found.mtbf_s


@contextmanager
def supervised(given: Namespace) -> Iterator[Attempts]:
    """The folder of the attempts of a run, gone afterwards; the ranks find it in their environment."""
    with tempfile.TemporaryDirectory(prefix="trainsim-attempts-") as folder:
        attempts = Attempts(Path(folder))
        attempts.begin(given.checkpoint_every or EVERY)
        os.environ[FOLDER] = folder
        try:
            yield attempts
        finally:
            del os.environ[FOLDER]


def run(given: Namespace, line: list[str], ranks: int, attempts: Attempts) -> None:
    """Run the ranks to their end, again and again if need be.

    Raises:
        RunFailed: they died more often than `--restarts` allows.
    """
    killer = Killer(Failing(given.seed or 0, mtbf_s(given.failures), ranks)) if given.failures else None
    for attempt in range(given.restarts + 1):
        try:
            launch.launch(line, killer.watch if killer else lambda process: None)
            return
        except RunFailed as error:
            died_s = time.perf_counter()
            if attempts.ended:
                return
            if attempt == given.restarts:
                raise RunFailed(f"{error}; it was started {attempt + 1} times") from error
            attempts.died(died_s, parts.folder(given.trace))
            found = attempts.checkpoint()
            where = f"step {found.step}" if found else "the beginning"
            print(f"real.run: {error}; restart {attempt + 1} of {given.restarts}, from {where}", file=sys.stderr)
        finally:
            if killer:
                killer.rest()


class Failing:
    """When ranks fail, by a clock that begins at 0: each at random, with exponential times between its failures.

    Args:
        seed: of the times.
        mtbf_s: mean time between the failures of one rank.
        ranks: how many there are.
    """

    def __init__(self, seed: int, mtbf_s: float, ranks: int):
        sequence = np.random.SeedSequence(seed, spawn_key=(len("failures"),))
        self._rng, self._mean_s, self._ranks = np.random.default_rng(sequence), mtbf_s / ranks, ranks
        self.next_s = self._rng.exponential(self._mean_s)

    def rank(self) -> int:
        """Which rank fails next: asked once an attempt."""
        return int(self._rng.integers(self._ranks))

    def past(self, now_s: float) -> None:
        """Failures before now have been, or nobody was there to fail."""
        while self.next_s <= now_s:
            self.next_s += self._rng.exponential(self._mean_s)


class Killer:
    """It kills ranks as they fail (SIGKILL). Its clock begins when it is made.

    Args:
        failing: when they fail.
    """

    def __init__(self, failing: Failing):
        self._failing, self._began_s = failing, time.perf_counter()
        self._timer: threading.Timer | None = None

    def watch(self, process: subprocess.Popen) -> None:
        """Kill one of the ranks of this mpirun when it is time, which may have come already."""
        left_s = self._began_s + self._failing.next_s - time.perf_counter()
        self._timer = threading.Timer(max(0.0, left_s), self._kill, [process, self._failing.rank()])
        self._timer.daemon = True
        self._timer.start()

    def rest(self) -> None:
        """The attempt is over; its failure, if it had one, has been."""
        if self._timer:
            self._timer.cancel()
            self._timer.join()
        self._failing.past(time.perf_counter() - self._began_s)

    @staticmethod
    def _kill(process: subprocess.Popen, rank: int) -> None:
        import psutil

        with suppress(psutil.Error, OSError):
            for child in psutil.Process(process.pid).children(recursive=True):
                if child.environ().get(RANK) == str(rank):
                    child.send_signal(signal.SIGKILL)
                    return
            process.terminate()  # it has not started its ranks yet


def told(found: dict[str, float], restarts: int) -> str:
    """The losses of a run, in a line."""
    names: dict[str, str] = {"checkpoint": "checkpoints", "lost": "work done again", "restart": "restarts"}
    said = ", ".join(f"{names[name]} {share:.1%}" for name, share in found.items())
    return f"restarts: {restarts}; of the run's time: {said}"
