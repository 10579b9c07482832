"""The runs of the experiment testbed: networks, models and kinds of runs, and the jobs that they are predicted from."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

from real.cells import Cell, interleaved
from real.launching import testbed
from sim.model import workload

RATES = ("100 Mbit/s", "400 Mbit/s", "1 Gbit/s")
HOSTS = (3, 4)
MODELS = ("mlp", "toy_fc")  # 0.3 MB and 4 MB
WAYS = {  # protocol, its settings, its runtime
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
FITS_OF_EACH, REPEATS = 4, 2  # runs of a kind
CARRIED_S = 1.0  # for which a run's models keep a port busy at least: in short runs one lost message is a large share
DOMINATES = 0.8  # of a step's time, which the network takes


class Where(NamedTuple):
    """One place in the tables."""

    rate: str
    hosts: int
    model: str
    way: str

    @property
    def profile(self) -> str:
        """The profile that it is predicted with."""
        protocol, _, runtime = WAYS[self.way]
        over_mpi = "ring" if protocol == "allreduce" else "fmb"
        return over_mpi if runtime == "mpi" else protocol

    @property
    def cell(self) -> Cell:
        """The job: allreduce works on every host, the others leave one to the master or server."""
        protocol, settings, runtime = WAYS[self.way]
        workers = self.hosts if protocol == "allreduce" else self.hosts - 1
        named: dict = {"workload": self.model, "runtime": runtime, "settings": settings} | KNOWN
        kind, warmup = ("asynchronous", APART) if protocol == "ps-async" else ("predicted", WARMUP)
        return Cell(
            protocol, workers, steps=warmup + measured_steps(kind, self.rate, self.model), warmup=warmup, **named
        )


def places(rate: str) -> list[Where]:
    """The predicted jobs for one rate."""
    return [Where(rate, *rest) for rest in product(HOSTS, MODELS, WAYS)]


def measured_steps(kind: str, rate: str, model: str) -> int:
    """After the warm-up: as many as are usual for such a run, or as carry the model there and back for long enough."""
    carried_s = 2 * workload.read(model).message_bytes / testbed.rate(rate)
    return max(STEPS[kind], round(CARRIED_S / carried_s))


def fit(rate: str, way: str, model: str) -> Cell:
    """The job that a way is fitted on: of one worker and its master or server, or of two in a ring."""
    steps = WARMUP + measured_steps("fitted", rate, model)
    job: dict = {"workload": model, "steps": steps, "warmup": WARMUP, **KNOWN}
    if way == "ring":
        return Cell("allreduce", 2, runtime="mpi", settings=("algorithm=ring",), **job)
    return Cell(way, 1, runtime="mpi" if way == "fmb" else "tensorflow", **job)


def runs(rate: str, seed: int) -> list[tuple[str, Cell]]:
    """All runs of one rate by name, once all in random order, then all again: those that are fitted meet the same moments."""
    each = range(FITS_OF_EACH // REPEATS)
    fits = [(f"fit-{way}-{model}-{k}", fit(rate, way, model)) for way in FITS for model in MODELS for k in each]
    predicted = [(f"predict-{index}", where.cell) for index, where in enumerate(places(rate))]
    return interleaved([(name, cell, REPEATS) for name, cell in fits + predicted], seed)
