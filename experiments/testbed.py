"""Networks of a cluster in a box (real.testbed), predicted and measured: 3 and 4 hosts, three rates of their links, two models.

Everything that is predicted is made of three measurements: a probe of the link between two of the hosts; runs over it by one
worker with a master or with one of TensorFlow's servers, and by two workers in a ring, for what ranks compute (which takes longer
where they have just waited) and what gRPC makes of the link; and, without shaped links, runs of a master with one worker and with
two, for how the cores that all hosts share slow one another. Runs that are fitted come between those that are predicted, for a
machine has slow minutes. Master and servers have a host of their own. Minibatches are small, for here the network is to dominate.

Not modelled: that a short message waits in the queue of a shaper behind the bytes of a long one.
"""

from __future__ import annotations

import csv
import io
import os
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np

from experiments.cells import Cell, fitted, interleaved, measure, predict
from experiments.comparison import Comparison
from real import testbed
from sim import workload
from sim.cluster import Cluster, Host, Link
from sim.files import write_whole
from sim.outcome import of_trace
from sim.traces import Trace

RATES = ("100 Mbit/s", "400 Mbit/s", "1 Gbit/s")
HOSTS = (3, 4)
MODELS = ("mlp", "toy_fc")  # 0.3 MB and 4 MB
WAYS = {  # protocol, its settings, who runs it
    "ring": ("allreduce", ("algorithm=ring",), "mpi"),
    "MPI's allreduce": ("allreduce", ("algorithm=auto",), "mpi"),
    "fmb": ("fmb", (), "mpi"),
    "ps-sync, MPI": ("ps-sync", ("barrier=true",), "mpi"),
    "ps-async, TensorFlow": ("ps-async", (), "tensorflow"),
    "ps-sync, TensorFlow": ("ps-sync", (), "tensorflow"),
}
# What is fitted apart: over MPI allreduce and masters, TensorFlow's servers by protocol.
FITS = ("ring", "fmb", "ps-async", "ps-sync")
KNOWN = {"batch": 32, "optimiser": "sgd"}
WARMUP, STEPS = 2, {"fitted": 18, "predicted": 6, "asynchronous": 16}  # measured, at least
APART = 48  # steps before which asynchronous workers, who begin together, may still wait for one another
FITS_OF_EACH, CROWDED, REPEATS, REPLICATIONS = 4, 4, 2, 10  # runs of a kind
CARRIED_S = 1.0  # for which a run's models keep a port busy at least: in short runs one message that is lost is much
TARGET, DOMINATES = 0.05, 0.8  # of a step's time
FREE = Link(latency_s=0, overhead_s=0, bandwidth_bytes_per_s=1e15)


class Where(NamedTuple):
    """One place in the tables."""

    rate: str
    hosts: int
    model: str
    way: str

    @property
    def profile(self) -> str:
        """Which of the profiles it is predicted with."""
        protocol, _, runtime = WAYS[self.way]
        over_mpi = "ring" if protocol == "allreduce" else "fmb"
        return over_mpi if runtime == "mpi" else protocol

    @property
    def cell(self) -> Cell:
        """The job: allreduce works on every host, the others leave one to the master or server."""
        protocol, settings, runtime = WAYS[self.way]
        workers = self.hosts if protocol == "allreduce" else self.hosts - 1
        named = {"workload": self.model, "runtime": runtime, "settings": settings} | KNOWN
        kind, warmup = ("asynchronous", APART) if protocol == "ps-async" else ("predicted", WARMUP)
        return Cell(
            protocol, workers, steps=warmup + measured_steps(kind, self.rate, self.model), warmup=warmup, **named
        )


@dataclass(frozen=True)
class Row(Comparison):
    """A place, predicted and measured.

    Args:
        network: share of the predicted step that goes if messages take no time.
    """

    network: float

    @property
    def shaped(self) -> bool:
        """Whether the network dominates."""
        return self.network >= DOMINATES


def measured_steps(kind: str, rate: str, model: str) -> int:
    """After the warm-up: as many as are usual for such a run, or as carry the model there and back for long enough."""
    carried_s = 2 * workload.read(model).message_bytes / testbed.rate(rate)
    return max(STEPS[kind], round(CARRIED_S / carried_s))


def places(rate: str) -> list[Where]:
    """All that is predicted for one rate."""
    return [Where(rate, *rest) for rest in product(HOSTS, MODELS, WAYS)]


