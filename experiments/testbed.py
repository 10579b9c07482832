"""Networks of a cluster in a box (real.launching.testbed), predicted and measured: 3 and 4 hosts, three rates of their links, two models.

All predictions come from three measurements. A probe measures the link between two of the hosts. Runs over that link give the ranks'
computing (longer after a wait), the time of a message in training, and gRPC's bandwidth. They are by one worker with a master or with
one of TensorFlow's servers, and by two workers in a ring. Runs of a master with one worker and with two, without shaped links, give the
contention of the cores that all hosts share. Fitted runs are mixed with predicted ones, because a machine has slow minutes. Master
and servers have a host of their own. Minibatches are small, so that the network dominates.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from calibration.profiles import write
from experiments.kit import pages, report
from experiments.kit.cells import fitted, measure, predict
from experiments.kit.comparison import Comparison
from experiments.testbed_plan import (
    DOMINATES,
    FITS,
    KNOWN,
    MODELS,
    RATES,
    REPEATS,
    WARMUP,
    WAYS,
    Where,
    places,
    runs,
)
from real.cells import Cell, interleaved
from real.launching import testbed
from sim.answers.outcome import of_trace
from sim.base.progress import each
from sim.platform.cluster import Cluster, Host, Link, read
from sim.recording.traces import Trace

if TYPE_CHECKING:
    from rich.table import Table

CROWDED, REPLICATIONS = 4, 20  # runs of a kind
FREE = Link(latency_s=0, overhead_s=0, bandwidth_bytes_per_s=1e15)
TARGET = 0.05


@dataclass(frozen=True)
class Row(Comparison):
    """A place, predicted and measured.

    Args:
        network: share of the predicted step that goes if messages take no time.
    """

    network: float


def run(out: Path, seed: int = 0, resume: bool = False) -> None:
    """Run everything; print the tables."""
    testbed.check()
    busy = crowded(out / "one machine", seed, resume)
    rows: dict[Where, Row] = {}
    for rate in RATES:
        folder = out / rate.split("/")[0].replace(" ", "-")
        rows |= compared(rate, folder, measured(rate, folder, seed, resume), busy)
    show(rows, out)


def measured(rate: str, folder: Path, seed: int, resume: bool = False) -> dict[str, Trace]:
    """Traces of all runs of one rate. TensorFlow's have a launch of their own, because its servers poll for work during other runs."""
    chosen = runs(rate, seed)
    over_mpi = [(name, cell) for name, cell in chosen if cell.runtime == "mpi"]
    traces = measure(over_mpi, folder, testbed=rate, resume=resume)
    others = [run for run in chosen if run not in over_mpi]
    return traces | measure(others, folder, probe=False, testbed=rate, resume=resume)


def compared(rate: str, folder: Path, traces: dict[str, Trace], busy: list[Path]) -> dict[Where, Row]:
    """Predicted and measured steps with links of one rate; contention from runs on `busy` cores."""
    profiles = {}
    for way in FITS:
        names = [name for name in traces if name.startswith(f"fit-{way}-")]
        profiles[way] = fitted(names, folder, folder / f"{way}.toml", beside=busy, shared_cores=os.cpu_count())
    profiles["ring"] = linked(profiles["ring"], profiles["fmb"], folder / "ring.toml")
    named = {where: f"predict-{index}" for index, where in enumerate(places(rate))}
    return {
        where: compare(where, [traces[f"{name}-{repeat}"] for repeat in range(REPEATS)], profiles[where.profile])
        for where, name in each(named.items(), f"simulating, {rate}", label=lambda item: item[0].cell.label)
    }


def linked(profile: Cluster, other: Cluster, file: Path) -> Cluster:
    """The profile, written anew, with the other's links: of the same hosts, and learned where a message has the link for itself."""
    links = {name: getattr(other, name) for name in ("network", "library")}
    write(profile.model_copy(update=links), str(file))
    return read(str(file))


def crowded(folder: Path, seed: int, resume: bool = False) -> list[Path]:
    """Traces of fmb with one worker and two, without shaped links: how busy cores slow each other."""
    job: dict = {"runtime": "mpi", "steps": 100, "warmup": WARMUP, "seed": seed, **KNOWN}
    cells = [(f"fmb-{model}-{n}", Cell("fmb", n, workload=model, **job), CROWDED) for model in MODELS for n in (1, 2)]
    chosen = interleaved(cells, seed)
    measure(chosen, folder, resume=resume)
    return [folder / f"{name}.parquet" for name, _ in chosen]


