"""PyTorch's own DistributedDataParallel over gloo on this machine, recorded by trainsim.Recorder, beside predictions.

The profile is fitted on two processes and two minibatches, one of them also in one bucket, whose sum waits for no core. Another
minibatch, accumulated gradients and four processes, which share the cores, are predicted in both sizes of buckets. All runs
are repeated in turn: whatever else the machine does falls on all alike. No run that is predicted was fitted. Needs `make torch`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from calibration import fit
from experiments.kit import report
from experiments.kit.comparison import Comparison
from real.cells import Cell
from sim import options, simulated_options
from sim import run as command
from sim.answers.outcome import of_trace
from sim.base.errors import RunFailed
from sim.base.home import need
from sim.base.progress import each
from sim.recording.traces import read
from sim.simulation import simulate

ROOT = Path(__file__).parents[1]
SMALL, LARGE = 1, 25  # MB of a bucket
REPEATS, EPOCHS = 3, 3
LINK = "100 Gbit/s, 20 us"  # between hosts, of which there is one
FITTED_ON = "2 processes, two minibatches, of one of them also in one bucket"


class Job(NamedTuple):
    """A job of PyTorch's: processes, samples of each in a minibatch, MB of a bucket, and minibatches of a step."""

    ranks: int
    batch: int
    bucket_mb: int = SMALL
    accumulate: int = 1

    @property
    def cell(self) -> Cell:
        """The job as it is simulated."""
        settings = (f"bucket_mb={self.bucket_mb}", f"accumulate={self.accumulate}")
        called = f"{self.bucket_mb} MB" + f", {self.accumulate} accumulated" * (self.accumulate > 1)
        return Cell(
            "ddp", self.ranks, self.batch * self.accumulate, workload="Digits", settings=settings, called=called
        )


FITTED = (Job(2, 64), Job(2, 128), Job(2, 128, LARGE))
PREDICTED = (
    Job(2, 96),
    Job(2, 96, LARGE),
    Job(2, 64, SMALL, 2),
    Job(2, 64, LARGE, 2),
    Job(4, 64),
    Job(4, 64, LARGE),
)


def run(out: Path, seed: int = 0) -> None:
    """Train, fit, and print each job beside its prediction.

    Raises:
        WrongSetting: PyTorch is not installed.
        RunFailed: a run fails.
    """
    need("torch")
    order = [(job, number) for number in range(REPEATS) for job in (*FITTED, *PREDICTED)]
    folders = {one: trained(out, *one) for one in each(order, "training")}
    profile = str(out / "profile.toml")
    fit.main([*(str(folders[one]) for one in order if one[0] in FITTED), "--link", LINK, "-o", profile])
    rows = [predicted(profile, job, [folders[job, number] for number in range(REPEATS)]) for job in PREDICTED]
    report.show(rows, out, FITTED_ON)


def trained(out: Path, job: Job, number: int) -> Path:
    """The folder of a run, which trains.

    Raises:
        RunFailed: it fails.
    """
    folder = out / f"{'-'.join(map(str, job))}-{number}"
    shutil.rmtree(folder, ignore_errors=True)  # of an earlier run: a recorder wants a new one
    line = [sys.executable, "-m", "torch.distributed.run", "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0"]
    line += ["--nproc-per-node", str(job.ranks), str(ROOT / "examples" / "pytorch" / "train.py"), str(folder)]
    line += map(str, (job.batch, EPOCHS, job.bucket_mb, job.accumulate))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(line, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise RunFailed(f"{folder.name}: {done.stderr.strip().splitlines()[-1]}")
    return folder


def predicted(profile: str, job: Job, folders: list[Path]) -> Comparison:
    """A job beside its repeats.

    Raises:
        RunFailed: there is no answer.
    """
    cell = job.cell
    words = ["--cluster", profile, "--protocol", "ddp", "--workers", str(cell.workers), "--batch", str(cell.batch)]
    words += [word for one in cell.settings for word in ("--set", one)]
    found = simulate(simulated_options.scenario(command.parser().parse_args(words), options.Readers()))
    return Comparison(cell, found.outcome, [of_trace(read(folder)) for folder in folders], scenario=found.scenario)