def run(out: Path, seed: int = 0, resume: bool = False) -> None:
    """Run everything; print the tables, write them and a figure to `out`."""
    testbed.check()
    busy = crowded(out / "one machine", seed, resume)
    rows: dict[Where, Row] = {}
    for rate in RATES:
        folder = out / rate.split("/")[0].replace(" ", "-")
        rows |= compared(rate, folder, measured(rate, folder, seed, resume), busy)
    report(rows, out)


def measured(rate: str, folder: Path, seed: int, resume: bool = False) -> dict[str, Trace]:
    """Traces of all runs of one rate; TensorFlow's in a launch of their own, for its servers look for work while others' runs go on."""
    chosen = runs(rate, seed)
    over_mpi = [(name, cell) for name, cell in chosen if cell.runtime == "mpi"]
    traces = measure(over_mpi, folder, testbed=rate, resume=resume)
    others = [run for run in chosen if run not in over_mpi]
    return traces | measure(others, folder, probe=False, testbed=rate, resume=resume)


def runs(rate: str, seed: int) -> list[tuple[str, Cell]]:
    """All runs of one rate by name, once all in random order, then all again: those that are fitted meet the same moments."""
    each = range(FITS_OF_EACH // REPEATS)
    fits = [(f"fit-{way}-{model}-{k}", fit(rate, way, model)) for way in FITS for model in MODELS for k in each]
    predicted = [(f"predict-{index}", where.cell) for index, where in enumerate(places(rate))]
    return interleaved([(name, cell, REPEATS) for name, cell in fits + predicted], seed)


def compared(rate: str, folder: Path, traces: dict[str, Trace], busy: list[Path]) -> dict[Where, Row]:
    """What is predicted and what was measured with links of one rate; from runs on `busy` cores, how they slow each other."""
    profiles = {}
    for way in FITS:
        names = [name for name in traces if name.startswith(f"fit-{way}-")]
        profiles[way] = fitted(names, folder, folder / f"{way}.toml", beside=busy, shared_cores=os.cpu_count())
    named = {where: f"predict-{index}" for index, where in enumerate(places(rate))}
    return {
        where: compare(where, [traces[f"{name}-{repeat}"] for repeat in range(REPEATS)], profiles[where.profile])
        for where, name in named.items()
    }


def fit(rate: str, way: str, model: str) -> Cell:
    """The job that a way is fitted on: of one worker and its master or server, or of two in a ring."""
    steps = WARMUP + measured_steps("fitted", rate, model)
    job = {"workload": model, "steps": steps, "warmup": WARMUP, **KNOWN}
    if way == "ring":
        return Cell("allreduce", 2, runtime="mpi", settings=("algorithm=ring",), **job)
    return Cell(way, 1, runtime="mpi" if way == "fmb" else "tensorflow", **job)


def crowded(folder: Path, seed: int, resume: bool = False) -> list[Path]:
    """Traces of fmb with one worker and two, without shaped links: how busy cores slow each other."""
    job = {"runtime": "mpi", "steps": 100, "warmup": WARMUP, "seed": seed, **KNOWN}
    cells = [(f"fmb-{model}-{n}", Cell("fmb", n, workload=model, **job), CROWDED) for model in MODELS for n in (1, 2)]
    chosen = interleaved(cells, seed)
    measure(chosen, folder, resume=resume)
    return [folder / f"{name}.parquet" for name, _ in chosen]


def compare(where: Where, real: list[Trace], profile: Cluster) -> Row:
    """One place, predicted and measured, on hosts like those of the profile."""
    cell = where.cell
    host = Host(count=where.hosts, contention=profile.hosts[0].contention)
    certain = {
        name: costs.model_copy(update={"error": 0.0}) for name, costs in profile.costs.items()
    }  # no intervals here
    cluster = profile.model_copy(update={"hosts": (host,), "costs": certain})
    alone = cluster.model_copy(update={"network": FREE, "library": None})
    alone_s = predict(cell, alone, replications=2).step_s.mean()
    predicted = predict(cell, cluster, REPLICATIONS)
    measured = [of_trace(trace) for trace in real]
    return Row(cell, predicted, measured, float(1 - alone_s / Comparison(cell, predicted, measured).said()))


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


def report(rows: dict[Where, Row], out: Path) -> None:
    """The tables on stdout, the same as CSV, and a figure."""
    from rich.console import Console

    console = Console(highlight=False, width=130)
    for rate in RATES:
        console.print(_table(rate, {where: row for where, row in rows.items() if where.rate == rate}))
    title = f"Mean absolute error of a step (places within {TARGET:.0%})"
    console.print(_errors(rows, title))
    shaped = {where: row for where, row in rows.items() if row.shaped}
    console.print(_errors(shaped, f"{title} where the network takes {DOMINATES:.0%} or more of the predicted step"))
    pairs = winners(rows)
    console.print(
        f"Allreduce or server: {sum(right for *_, right in pairs)} of {len(pairs)} pairs that differ, ranked right"
    )
    for one, other, right in pairs:
        if not right:
            console.print(f"  wrong: {one.rate}, {one.hosts} hosts, {one.model}: {one.way} or {other.way}")
    _write(rows, out / "testbed.csv")
    figure(rows, out / "testbed.png")
    console.print(f"Tables, traces, figure: {out}")


def _said(rows: list[Row]) -> str:
    """Mean absolute error, and how many are within the target."""
    if not rows:
        return "-"
    errors = np.abs([row.error() for row in rows])
    return f"{errors.mean():.1%} ({np.sum(errors <= TARGET)} of {len(errors)})"


def _errors(rows: dict[Where, Row], title: str):
    """By way and rate: the mean absolute error of the step, and of all the floor."""
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None, header_style="bold")
    for heading in ("way", *RATES, "all"):
        table.add_column(heading, justify="left" if heading == "way" else "right")
    for way in (*WAYS, "all"):
        chosen = [[r for w, r in rows.items() if way in (w.way, "all") and w.rate == rate] for rate in RATES]
        table.add_row(way, *map(_said, [*chosen, [row for some in chosen for row in some]]))
    floors = [np.mean([row.floor for where, row in rows.items() if where.rate == rate]) for rate in RATES]
    table.add_row("repeats differ by", *(f"{floor:.1%}         " for floor in floors))
    return table