def compare(where: Where, real: list[Trace], profile: Cluster) -> Row:
    """One place, predicted and measured, on hosts like those of the profile."""
    cell = where.cell
    host = Host(count=where.hosts, contention=profile.hosts[0].contention)
    cluster = profile.model_copy(update={"hosts": (host,)})
    alone = cluster.model_copy(update={"network": FREE, "library": None})
    alone_s = predict(cell, alone, replications=2).step_s.mean()
    predicted = predict(cell, cluster, REPLICATIONS)
    measured = [of_trace(trace) for trace in real]
    network = float(1 - alone_s / Comparison(cell, predicted, measured).said())
    return Row(cell, predicted, measured, network, scenario=cell.scenario(cluster))


COLUMNS = (
    ("model", lambda item: item[0].model),
    ("hosts", lambda item: str(item[0].hosts)),
    ("way", lambda item: item[0].way),
    ("network", lambda item: f"{item[1].network:.0%}"),
    ("predicted", lambda item: f"{item[1].said() * 1e3:.1f}"),
    ("measured", lambda item: f"{item[1].real() * 1e3:.1f}"),
    ("error", lambda item: f"{item[1].error():+.1%}"),
    ("floor", lambda item: f"{item[1].floor:.1%}"),
    ("samples/s", lambda item: f"{item[1].said('throughput'):.0f}"),
    ("measured", lambda item: f"{item[1].real('throughput'):.0f}"),
)


def show(rows: dict[Where, Row], out: Path) -> None:
    """Every place, errors by way and rate, coverage, and whether the right one wins."""
    pages.keep([{"where": f"{where.rate}, {where.model}", **report.record(row)} for where, row in rows.items()])
    for rate in RATES:
        mine = sorted(
            ((where, row) for where, row in rows.items() if where.rate == rate),
            key=lambda item: (item[0].model, item[0].hosts),
        )
        pages.show(pages.listed(f"Links of {rate}: mean step, ms", COLUMNS, mine))
    title = f"Mean absolute error of a step (places within {TARGET:.0%})"
    pages.show(_errors(rows, title))
    shaped = {where: row for where, row in rows.items() if row.network >= DOMINATES}
    pages.show(_errors(shaped, f"{title} where the network takes {DOMINATES:.0%} or more of the predicted step"))
    held = [held for row in rows.values() for held in row.covered]
    pages.show(f"90 % intervals hold: {sum(held)} of {len(held)} runs")
    pairs = winners(rows)
    pages.show(
        f"Allreduce or server: {sum(right for *_, right in pairs)} of {len(pairs)} pairs that differ, ranked right",
    )
    for one, other, right in pairs:
        if not right:
            pages.show(f"  wrong: {one.rate}, {one.hosts} hosts, {one.model}: {one.way} or {other.way}")
    pages.show(f"Tables, traces: {out}")


def winners(rows: dict[Where, Row]) -> list[tuple[Where, Where, bool]]:
    """Pairs of an allreduce and a server in one place that differ by more than their repeats do; whether ranked right."""
    found = []
    for one, other in product(rows, rows):
        if one[:3] != other[:3] or rows[one].cell.protocol != "allreduce" or rows[other].cell.protocol == "allreduce":
            continue
        real, said = (_ratio(rows[one], rows[other], predicted) for predicted in (False, True))
        if abs(real - 1) > max(rows[one].floor, rows[other].floor):
            found.append((one, other, (real > 1) == (said > 1)))
    return found


def _ratio(one: Comparison, other: Comparison, predicted: bool) -> float:
    """Samples a second of one over the other's."""

    def speed(row: Comparison) -> float:
        return row.said("throughput") if predicted else row.real("throughput")

    return speed(one) / speed(other)


def _said(rows: list[Row]) -> str:
    """Mean absolute error, and how many are within the target."""
    if not rows:
        return "-"
    errors = np.abs([row.error() for row in rows])
    return f"{errors.mean():.1%} ({np.sum(errors <= TARGET)} of {len(errors)})"


def _errors(rows: dict[Where, Row], title: str) -> Table:
    """The mean absolute error of the step by kind of run and rate, and the noise floor of all."""
    table = pages.table(title, "way", *RATES, "all")
    table.columns[0].justify = "left"
    servers = [way for way, (*_, runtime) in WAYS.items() if runtime == "tensorflow"]
    for name, ways in {**{way: [way] for way in WAYS}, "TensorFlow's servers": servers, "all": WAYS}.items():
        chosen = [[row for where, row in rows.items() if where.way in ways and where.rate == rate] for rate in RATES]
        table.add_row(name, *map(_said, [*chosen, [row for some in chosen for row in some]]))
    floors = [np.mean([row.floor for where, row in rows.items() if where.rate == rate]) for rate in RATES]
    table.add_row("repeats differ by", *(f"{floor:.1%}         " for floor in floors))
    return table
