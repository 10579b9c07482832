"""The benchmark of E. Bugliarello, "Distributed TensorFlow: A performance evaluation" (CSCS, 2017), on this machine.

TensorFlow's own servers, their number swept from 1 to the number of workers, on synthetic data and on real data; 10 steps of
warm-up, 100 measured, five runs of each. He reports the best number of servers on synthetic data, and runs real data with that. This
experiment runs real data with all numbers, so that all runs share one launch and a random order. He gives means, and this experiment
medians.

On one machine "scaling" is that of processes on its cores. Both kinds of data lie in memory, as the seeds' loaders keep them: the
extra cost of real data is not a disk's time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from experiments.kit import pages
from experiments.kit.cells import measure
from real.cells import Cell, interleaved
from sim.answers.outcome import of_trace
from sim.base.errors import WrongSetting
from sim.model import workload as workloads
from sim.recording.traces import Trace

SYNTHETIC = "synthetic"
WARMUP, STEPS, REPEATS, WORKERS = 10, 100, 5, 4


@dataclass(frozen=True)
class Runs:
    """The repeats of one cell.

    Args:
        samples_per_s: of each repeat, shape (repeats,).
        input_s: mean seconds in which a worker's step fetches and feeds its minibatch, shape (repeats,).
    """

    samples_per_s: np.ndarray
    input_s: np.ndarray

    @classmethod
    def of(cls, traces: list[Trace]) -> Runs:
        """The row of a measured run, after warm-up."""
        throughput = [of_trace(trace).throughput()[0] for trace in traces]
        return cls(np.array(throughput), np.array([input_s(trace) for trace in traces]))

    @property
    def median(self) -> float:
        """Samples/s."""
        return float(np.median(self.samples_per_s))

    @property
    def spread(self) -> float:
        """The spread of the repeats, over their median."""
        return float(np.ptp(self.samples_per_s) / self.median)


@dataclass(frozen=True)
class Row:
    """A number of workers with a number of servers, on both kinds of data."""

    workers: int
    servers: int
    synthetic: Runs
    real: Runs

    @property
    def input_cost(self) -> np.ndarray:
        """Share of the throughput on synthetic data that is lost on real data, repeat by repeat, shape (repeats,)."""
        return 1 - self.real.samples_per_s / self.synthetic.samples_per_s


def input_s(trace: Trace) -> float:
    """Mean seconds of a worker's `input` after warm-up."""
    rows = trace.rows[(trace.rows["activity"] == "input") & (trace.rows["step"] >= trace.header.warmup)]
    return float((rows["end_s"] - rows["start_s"]).mean())


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


def gather(chosen: dict[str, Cell], traces: dict[str, Trace], repeats: int) -> list[Row]:
    """A row for each number of workers and servers, from traces by name and repeat."""
    runs = {name: Runs.of([traces[f"{name}-{repeat}"] for repeat in range(repeats)]) for name in chosen}
    return [
        Row(cell.workers, cell.servers, runs[name], runs[name.replace("synthetic", "real")])
        for name, cell in chosen.items()
        if cell.data == SYNTHETIC
    ]


def run(
    out: Path,
    seed: int = 0,
    *,
    workers: int = WORKERS,
    protocol: str = "ps-sync",
    workload: str = "mlp",
    data: str = "digits",
    resume: bool = False,
) -> None:
    """Run everything, and print the table.

    Args:
        workers: the most.
        data: the real ones.

    Raises:
        WrongSetting: naming the option.
    """
    if workers < 1:
        raise WrongSetting("--workers", workers, "an integer from 1")
    if data == SYNTHETIC:
        raise WrongSetting("--data", data, "real data, to compare synthetic ones with: digits, or files")
    chosen = cells(workers, STEPS, seed, data, protocol=protocol, workload=workload)
    order = interleaved([(name, cell, REPEATS) for name, cell in chosen.items()], seed)
    rows = gather(chosen, measure(order, out / "traces", probe=False, resume=resume), REPEATS)
    show(rows, f"{protocol}, {workload}, {STEPS} steps after {WARMUP}, {REPEATS} runs each; files: {out}")


def best(rows: list[Row]) -> dict[int, Row]:
    """The row with the fastest number of servers on synthetic data, for each number of workers."""
    return {
        workers: max((row for row in rows if row.workers == workers), key=lambda row: row.synthetic.median)
        for workers in sorted({row.workers for row in rows})
    }


def efficiencies(row: Row, alone: Row) -> dict[str, float]:
    """Throughput over the number of workers times that of one, on synthetic and on real data."""
    return {
        name: getattr(row, name).median / getattr(alone, name).median / row.workers for name in ("synthetic", "real")
    }


def show(rows: list[Row], caption: str) -> None:
    """Every number of servers, the best of each number of workers marked."""
    winners = best(rows)

    def scaling(name: str) -> Callable[[Row], str]:
        return lambda row: f"{efficiencies(row, winners[1])[name]:.1%}"

    columns: list[tuple[str, Callable[[Row], str]]] = [
        ("workers", lambda row: str(row.workers)),
        ("servers", lambda row: f"{'*' * (row is winners[row.workers])}{row.servers}"),
        ("synthetic\nsamples/s", lambda row: f"{row.synthetic.median:,.0f}"),
        ("\nspread", lambda row: f"{row.synthetic.spread:.0%}"),
        ("\nscaling", scaling("synthetic")),
        ("real\nsamples/s", lambda row: f"{row.real.median:,.0f}"),
        ("\nspread", lambda row: f"{row.real.spread:.0%}"),
        ("\nscaling", scaling("real")),
        ("lost to input\nmedian (range)", lost),
        (
            "input, ms\nsynth. real",
            lambda row: " ".join(f"{np.median(of.input_s) * 1e3:.2f}" for of in (row.synthetic, row.real)),
        ),
    ]
    pages.show(pages.listed(caption, columns, rows))
    pages.show("*: the number of servers that is fastest on synthetic data. Scaling: efficiency against 1 worker.")
    pages.show("Lost to input: 1 - real / synthetic, repeat by repeat. Spread: of the repeats, over their median.")


def lost(row: Row) -> str:
    """The share that is lost to input, of the median repeat and of all."""
    shares = row.input_cost
    return f"{np.median(shares):+.1%} ({shares.min() * 100:+.0f} to {shares.max() * 100:+.0f})"
