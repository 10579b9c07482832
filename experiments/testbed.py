"""Networks of a cluster in a box (real.launching.testbed), predicted and measured: 3 and 4 hosts, three rates of their links, two models.

All predictions come from three measurements. A probe measures the link between two of the hosts. Runs over that link give the ranks'
computing (longer after a wait), the time of a message in training, and gRPC's bandwidth. They are by one worker with a master or with
one of TensorFlow's servers, and by two workers in a ring. Runs of a master with one worker and with two, without shaped links, give
the
contention of the cores that all hosts share. Fitted runs are mixed with predicted ones, because a machine has slow minutes. Master
and servers have a host of their own. Minibatches are small, so that the network dominates.
"""

from __future__ import annotations

import os
from pathlib import Path

from calibration.profiles import write
from experiments.kit.cells import fitted, measure, predict
from experiments.kit.comparison import Comparison
from experiments.reports import testbed_report
from experiments.reports.testbed_plan import FITS, KNOWN, MODELS, RATES, REPEATS, WARMUP, Where, places, runs
from experiments.reports.testbed_report import Row
from real.cells import Cell, interleaved
from real.launching import testbed
from sim.answers.outcome import of_trace
from sim.base.progress import each
from sim.platform.cluster import Cluster, Host, Link, read
from sim.recording.traces import Trace

CROWDED, REPLICATIONS = 4, 20  # runs of a kind
FREE = Link(latency_s=0, overhead_s=0, bandwidth_bytes_per_s=1e15)


def run(out: Path, seed: int = 0, resume: bool = False) -> None:
    """Run everything; print the tables, write them and a figure to `out`."""
    testbed.check()
    busy = crowded(out / "one machine", seed, resume)
    rows: dict[Where, Row] = {}
    for rate in RATES:
        folder = out / rate.split("/")[0].replace(" ", "-")
        rows |= compared(rate, folder, measured(rate, folder, seed, resume), busy)
    testbed_report.report(rows, out)


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
