"""The jobs in our own worlds: that of fmb asked as `sim.run` asks it, the others as texts."""

from __future__ import annotations

import numpy as np

from experiments.engines.job import COMPUTE_S, CV, UPDATE_S, Job
from sim import protocols
from sim.job.scenario import Scenario
from sim.language import event as event_world
from sim.language import job as language
from sim.language.engine import job as compiled
from sim.language.text import Text
from sim.laws import LogNormal
from sim.model.costs import Costs, Line
from sim.model.workload import Variable, Workload
from sim.platform.cluster import Cluster, Host, Link
from sim.simulation import simulate
from sim.texts.d_psgd import DecentralisedSgd
from sim.texts.ddp import Ddp
from sim.texts.local_sgd import LocalSgd

NOISE = LogNormal(cv=CV)


def scenario(job: Job) -> Scenario:
    """The job as a scenario: messages take their ports for a time and have no latency; no other work than the job's takes time."""
    costs = Costs(compute=Line(base_s=COMPUTE_S), update=Line(base_s=UPDATE_S), noise=NOISE)
    workload = Workload(name="job", variables=(Variable(name="kernel", shape=(1,)),), costs=costs)
    link = Link(latency_s=0.0, overhead_s=0.0, gap_s=job.port_s, bandwidth_bytes_per_s=float("inf"))
    cluster = Cluster(hosts=(Host(count=job.workers + 1),), network=link)
    about: dict = {"workers": job.workers, "steps": job.steps, "warmup": 0, "seed": job.seed, "cluster": cluster}
    return Scenario(protocols.make("fmb"), workload, **about)


ITEMS = 1000  # of a part


def of_ranks(job: Job) -> tuple[language.Job, Text]:
    """A job of equal ranks, and its text."""
    texts = {"ddp": Ddp(bucket_mb=0.0), "local-sgd": LocalSgd(), "d-psgd": DecentralisedSgd(drawn=True)}
    layers = (language.Layer(ITEMS * job.workers, COMPUTE_S / 6, COMPUTE_S / 3),) * 2
    bandwidth = 4 * ITEMS / job.port_s
    made = language.Job(job.workers, layers, job.steps, seed=job.seed, bandwidth=bandwidth, latency_s=0.0)
    return made, texts[job.text]


def event(job: Job) -> list[float]:
    """Seconds of each step, in the event world."""
    return _step_s(job, "event", event_world.run)


def engine(job: Job) -> list[float]:
    """Seconds of each step, by the compiled engine, lowering included.

    Raises:
        WrongSetting: it is not compiled here.
    """
    return _step_s(job, "engine", compiled.run)


def _step_s(job: Job, world: str, run) -> list[float]:
    if job.text == "fmb":
        return simulate(scenario(job), world, 1).outcome.step_s.ravel().tolist()
    return np.diff(run(*of_ranks(job)).ends_s, prepend=0.0).tolist()
