"""PyTorch's own DistributedDataParallel over gloo on this machine, recorded by trainsim.Recorder, beside predictions.

The profile is fitted on two processes with small buckets. Larger buckets, accumulated gradients and four processes are predicted. All runs
are repeated in turn, so that whatever else the machine does falls on all alike. Needs `make torch`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from calibration import fit
from experiments.kit import pages
from sim.answers.outcome import of_trace
from sim.base.errors import RunFailed
from sim.base.home import installed, need
from sim.base.progress import each
from sim.recording.traces import read

ROOT = Path(__file__).parents[1]
SMALL, LARGE = 1, 25  # MB of a bucket
REPEATS, EPOCHS = 3, 4
LINK = "100 Gbit/s, 20 us"  # between hosts, of which there is one


class Cell(NamedTuple):
    """A job of PyTorch's: processes, samples of each in a minibatch, MB of a bucket, and minibatches of a step."""

    ranks: int
    batch: int
    bucket_mb: int = SMALL
    accumulate: int = 1


FITTED = (Cell(2, 64), Cell(2, 128))
PREDICTED = (
    Cell(2, 96),
    Cell(2, 96, LARGE),
    Cell(2, 64, SMALL, 2),
    Cell(2, 64, LARGE, 2),
    Cell(4, 64),
    Cell(4, 64, LARGE),
)


def run(out: Path, seed: int = 0) -> None:
    """Train, fit, and print each job beside its prediction.

    Raises:
        WrongSetting: PyTorch is not installed.
        RunFailed: a run fails.
    """
    need("torch")
    order = [(cell, number) for number in range(REPEATS) for cell in (*FITTED, *PREDICTED)]
    folders = {one: trained(out, *one) for one in each(order, "training")}
    profile = out / "profile.toml"
    fit.main([*(str(folders[one]) for one in order if one[0] in FITTED), "--link", LINK, "-o", str(profile)])
    columns = ("processes", "batch", "bucket, MB", "accumulated", "measured, ms", "floor", "predicted, ms", "error")
    table = pages.table("A step of DistributedDataParallel", *columns)
    for cell in PREDICTED:
        table.add_row(*row(profile, cell, [folders[cell, number] for number in range(REPEATS)]))
    pages.show(table)


def trained(out: Path, cell: Cell, number: int) -> Path:
    """The folder of a run, which trains.

    Raises:
        RunFailed: it fails.
    """
    folder = out / f"{'-'.join(map(str, cell))}-{number}"
    line = [sys.executable, "-m", "torch.distributed.run", "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0"]
    line += ["--nproc-per-node", str(cell.ranks), str(ROOT / "examples" / "pytorch" / "train.py"), str(folder)]
    line += map(str, (cell.batch, EPOCHS, cell.bucket_mb, cell.accumulate))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(line, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise RunFailed(f"{folder.name}: {done.stderr.strip().splitlines()[-1]}")
    return folder


def row(profile: Path, cell: Cell, folders: list[Path]) -> Iterator[str]:
    """A job's mean step over its repeats, how far these are apart, and its prediction."""
    measured_s = np.array([of_trace(read(folder)).step_s.mean() for folder in folders])
    predicted_s = predicted(profile, cell)
    yield from map(str, cell)
    yield f"{measured_s.mean() * 1e3:.1f}"
    yield f"{np.ptp(measured_s) / measured_s.mean():.0%}"
    yield f"{predicted_s * 1e3:.1f}"
    yield f"{predicted_s / measured_s.mean() - 1:+.0%}"


def predicted(profile: Path, cell: Cell) -> float:
    """Seconds of a step.

    Raises:
        RunFailed: there is no answer.
    """
    line = [sys.executable, "-m", installed("sim.run"), "--cluster", str(profile), "--protocol", "ddp", "--json"]
    line += ["--workers", str(cell.ranks), "--batch", str(cell.batch * cell.accumulate)]
    line += ["--set", f"bucket_mb={cell.bucket_mb}", "--set", f"accumulate={cell.accumulate}"]
    done = subprocess.run(line, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise RunFailed(done.stderr.strip())
    return json.loads(done.stdout)["step_s"]["mean"]
