"""Protocols in the language take as long as those of sim.protocols on jobs of the common kind: a port and a core each, induced sleeps."""

import random

import numpy as np
import pytest

from sim import event, protocols
from sim.job.scenario import Scenario
from sim.language.event import run
from sim.language.event.valueless import Valueless
from sim.language.job import Job, Layer
from sim.laws import Exponential, LogNormal
from sim.model.costs import Costs, Line
from sim.model.sizes import HEADER_BYTES
from sim.model.workload import Variable, Workload
from sim.platform.cluster import Cluster, Host, Link
from sim.texts import TEXTS

EXACT_S = 1e-9


def drawn(number: int, said: str) -> Scenario:
    """A job by its number, of a protocol and its settings."""
    rng, (name, *settings) = random.Random(number), said.split()
    workers, sizes = rng.randrange(2, 10), [rng.randrange(1, 300_000) for _ in range(rng.randrange(1, 7))]
    sizes[-1] += -(sum(sizes) + 1) % 2520  # with an item more, parts are equal among any number of workers
    sample_s = 10 ** rng.uniform(-4, -3)
    costs = Costs(
        compute=Line(slope_s=sample_s),
        partition=Line(slope_s=sample_s),
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


class OfScenario:
    """The random numbers of a scenario."""

    def __init__(self, scenario: Scenario):
        self.sleeps, self.noises = scenario.draws.sleeps, scenario.draws.noise


def in_language(scenario: Scenario, header_items: int = 0, **more) -> Job:
    """The same job.

    Args:
        header_items: that travel with the gradient as an item more.
    """
    costs, link, batch = scenario.costs, scenario.network, scenario.batch
    sizes = [variable.size for variable in scenario.workload.variables]
    sizes[-1] += header_items
    compute_s, total = costs.compute(batch), sum(sizes)
    layers = tuple(Layer(size, compute_s / 3 * size / total, compute_s * 2 / 3 * size / total) for size in sizes)
    return Job(
        scenario.ranks,
        layers,
        scenario.rounds,
        scenario.warmup,
        batch,
        speeds=tuple(scenario.speeds),
        latency_s=link.latency_s,
        overhead_s=link.overhead_s,
        gap_s=link.gap_s,
        bandwidth=link.bandwidth_bytes_per_s,
        mix_base_s=more.get("header_bytes", 0) * costs.reduce.slope_s,
        mix_s=4 * costs.reduce.slope_s,
        update_base_s=costs.update(HEADER_BYTES - 4 * header_items),
        update_s=4 * costs.update.slope_s,
        laws=OfScenario(scenario),
        seed=scenario.seed,
        **more,
    )


class Updates(Valueless):
    """When rank 0 has made its updates: a step of sim.protocols is over when it has, and not when the last rank has."""

    def __init__(self):
        self.ends_s = []

    def update(self, me, command):
        if me.rank == 0:
            self.ends_s.append(me.now())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("said", "name", "settings", "of_job"),
    [
        ("fmb", "fmb", {}, {"header_bytes": HEADER_BYTES}),
        ("amb time_limit_s=0.03", "amb", {"time_limit_s": 0.03}, {"header_bytes": HEADER_BYTES}),
        ("allreduce algorithm=ring", "ddp", {"bucket_mb": float("inf")}, {"header_items": 1}),
    ],
)
def test_steps_and_samples_are_those_of_sim_protocols(said, name, settings, of_job):
    worst = 0.0
    for number in range(50):
        scenario = drawn(number, said)
        expected, _ = event.run(scenario, want_trace=False)
        updates = Updates()
        found = run(in_language(scenario, **of_job), TEXTS[name](**settings), updates)
        step_s = np.diff(updates.ends_s, prepend=0.0)[scenario.warmup :]
        off_s = np.abs(step_s - expected.step_s[0]).max()
        if name == "ddp" and scenario.costs.reduce.slope_s:  # a rank adds what has come while its own piece is leaving
            assert off_s < 0.01 * step_s.mean()
        else:
            worst = max(worst, off_s)
        assert found.samples[scenario.warmup :] == pytest.approx(expected.samples[0])
    assert worst < EXACT_S
