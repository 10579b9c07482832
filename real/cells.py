"""Cells: jobs that are run for real, many in one launch, and simulated; and the cells that a profile is learned from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sim import options
from sim.base.errors import WrongSetting

if TYPE_CHECKING:
    from sim.job.scenario import Scenario
    from sim.platform.cluster import Cluster


@dataclass(frozen=True)
class Cell:
    """One job.

    Args:
        time_limit_s: of amb; None for fmb.
        steps: measured, after `warmup`.
        settings: of the protocol, name=value, besides those above.
        runtime: mpi or tensorflow; the protocol's own if None.
        called: in tables; by its protocol if None.
        data: digits, synthetic, words, or files; data that fit the workload if None.
        test_size, evaluate_every: samples of an evaluation, 0 for none, and steps between two.
        keeps_parameters: those that it ends with are written beside its trace.
        engine, device: as of real.run; its defaults if None.
    """

    protocol: str
    workers: int
    batch: int
    time_limit_s: float | None = None
    stragglers: str = "none"
    steps: int = 60
    warmup: int = 5
    seed: int = 0
    partitions: int = 16
    workload: str = "toy_fc"
    servers: int = 1
    runtime: str | None = None
    data: str | None = "digits"
    optimiser: str = "rms"
    settings: tuple[str, ...] = ()
    called: str | None = None
    test_size: int = 0
    evaluate_every: int = 10
    keeps_parameters: bool = False
    engine: str | None = None
    device: str | None = None

    @property
    def label(self) -> str:
        """In a table."""
        limit = "" if self.time_limit_s is None else f" {self.time_limit_s * 1e3:g} ms"
        servers = f" {self.servers}s" if self.servers > 1 else ""
        law = Path(self.stragglers).stem if Path(self.stragglers).suffix == ".toml" else self.stragglers
        model = "" if self.workload == "toy_fc" else f" {self.workload}"
        return f"{self.called or self.protocol}{limit},{model} {self.workers}w{servers} x {self.batch}, {law}"

    def words(self) -> list[str]:
        """The job as options of sim.run and of real.run."""
        settings = (
            [] if self.time_limit_s is None else [f"time_limit_s={self.time_limit_s}", f"partitions={self.partitions}"]
        )
        names: list[str] = [
            "protocol",
            "workers",
            "batch",
            "stragglers",
            "steps",
            "warmup",
            "seed",
            "workload",
            "servers",
        ]
        names += ["test_size", "evaluate_every"]
        words = [word for name in names for word in (f"--{name.replace('_', '-')}", str(getattr(self, name)))]
        return words + [word for setting in [*settings, *self.settings] for word in ("--set", setting)]

    def real_words(self) -> list[str]:
        """The options of real.run that the simulator does not need."""
        given = {"--data": self.data, "--optimiser": self.optimiser, "--runtime": self.runtime}
        given |= {"--engine": self.engine, "--device": self.device}
        return [*self.words(), *(word for name, value in given.items() if value is not None for word in (name, value))]

    def scenario(self, cluster: Cluster, sleeps_of: int | None = 0) -> Scenario:
        """The scenario to simulate: this job on `cluster`, every replication with the real run's sleeps."""
        described = options.scenario(options.job_options().parse_args(self.words()))
        return replace(described, cluster=cluster, sleeps_of=sleeps_of)


SLEEPS = "niagara*0.03"  # of some runs that are fitted: none in about half of the steps, else up to 0.2 s


def fitted_cells(
    steps: int,
    seed: int,
    batches: tuple[int, int] = (512, 1024),
    workers: tuple[int, ...] = (1, 2),
    anytime: bool = True,
    **job,
) -> list[Cell]:
    """The cells that a profile is learned from: 1 and 2 workers, two batches, few sleeps.

    amb runs with one partition a step and with all of them, which separates the cost of entering the loop from that of a turn. fmb
    also runs with a minibatch as small as a partition, because amb-dg computes such ones. Its runs with sleeps give the extra time of
    idle ranks.

    Args:
        workers: each of these numbers of them.
        anytime: with runs of amb, for protocols that cut their minibatch into partitions.
        job: further fields of the cells, as the workload.
    """
    small = batches[1] // job.get("partitions", Cell.partitions)
    ways: list[tuple[str, float | None]] = [("fmb", None), *([("amb", 0.0), ("amb", 3600.0)] if anytime else [])]
    kinds = [(batch, *way) for batch in batches for way in ways] + [(small, "fmb", None)]
    cells = [
        Cell(protocol, count, batch, limit_s, steps=steps, seed=seed, **job)
        for count in workers
        for batch, protocol, limit_s in kinds
    ]
    slept = {"batch": batches[0], "stragglers": SLEEPS, "steps": steps, "seed": seed, **job}
    return cells + [Cell("fmb", count, **slept) for count in workers]


def interleaved(cells: list[tuple[str, Cell, int]], seed: int) -> list[tuple[str, Cell]]:
    """Each (name, cell, times) as often as it says, (name-repeat, cell): once all in random order, then all again."""
    from numpy.random import default_rng

    rng, runs = default_rng(seed), []
    for repeat in range(max(times for *_, times in cells)):
        batch = [(f"{name}-{repeat}", cell) for name, cell, times in cells if repeat < times]
        runs += [batch[i] for i in rng.permutation(len(batch))]
    return runs


def refusal(cell: Cell) -> WrongSetting | None:
    """Why real.run would not run a cell, if it would not."""
    from real.run import parse
    from real.runtimes import runtime_of

    try:
        runtime_of(parse(cell.real_words()))
    except WrongSetting as refused:
        return refused
    return None
