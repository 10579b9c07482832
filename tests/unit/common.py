"""Drawn jobs of the common kind: a port and a core for each rank, induced sleeps."""

import random

from sim import protocols
from sim.job.scenario import Scenario
from sim.laws import Exponential, LogNormal
from sim.model.costs import Costs, Line
from sim.model.workload import Variable, Workload
from sim.platform.cluster import Cluster, Host, Link


def common(number: int, said: str) -> Scenario:
    """A job of the common kind by its number, of a protocol and its settings: a port and a core for each rank, induced sleeps."""
    rng, (name, *settings) = random.Random(number), said.split()
    workers, sizes = rng.randrange(2, 10), [rng.randrange(1, 300_000) for _ in range(rng.randrange(1, 7))]
    sizes[-1] += -(sum(sizes) + 1) % 2520  # with an item more, parts are equal among any number of workers
    sample_s = 10 ** rng.uniform(-4, -3)
    costs = Costs(
        compute=Line(slope_s=sample_s),
        partition=Line(slope_s=sample_s),
        input=Line(base_s=rng.choice([0.0, 1e-3 if name != "amb" else 0.0])),  # of AMB whatever is computed
        pack=Line(slope_s=rng.choice([0.0, 2.5e-10 if name != "amb" else 0.0])),
        take_up=Line(slope_s=rng.choice([0.0, 2.5e-10 if name != "amb" else 0.0])),
        reduce=Line(slope_s=rng.choice([0.0, 2.5e-10])),
        update=Line(base_s=1e-3, slope_s=rng.choice([0.0, 5e-10])),
        noise=LogNormal(cv=rng.choice([0.0, 0.2])),
    )
    link = Link(
        latency_s=10 ** rng.uniform(-6, -3),
        overhead_s=rng.choice([0.0, 1e-5]),
        gap_s=rng.choice([0.0, 1e-6]),
        bandwidth_bytes_per_s=10 ** rng.uniform(7, 10),
    )
    protocol = protocols.make(name, settings)
    ranks = workers + (0 if protocol.masterless else 1)
    hosts = [Host(name=f"h{k}", speed=rng.uniform(0.5, 1.0)) for k in range(ranks)]
    variables = [Variable(name=f"w{k}", shape=(size,)) for k, size in enumerate(sizes)]
    return Scenario(
        protocol,
        Workload(name="drawn", variables=variables, costs=costs),
        workers,
        steps=8,
        warmup=rng.choice([0, 2]),
        batch=32,
        cluster=Cluster(hosts=hosts, network=link),
        stragglers=Exponential(mean=rng.choice([0.001, 0.02])),
        seed=number,
    )
