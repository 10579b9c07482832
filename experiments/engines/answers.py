"""What users wait for: answers of the engine in seconds of a core, those of a command and of a new installation in seconds of a clock."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from sim import protocols
from sim.base.errors import RunFailed
from sim.base.home import installed
from sim.job.scenario import Scenario
from sim.language.engine import job as engine
from sim.language.job import Job, Laws, Layer
from sim.laws import Exponential
from sim.model import workload
from sim.platform import cluster
from sim.simulation import simulate
from sim.texts import TEXTS

ROOT = Path(__file__).parents[2]
WORKERS, STEPS = 1_000, 500  # of ps-async


class Answer(NamedTuple):
    """A number, and what it should be at most; at least, if `least`."""

    said: str
    found: float
    asked: float
    unit: str
    least: bool = False

    @property
    def is_met(self) -> bool:
        """Whether it is."""
        return self.found >= self.asked if self.least else self.found <= self.asked


def table() -> Iterator[Answer]:
    """All of them.

    Raises:
        RunFailed: a command fails.
    """
    yield Answer(f"pushes to a server of {WORKERS:,} workers (ps-async)", pushes_per_s() / 1e6, 0.4, "M/s", True)
    yield Answer("ddp, ResNet-50 on 64 V100, 100 steps", simulated_s("ddp", 100, 1), 1.0, "s of a core")
    yield Answer(
        "horovod, ResNet-50 on 64 V100, 100 steps, 20 runs", simulated_s("horovod", 100, 20), 8.0, "s of a core"
    )
    amb = [sys.executable, "-m", installed("sim.run"), "--protocol", "amb"]
    yield Answer("sim.run --protocol amb", min(_clock_s(amb) for _ in range(3)), 1.0, "s")
    with tempfile.TemporaryDirectory() as folder:
        yield from of_installation(Path(folder))


def pushes_per_s() -> float:
    """Updates of an asynchronous server, in a second of a core."""
    layers = tuple(Layer(6_553_600, 0.1 / 24, 0.1 / 12) for _ in range(8))
    job = Job(WORKERS + 1, layers, STEPS, batch=16, laws=Laws(sleep=Exponential(mean=0.02)))
    return WORKERS * STEPS / _core_s(partial(engine.run, job, TEXTS["ps-async"]()))


def simulated_s(name: str, steps: int, replications: int) -> float:
    """Seconds of a core for so many runs of 64 GPUs, eight a host."""
    job = Scenario(
        protocols.make(name), workload.read("resnet50"), cluster=cluster.read("p3.16xlarge*8"), workers=64, steps=steps
    )
    return _core_s(partial(simulate, job, replications=replications))


def of_installation(folder: Path) -> Iterator[Answer]:
    """What the core takes, and its first prediction, in an environment of its own."""
    python = str(folder / "bin" / "python")
    _clock_s([sys.executable, "-m", "venv", str(folder)])
    _clock_s([python, "-m", "pip", "install", "--quiet", str(ROOT)])
    first = [str(folder / "bin" / "trainsim"), "run", "--protocol", "fmb", "--workers", "64"]
    yield Answer("the first prediction of 64 workers after pip install", _clock_s(first), 5.0, "s")
    taken = [path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    yield Answer("installing the core, pip included", sum(taken) / 1e6, 270.0, "MB")


def _core_s(call: Callable[[], object]) -> float:
    start_s = time.process_time()
    call()
    return time.process_time() - start_s


def _clock_s(line: list[str]) -> float:
    start_s = time.monotonic()
    done = subprocess.run(line, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise RunFailed(f"{' '.join(line)}: {done.stderr.strip()}")
    return time.monotonic() - start_s