def _table(rate: str, rows: dict[Where, Row]):
    from rich.table import Table

    table = Table(title=f"Links of {rate}: mean step, ms", box=None, header_style="bold")
    for heading in (
        "model",
        "hosts",
        "way",
        "network",
        "predicted",
        "measured",
        "error",
        "floor",
        "samples/s",
        "measured",
    ):
        table.add_column(heading, justify="left" if heading in ("model", "way") else "right")
    for where, row in sorted(rows.items(), key=lambda item: (item[0].model, item[0].hosts)):
        numbers = (f"{row.said() * 1e3:.1f}", f"{row.real() * 1e3:.1f}", f"{row.error():+.1%}")
        speeds = (f"{row.said('throughput'):.0f}", f"{row.real('throughput'):.0f}")
        table.add_row(
            where.model, str(where.hosts), where.way, f"{row.network:.0%}", *numbers, f"{row.floor:.1%}", *speeds
        )
    return table


def _write(rows: dict[Where, Row], path: Path) -> None:
    text = io.StringIO()
    lines = csv.writer(text)
    lines.writerow([*Where._fields, "predicted_step_s", *(f"measured_step_s_{i}" for i in range(REPEATS))])
    for where, row in rows.items():
        lines.writerow([*where, row.said(), *(o.step_s.mean() for o in row.measured)])
    write_whole(path, lambda file: file.write_text(text.getvalue()))


def figure(rows: dict[Where, Row], path: Path) -> None:
    """Step times of every way, a panel for each rate and model."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(11, 6), layout="constrained")
    axes = drawing.subplots(len(MODELS), len(RATES), sharex=True)
    for (line, model), (column, rate) in product(enumerate(MODELS), enumerate(RATES)):
        axis = axes[line][column]
        for index, hosts in enumerate(HOSTS):
            at = np.arange(len(WAYS)) + (index - 0.5) * 0.3
            here = [rows[Where(rate, hosts, model, way)] for way in WAYS]
            real_ms = [[o.step_s.mean() * 1e3 for o in row.measured] for row in here]
            axis.plot(at, real_ms, f"C{index}o", mfc="none")
            axis.plot(at, [row.said() * 1e3 for row in here], f"C{index}_", ms=14, mew=2)
        axis.set(title=f"{model}, {rate}", ylim=(0, None))
        axis.set_xticks(range(len(WAYS)), list(WAYS), rotation=35, ha="right", fontsize=8)
    drawing.supylabel("step, ms: circles measured, bars predicted; blue 3 hosts, orange 4")
    write_whole(path, lambda temporary: drawing.savefig(temporary, dpi=150))
