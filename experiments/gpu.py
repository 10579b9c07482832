"""Predicted against measured on a machine's GPU, by TensorFlow: a fit on few ranks predicts others, which it has not seen.

Ranks share the machine's GPUs, messages are staged through the host, and a GPU's time has a floor. Models of three sizes, batches from
32 to 2,048, 1 to 8 workers, with sleeps and without: fmb, amb, ps-async, ps-sync and a ring over MPI. The profile says how long amb may
compute. No run that is predicted was fitted.

With `--device cpu` the same runs on cores, which is how a machine without a GPU tests this.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.kit import pages, report
from experiments.kit.cells import fitted, measure, predict
from experiments.kit.comparison import Comparison
from real.calibration_plan import LIMIT
from real.cells import Cell, interleaved
from sim.answers.outcome import of_trace
from sim.base.progress import each

if TYPE_CHECKING:
    from sim.platform.cluster import Cluster

PROTOCOLS = ("fmb", "amb", "ps-async", "ps-sync", "allreduce")
SLEEPS = "niagara*0.05"
FITTED = "fmb on 1, 2 and 4 workers, amb on 1, one run with sleeps; other batches than are predicted"


@dataclass(frozen=True)
class Plan:
    """The runs of the experiment.

    Args:
        models: by name.
        fitted_batches, batches: of a worker, for what is fitted and what is predicted.
        fitted_workers, workers: likewise; of the first of them all batches are fitted.
        slept: numbers of workers with sleeps in predicted cells.
        repeats: runs of each cell.
    """

    models: tuple[str, ...] = ("mlp", "mnist", "resnet18_cifar")
    fitted_batches: tuple[int, ...] = (32, 128, 512, 1024, 2048)
    batches: tuple[int, ...] = (64, 256, 1536)
    fitted_workers: tuple[int, ...] = (1, 2, 4)
    workers: tuple[int, ...] = (1, 2, 4, 8)
    slept: tuple[int, ...] = (2, 8)
    steps: int = 60
    repeats: int = 2

    def jobs(self, device: str, seed: int) -> list[dict]:
        """Fields that all cells of a model share, for each model."""
        shared = {"partitions": 8, "steps": self.steps, "seed": seed, "data": "synthetic", "device": device}
        return [{"workload": model, "runtime": "mpi", **shared} for model in self.models]

    def fitted(self, device: str, seed: int) -> list[Cell]:
        """The cells that the profile is learned from: batches on one worker, sharing, partitions, and sleeps."""
        (alone, *several), middle, large = self.fitted_workers, self.fitted_batches[1], self.fitted_batches[-2]
        found = []
        for job in self.jobs(device, seed):
            found += [Cell("fmb", alone, batch, **job) for batch in self.fitted_batches]
            found += [Cell("fmb", count, batch, **job) for count in several for batch in (middle, large)]
            found += [Cell("amb", alone, large, limit_s, **job) for limit_s in (0.0, 3600.0)]
            found += [Cell("fmb", alone, middle, stragglers=SLEEPS, **job)]
        return found

    def predicted(self, device: str, seed: int, cluster: Cluster) -> list[Cell]:
        """The predicted cells; the profile says for how long amb computes."""
        ways = [(count, batch, "none") for count in self.workers for batch in self.batches]
        ways += [(count, self.batches[-1], SLEEPS) for count in self.slept]
        found = []
        for job in self.jobs(device, seed + 1):
            compute_s = cluster.costs[job["workload"]].compute
            for count, batch, law in ways:
                cell = Cell("fmb", count, batch, stragglers=law, **job)
                limit_s = float(f"{LIMIT * compute_s(batch):.2g}")
                more: dict[str, dict] = {
                    "amb": {"time_limit_s": limit_s},
                    "allreduce": {"settings": ("algorithm=ring",)},
                }
                found += [replace(cell, protocol=name, **more.get(name, {})) for name in PROTOCOLS]
        return found


DEMO = Plan(("mlp",), (32, 64, 128, 256), (48, 96), (1, 2), (1, 2), (2,), steps=15)


def run(out: Path, seed: int = 0, demo: bool = False, resume: bool = False, device: str = "gpu") -> None:
    """Run everything, and print what was predicted and what was measured."""
    plan, folder = DEMO if demo else Plan(), out / "traces"
    learned = measure(_runs("fit", plan.fitted(device, seed), plan, seed), folder, resume=resume)
    cluster = fitted(learned, folder, out / "profile.toml")
    cells = plan.predicted(device, seed, cluster)
    traces = measure(_runs("predict", cells, plan, seed), folder, probe=False, resume=resume)
    rows = []
    for index, cell in enumerate(each(cells, "simulating", label=lambda cell: cell.label)):
        real = [of_trace(traces[f"predict-{index}-{repeat}"]) for repeat in range(plan.repeats)]
        rows.append(Comparison(cell, predict(cell, cluster), real, scenario=cell.scenario(cluster)))
    gpus = next(iter(traces.values())).header.details.get("gpus", [])
    pages.show(f"Device: {', '.join(gpus) or 'CPU, no GPU'}")
    pages.keep([report.record(row) for row in rows])
    pages.show(report.cells_table(rows))
    several, what = (len(gpus), "GPU") if gpus else (os.cpu_count() or 1, "core")
    shared = {False: f"a {what} for each worker", True: f"workers share a {what}"}
    for called, named in (
        ("regime", lambda c: report.SLEEPS if c.stragglers != "none" else shared[c.workers > several]),
        ("protocol", lambda c: c.protocol),
        ("model", lambda c: c.workload),
    ):
        names = dict.fromkeys(named(row.cell) for row in rows)
        groups = {name: [row for row in rows if named(row.cell) == name] for name in names}
        pages.show(report.groups_table(groups | ({"all": rows} if called == "protocol" else {}), called))
    pages.show(f"Fitted: {FITTED}. Tables, traces: {out}")


def _runs(name: str, cells: list[Cell], plan: Plan, seed: int) -> list[tuple[str, Cell]]:
    return interleaved([(f"{name}-{i}", cell, plan.repeats) for i, cell in enumerate(cells)], seed)
