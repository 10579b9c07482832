"""The benchmark of E. Bugliarello, "Distributed TensorFlow: A performance evaluation" (CSCS, 2017), on this machine.

TensorFlow's own servers, their number swept from 1 to the number of workers, on synthetic data and on real data; 10 steps of
warm-up, 100 measured, five runs of each. He reports the best number of servers on synthetic data, and runs real data with that. This
experiment runs real data with all numbers, so that all runs share one launch and a random order. He gives means, and this experiment
medians.

On one machine "scaling" is that of processes on its cores. Both kinds of data lie in memory, as the seeds' loaders keep them: the
extra cost of real data is not a disk's time.
"""

from __future__ import annotations

from pathlib import Path

from experiments.kit.cells import measure, predict
from experiments.reports import benchmark_report
from experiments.reports.benchmark_rows import Row, Runs
from real.cells import Cell, interleaved
from sim.base.errors import WrongSetting
from sim.base.progress import each
from sim.model import workload as workloads
from sim.platform import cluster as clusters
from sim.platform.cluster import Cluster
from sim.recording.traces import Trace

SYNTHETIC = "synthetic"
WARMUP, STEPS, REPEATS, WORKERS = 10, 100, 5, 4
DEMO_STEPS, DEMO_REPEATS, DEMO_WORKERS = 40, 2, 2
REPLICATIONS = 10  # of the simulator


def cells(workers: int, steps: int, seed: int, data: str, **job) -> dict[str, Cell]:
    """The cells by name: 1 to `workers` workers, with as many servers or fewer, on synthetic data and on `data`."""
    job |= {"runtime": "tensorflow", "batch": workloads.read(job["workload"]).batch}
    return {
        f"{count}w-{servers}s-{kind}": Cell(
            workers=count, servers=servers, data=chosen, steps=steps, warmup=WARMUP, seed=seed, **job
        )
        for count in range(1, workers + 1)
        for servers in range(1, count + 1)
        for kind, chosen in (("synthetic", SYNTHETIC), ("real", data))
    }


def gather(
    chosen: dict[str, Cell], traces: dict[str, Trace], repeats: int, profile: Cluster | None = None
) -> list[Row]:
    """A row for each number of workers and servers, from traces by name and repeat."""
    runs = {name: Runs.of([traces[f"{name}-{repeat}"] for repeat in range(repeats)]) for name in chosen}
    return [
        Row(
            cell.workers,
            cell.servers,
            runs[name],
            runs[name.replace("synthetic", "real")],
            predict(cell, profile, REPLICATIONS) if profile else None,
        )
        for name, cell in each(
            [item for item in chosen.items() if item[1].data == SYNTHETIC], "simulating", lambda item: item[0]
        )
    ]


def known(profile: str, workload: str) -> Cluster:
    """The cluster of a profile's file.

    Raises:
        WrongSetting: it does not know what the workload costs.
    """
    read, name = clusters.read(profile), workloads.read(workload).name
    if name not in read.costs:
        raise WrongSetting(
            "--cluster", profile, f"a profile calibrated for {name}; it knows {', '.join(read.costs) or 'none'}"
        )
    return read


def run(
    out: Path,
    seed: int = 0,
    *,
    demo: bool = False,
    workers: int | None = None,
    protocol: str = "ps-sync",
    workload: str = "mlp",
    data: str = "digits",
    cluster: str | None = None,
    resume: bool = False,
) -> None:
    """Run everything, write out/benchmark.csv and out/benchmark.png, print the table.

    Args:
        demo: fewer workers, steps and repeats.
        workers: the most; 4, of the demo 2, if None.
        data: the real ones.
        cluster: a profile's file; with it the simulator is asked too.

    Raises:
        WrongSetting: naming the option.
    """
    most, steps, repeats = (DEMO_WORKERS, DEMO_STEPS, DEMO_REPEATS) if demo else (WORKERS, STEPS, REPEATS)
    most = most if workers is None else workers
    if most < 1:
        raise WrongSetting("--workers", most, "an integer from 1")
    if data == SYNTHETIC:
        raise WrongSetting("--data", data, "real data, to compare synthetic ones with: digits, or files")
    profile = known(cluster, workload) if cluster else None
    chosen = cells(most, steps, seed, data, protocol=protocol, workload=workload)
    order = interleaved([(name, cell, repeats) for name, cell in chosen.items()], seed)
    rows = gather(chosen, measure(order, out / "traces", probe=False, resume=resume), repeats, profile)
    benchmark_report.write_csv(rows, out / "benchmark.csv")
    benchmark_report.figure(rows, out / "benchmark.png")
    benchmark_report.show(
        rows, f"{protocol}, {workload}, {steps} steps after {WARMUP}, {repeats} runs each; files: {out}"
    )
