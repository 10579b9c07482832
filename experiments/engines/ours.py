"""The job in our own worlds, asked as `sim.run` asks them."""

from __future__ import annotations

from experiments.engines.job import COMPUTE_S, CV, UPDATE_S, Job
from sim import protocols
from sim.job.scenario import Scenario
from sim.laws import LogNormal
from sim.model.costs import Costs, Line
from sim.model.workload import Variable, Workload
from sim.platform.cluster import Cluster, Host, Link
from sim.simulation import simulate

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
    return simulate(scenario(job), "event", 1).outcome.step_s.ravel().tolist()


def engine(job: Job) -> list[float]:
    """Seconds of each step, by the compiled engine.

    Raises:
        WrongSetting: it is not compiled here.
    """
    return simulate(scenario(job), "engine", 1).outcome.step_s.ravel().tolist()
