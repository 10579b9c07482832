"""Predicted against measured on a machine's GPU, by JAX: a fit on few ranks predicts others, which it has not seen.

Ranks share the machine's GPUs, messages are staged through the host, and a GPU's time has a floor. Models of three sizes, batches from
32 to 2,048, 1 to 8 workers, with sleeps and without: fmb, amb, ps-async, ps-sync and a ring over MPI. Pilots say how long a batch takes,
and with that how long amb may compute. All other runs share one launch, in random order; no run that is predicted was fitted.

With `--device cpu` the same runs on cores, which is how a machine without a GPU tests this.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from experiments import gpu_report
from experiments.kit.cells import fitted, measure, predict
from experiments.kit.comparison import Comparison
from real.calibration_plan import LIMIT
from real.cells import Cell, interleaved
from sim.answers.outcome import of_trace
from sim.base.errors import WrongSetting
from sim.base.progress import each
from sim.recording.traces import Trace

DEVICES = ("gpu", "cpu")
PROTOCOLS = ("fmb", "amb", "ps-async", "ps-sync", "allreduce")
SLEEPS = "niagara*0.05"
PILOT_STEPS = 10


@dataclass(frozen=True)
class Plan:
    """The runs of the experiment.

    Args:
        device: gpu or cpu.
        seed: of sleeps, and of the order of runs.
        models: by name.
        fitted_batches, batches: of a worker, for what is fitted and what is predicted.
        fitted_workers, workers: likewise; of the first of them all batches are fitted.
        slept: numbers of workers with sleeps in predicted cells.
        partitions: of amb's batches.
        fits, repeats: runs of each fitted and of each predicted cell.
    """

    device: str
    seed: int
    models: tuple[str, ...] = ("mlp", "mnist", "resnet18_cifar")
    fitted_batches: tuple[int, ...] = (32, 128, 512, 1024, 2048)
    batches: tuple[int, ...] = (64, 256, 1536)
    fitted_workers: tuple[int, ...] = (1, 2, 4)
    workers: tuple[int, ...] = (1, 2, 4, 8)
    slept: tuple[int, ...] = (2, 8)
    partitions: int = 8
    steps: int = 60
    fits: int = 2
    repeats: int = 2
    compute_s: dict[tuple[str, int], float] = field(default_factory=dict)

    def job(self, model: str) -> dict:
        """Fields that all cells of a model share."""
        about = {"workload": model, "partitions": self.partitions, "steps": self.steps, "seed": self.seed}
        return about | {"data": "synthetic", "engine": "jax", "device": self.device, "runtime": "mpi"}

    @property
    def pilots(self) -> list[Cell]:
        """A small and a large batch of each model, on one worker."""
        ends = min(self.batches), max(self.batches)
        return [Cell("fmb", 1, batch, **self.job(m) | {"steps": PILOT_STEPS}) for m in self.models for batch in ends]

    @property
    def fitted(self) -> list[Cell]:
        """The cells that the profile is learned from: batches on one worker, sharing, partitions, and sleeps."""
        (alone, *several), middle, large = self.fitted_workers, self.fitted_batches[1], self.fitted_batches[-2]
        found = []
        for job in map(self.job, self.models):
            found += [Cell("fmb", alone, batch, **job) for batch in self.fitted_batches]
            found += [Cell("fmb", count, batch, **job) for count in several for batch in (middle, large)]
            found += [Cell("amb", alone, large, limit_s, **job) for limit_s in (0.0, 3600.0)]
            found += [Cell("fmb", alone, middle, stragglers=SLEEPS, **job)]
        return found

    @property
    def predicted(self) -> list[Cell]:
        """The predicted cells."""
        found = []
        for model in self.models:
            ways = [(count, batch, "none") for count in self.workers for batch in self.batches]
            ways += [(count, self.batches[-1], SLEEPS) for count in self.slept]
            found += [self._cell(name, model, *way) for name in PROTOCOLS for way in ways]
        return found

    def _cell(self, protocol: str, model: str, workers: int, batch: int, law: str) -> Cell:
        settings = ("algorithm=ring",) if protocol == "allreduce" else ()
        limit_s = LIMIT * self.seconds(model, batch) if protocol == "amb" else None
        job = self.job(model) | {"seed": self.seed + 1}
        return Cell(protocol, workers, batch, limit_s, law, settings=settings, **job)

    def seconds(self, model: str, batch: int) -> float:
        """The time of a batch, to two digits, between the pilots'."""
        ends = min(self.batches), max(self.batches)
        return float(f"{np.interp(batch, ends, [self.compute_s.get((model, end), 1.0) for end in ends]):.2g}")


def plan(device: str, seed: int, demo: bool) -> Plan:
    """All of it, or of one model, two workers and few steps.

    Raises:
        WrongSetting: another device.
    """
    if device not in DEVICES:
        raise WrongSetting("--device", device, ", ".join(DEVICES))
    if not demo:
        return Plan(device, seed)
    few: dict[str, Any] = {
        "fitted_batches": (32, 64, 128, 256),
        "batches": (48, 96),
        "fitted_workers": (1, 2),
        "workers": (1, 2),
    }
    return Plan(device, seed, ("mlp",), **few, slept=(2,), steps=15, fits=2, repeats=2)


FITTED = "fmb on 1, 2 and 4 workers, amb on 1, one run with sleeps; other batches than are predicted"


def run(out: Path, seed: int = 0, demo: bool = False, resume: bool = False, device: str = "gpu") -> None:
    """Run everything, and print what was predicted, what was measured, and how a GPU's rates are beside the catalogue's."""
    chosen = plan(device, seed, demo)
    chosen.compute_s.update(piloted(chosen, out / "pilots", resume))
    fits = [(f"fit-{i}", cell, chosen.fits) for i, cell in enumerate(chosen.fitted)]
    wanted = [(f"predict-{i}", cell, chosen.repeats) for i, cell in enumerate(chosen.predicted)]
    traces = measure(interleaved(fits + wanted, seed), out / "traces", resume=resume)
    learned = {name: trace for name, trace in traces.items() if name.startswith("fit")}
    cluster = fitted(learned, out / "traces", out / "profile.toml")
    rows = []
    for index, cell in enumerate(each(chosen.predicted, "simulating", label=lambda cell: cell.label)):
        real = [of_trace(traces[f"predict-{index}-{repeat}"]) for repeat in range(chosen.repeats)]
        rows.append(Comparison(cell, predict(cell, cluster), real, scenario=cell.scenario(cluster)))
    gpu_report.show(rows, list(learned.values()), cluster, out, FITTED)


def piloted(chosen: Plan, folder: Path, resume: bool) -> dict[tuple[str, int], float]:
    """Seconds of computing by model and batch, of the pilots."""
    named = [(f"pilot-{i}", cell) for i, cell in enumerate(chosen.pilots)]
    traces = measure(named, folder, probe=False, resume=resume)
    return {(cell.workload, cell.batch): computing_s(traces[name]) for name, cell in named}


def computing_s(trace: Trace) -> float:
    """The median computation after the warm-up."""
    return float(gpu_report.computed(trace).median())
