"""The job in our own worlds, asked as `sim.run` asks them; and the time of drawing their random numbers alone."""

from __future__ import annotations

import numpy as np

from experiments.engines import ENGINES
from experiments.engines.job import COMPUTE_S, CV, UPDATE_S, Job
from sim import protocols
from sim.base.errors import RunFailed
from sim.job.scenario import Scenario
from sim.laws import LogNormal
from sim.model.costs import Costs, Line
from sim.model.workload import Variable, Workload
from sim.platform.cluster import Cluster, Host, Link
from sim.simulation import simulate
from sim.vector.draws import Rounds

NOISE = LogNormal(cv=CV)


def scenario(job: Job) -> Scenario:
    """The job as a scenario: messages take their ports for a time and have no latency; no other work than the job's takes time."""
    costs = Costs(compute=Line(base_s=COMPUTE_S), update=Line(base_s=UPDATE_S), noise=NOISE)
    workload = Workload(name="job", variables=(Variable(name="kernel", shape=(1,)),), costs=costs)
    link = Link(latency_s=0.0, overhead_s=0.0, gap_s=job.port_s, bandwidth_bytes_per_s=float("inf"))
    cluster = Cluster(hosts=(Host(count=job.workers + 1),), network=link)
    about: dict = {"workers": job.workers, "steps": job.steps, "warmup": 0, "seed": job.seed, "cluster": cluster}
    return Scenario(protocols.make("fmb"), workload, **about)


def event(job: Job) -> list[float]:
    """Seconds of each step, in the event world."""
    return _simulated(job, "event", 1)


def engine(job: Job) -> list[float]:
    """Seconds of each step, by the compiled engine, which simulates replications after the first."""
    return by_engine(scenario(job), 1)


def by_engine(scenario: Scenario, replications: int) -> list[float]:
    """Seconds of each step of some replications, on all cores.

    Raises:
        RunFailed: numba does not compile here.
    """
    from sim.engine import choose, install
    from sim.engine.replications import Replications

    if not install.keep():
        raise RunFailed("the engine is not compiled")
    found = list(choose.engine.outcomes(Replications(scenario), range(replications)))
    if None in found:
        raise RunFailed("the engine leaves the job to the event world")
    return np.concatenate([one.step_s.ravel() for one in found if one]).tolist()


def vector(job: Job) -> list[float]:
    """Seconds of each step, in the vector world."""
    return _simulated(job, "vector", 1)


def vector_runs(job: Job) -> list[float]:
    """Seconds of each step of several runs at once, in the vector world."""
    return _simulated(job, "vector", ENGINES["vector-20"].runs)


def _simulated(job: Job, world: str, replications: int) -> list[float]:
    return simulate(scenario(job), world, replications).outcome.step_s.ravel().tolist()


def draws(job: Job) -> list[float]:
    """Draw what the vector world draws; there are no steps."""
    rounds = Rounds(NOISE, job.seed, [0], range(1, job.workers + 1), "noise", job.steps)
    for step in range(job.steps):
        _ = rounds[step]
    return []
