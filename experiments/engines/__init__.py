"""Engines that simulate one and the same job (`job.py`), for `experiments.speed`: ours, and others beside them."""

from __future__ import annotations

from typing import NamedTuple


class Engine(NamedTuple):
    """A way to simulate a job.

    Args:
        title: its name in tables.
        entry: module:function of this package that takes a job and returns the seconds of its steps; empty: a program of its own.
        worker_steps: of one measurement, which then takes about half a second.
    """

    title: str
    entry: str
    worker_steps: int

    def steps(self, workers: int) -> int:
        """How many steps are measured with so many workers."""
        return max(LEAST_STEPS, min(MOST_STEPS, self.worker_steps // workers))


LEAST_STEPS, MOST_STEPS = 2, 10_000
REFERENCE = "simpy"  # with which all others are compared
ENGINES = {
    REFERENCE: Engine("SimPy, as documented", "plain_simpy:run", 50_000),
    "event": Engine("event world", "ours:event", 50_000),
    "engine": Engine("engine", "ours:engine", 500_000),
    "simgrid": Engine("SimGrid, C++", "", 100_000),
    "simgrid-semaphores": Engine("SimGrid, C++, no network", "", 200_000),
}


class Further(NamedTuple):
    """Another job, by the event world or the engine alone.

    Args:
        title: its name in tables.
        entry: module:function of this package, as an engine's.
        workers: its ranks, without servers.
        steps: of each run.
        runs: replications that are simulated at once.
        once: measured in the first round alone, because it takes a minute.
        beside: the same job by the event world, with which its speed is compared.
    """

    title: str
    entry: str
    workers: int
    steps: int
    runs: int = 1
    once: bool = False
    beside: str = ""


FURTHER = {
    "horovod": Further("Horovod, ResNet-50, event world", "protocols:horovod", 64, 2),
    "horovod-engine": Further("Horovod, ResNet-50, engine", "protocols:horovod_engine", 64, 2, beside="horovod"),
    "horovod-runs": Further("Horovod, ResNet-50, engine", "protocols:horovod_tuned", 64, 100, runs=20),
    "horovod-512": Further("Horovod, ResNet-50, engine", "protocols:horovod_tuned", 512, 100),
    "horovod-10000": Further("Horovod, ResNet-50, engine", "protocols:horovod_tuned", 10_000, 10, once=True),
    "ring": Further("ring allreduce, event world", "protocols:ring", 64, 100),
    "ring-engine": Further("ring allreduce, engine", "protocols:ring_engine", 64, 100, beside="ring"),
    "v100": Further("allreduce, V100 8 a host, event world", "protocols:v100", 64, 10),
    "v100-engine": Further("allreduce, V100 8 a host, engine", "protocols:v100_engine", 64, 10, beside="v100"),
    "ps-async": Further("ps-async, event world", "protocols:ps_async", 1_000, 20),
    "ps-async-engine": Further("ps-async, engine", "protocols:ps_async_engine", 1_000, 20, beside="ps-async"),
    "ps-async-long": Further("ps-async, long, engine", "protocols:ps_async_engine", 1_000, 500),
    "ps-async-runs": Further(
        "ps-async, engine, on all cores", "protocols:ps_async_engine", 1_000, 20, runs=8, beside="ps-async"
    ),
    "kbatch": Further("kbatch-async, event world", "protocols:kbatch", 100, 20),
    "kbatch-engine": Further("kbatch-async, engine", "protocols:kbatch_engine", 100, 20, beside="kbatch"),
    "kbatch-1000": Further("kbatch-async, engine", "protocols:kbatch_engine", 1_000, 100),
    "hybrid": Further("hybrid, LM, event world", "protocols:hybrid", 16, 10),
    "hybrid-engine": Further("hybrid, LM, engine", "protocols:hybrid_engine", 16, 10, beside="hybrid"),
    "layers": Further("ps-layers, ResNet-50, event world", "protocols:layers", 16, 5),
    "layers-engine": Further("ps-layers, ResNet-50, engine", "protocols:layers_engine", 16, 5, beside="layers"),
    "gossip": Further("a text of one's own, event world", "protocols:gossip", 256, 10),
    "gossip-engine": Further("a text of one's own, engine", "protocols:gossip_engine", 256, 10, beside="gossip"),
    "amb": Further("amb with sleeps, engine", "protocols:amb_engine", 1_000, 100, runs=20),
    "amb-100000": Further("amb with sleeps, engine", "protocols:amb_engine", 100_000, 1_000, once=True),
}


def entry_of(name: str) -> str:
    """module:function of an engine, or of one of the other jobs."""
    return ENGINES[name].entry if name in ENGINES else FURTHER[name].entry


def title_of(name: str) -> str:
    """The title of an engine, or of one of the other jobs, in tables."""
    return ENGINES[name].title if name in ENGINES else FURTHER[name].title
