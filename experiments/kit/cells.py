"""Cells: scenarios that are both run for real, many in one launch, and simulated."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from experiments.kit.comparison import Comparison
from real import campaign
from real.cells import Cell, interleaved
from sim.answers.outcome import Outcome, of_trace
from sim.base.progress import each
from sim.platform.cluster import Cluster
from sim.recording.traces import Trace, read
from sim.simulation import simulate


@dataclass(frozen=True)
class Plan:
    """The runs of an experiment: fit-0-0, predict-0-0 and so on, by cell and repeat.

    Args:
        fitted, predicted: cells.
        fits, repeats: runs of each fitted and of each predicted cell.
        further: predicted too, and reported separately.
    """

    fitted: list[Cell]
    predicted: list[Cell]
    fits: int
    repeats: int
    further: tuple[Cell, ...] = ()

    def order(self, seed: int) -> list[tuple[str, Cell]]:
        """All runs by name, fitted among predicted, repeats apart."""
        fits = [(f"fit-{i}", cell, self.fits) for i, cell in enumerate(self.fitted)]
        predicted = [*self.predicted, *self.further]
        return interleaved(fits + [(f"predict-{i}", cell, self.repeats) for i, cell in enumerate(predicted)], seed)

    def measured(self, traces: dict[str, Trace]) -> Iterator[tuple[Cell, list[Trace]]]:
        """Predicted cells and their runs; says how far their simulation has come."""
        found = [
            (cell, [traces[f"predict-{index}-{repeat}"] for repeat in range(self.repeats)])
            for index, cell in enumerate([*self.predicted, *self.further])
        ]
        return each(found, "simulating", label=lambda one: one[0].label)

    def run(self, out: Path, seed: int, resume: bool) -> dict[str, Trace]:
        """Run all, for real: the traces by name, in out/traces."""
        return measure(self.order(seed), out / "traces", resume=resume)

    def profile(self, out: Path, way: str = "", takes: Callable[[Cell], bool] = lambda cell: True) -> Cluster:
        """The profile in out/WAY.toml (profile.toml) of the fitted cells, or of some of them."""
        runs = [f"fit-{i}-{repeat}" for i, cell in enumerate(self.fitted) if takes(cell) for repeat in range(self.fits)]
        called = f"this machine, {way}" if way else "this machine"
        return fitted(runs, out / "traces", out / f"{way or 'profile'}.toml", called)

    def compared(
        self, traces: dict[str, Trace], cluster: Callable[[Cell], Cluster], replications: int = 40
    ) -> list[Comparison]:
        """Predicted cells beside their runs; `cluster` has the profile of each."""
        return [
            Comparison(
                cell,
                predict(cell, cluster(cell), replications),
                [of_trace(trace) for trace in runs],
                scenario=cell.scenario(cluster(cell)),
            )
            for cell, runs in self.measured(traces)
        ]


def measure(
    runs: list[tuple[str, Cell]],
    folder: Path,
    probe: bool = True,
    testbed: str | None = None,
    resume: bool = False,
) -> dict[str, Trace]:
    """Run (name, cell) pairs for real, in order, in one launch, after a probe (folder/probe.json); traces by name.

    Args:
        testbed: the rate of the links, if each rank is to have a host of its own (real.launching.testbed).
        resume: leave out what is in the folder already.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lines = [[*cell.real_words(), *_files(cell, folder / name)] for name, cell in runs]
    (folder / "cells.json").write_text(json.dumps(lines, indent=0))
    probing = ["--probe", str(folder / "probe.json")] if probe else []
    where = [] if testbed is None else ["--testbed", testbed]
    campaign.main([str(folder / "cells.json"), *probing, *where, *(["--resume"] if resume else [])])
    return {name: read(folder / f"{name}.parquet") for name, _ in runs}


def _files(cell: Cell, path: Path) -> list[str]:
    parameters = ["--parameters", f"{path}.npz"] if cell.keeps_parameters else []
    return ["--trace", f"{path}.parquet", *parameters]


def fitted(
    names: Iterable[str],
    folder: Path,
    profile: Path,
    called: str = "this machine",
    beside: Iterable[Path] = (),
    shared_cores: int | None = None,
) -> Cluster:
    """The profile that calibration.fit makes of runs that `measure` left in a folder, by name, and of the probe there.

    Args:
        beside: traces from elsewhere.
        shared_cores: see calibration.profiles.make.
    """
    from calibration import fit
    from sim.platform import cluster

    paths = [*(str(folder / f"{name}.parquet") for name in names), *map(str, beside)]
    cores = [] if shared_cores is None else ["--shared-cores", str(shared_cores)]
    fit.main([*paths, "-o", str(profile), "--probe", str(folder / "probe.json"), "--name", called, *cores])
    return cluster.read(str(profile))


def predict(cell: Cell, cluster: Cluster, replications: int = 40) -> Outcome:
    """The simulated answer of a cell; the replications differ in noise, not in sleeps."""
    return simulate(cell.scenario(cluster), replications=replications).outcome


def ends(cell: Cell, cluster: Cluster) -> dict[str, tuple[float, float]]:
    """What unknown costs do to a step of a cell, see sim.answers.quantities."""
    return simulate(cell.scenario(cluster), "event", 2).outcome.ends


def simulated_runs(cell: Cell, cluster: Cluster, replications: int) -> list[Trace]:
    """The event world's runs of a cell."""
    scenario = cell.scenario(cluster)
    return [
        simulate(scenario, "event", 1, first=replication, want_trace=True).trace for replication in range(replications)
    ]
