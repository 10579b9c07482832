"""Workers alike as one: what one text says for all of them is what each of them says with its own."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from scenarios import assert_same_without_trace

from sim import protocols, stragglers
from sim.event import alike, world
from sim.event.machines.leading import served
from sim.event.shortcut import ShortCutFailed
from sim.job.scenario import Scenario
from sim.laws import LogNormal
from sim.model import workload
from sim.model.costs import Line
from sim.platform.cluster import Cluster, Host, Link
from sim.protocols.base import Protocol
from sim.verbs import gather
from sim.verbs.me import GRADIENT, PARAMETERS

WORKERS = 20
LINKS = {
    "fast": Link(),
    "slow": Link(latency_s=1e-3, overhead_s=1e-4, gap_s=1e-4, bandwidth_bytes_per_s=1e8),
    "busy processors": Link(latency_s=1e-6, overhead_s=5e-3, bandwidth_bytes_per_s=1e9),
}
STRAGGLERS = (
    "none",
    "lognormal(mean=50ms, cv=1.5)",
    "slow-ranks(rank=2, seconds=50ms)",
    "slow-ranks(rank=3, factor=2)",
)
JOBS = {"fmb": [], "amb": ["time_limit_s=0.3"]}


def scenario(protocol: Protocol, link: Link = LINKS["fast"], **about) -> Scenario:
    hosts = [Host(count=WORKERS, cores=2, slots=1), Host(name="slow", cores=2, slots=1, speed=0.7)]
    found = workload.read("mnist")
    noisy = {"noise": LogNormal(cv=0.3), "update_noise": LogNormal(cv=0.1), "input_noise": LogNormal(cv=0.5)}
    costs = found.costs.model_copy(
        update=noisy | {"run": LogNormal(cv=0.1), "input": Line(base_s=1e-3), "resume_s": 1e-3}
    )
    about = {"workers": WORKERS, "steps": 6, "warmup": 1, "seed": 3, "test_size": 100, "evaluate_every": 2} | about
    cluster = Cluster(name="two kinds", hosts=hosts, network=link)
    return Scenario(protocol, found.model_copy(update={"costs": costs}), cluster=cluster, **about)


@pytest.mark.parametrize("slowed", STRAGGLERS)
@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("job", JOBS)
def test_one_text_says_what_all_say(job, link, slowed):
    found = scenario(protocols.make(job, JOBS[job]), LINKS[link], stragglers=stragglers.read(slowed))
    assert alike.suits(found)
    assert_same_without_trace(found)


def test_who_is_not_alike():
    """Few workers, workers of a server, whoever shares a host, and a port that is no queue."""
    fmb = scenario(protocols.make("fmb"))
    assert alike.suits(fmb)
    two = fmb.cluster.model_copy(update={"hosts": (Host(count=WORKERS, cores=2),)})
    paced = fmb.cluster.model_copy(update={"network": Link(sustained_bytes_per_s=1e9)})
    assert not alike.suits(replace(fmb, workers=3))
    assert not alike.suits(replace(fmb, cluster=two))
    assert not alike.suits(replace(fmb, cluster=paced))
    assert not alike.suits(scenario(protocols.make("ps-sync"), test_size=0))


@dataclass(frozen=True)
class OneFirst(Protocol):
    """The master speaks to its first worker alone before it speaks to the others."""

    name = "one-first"

    def master(self, me):
        for _ in me.steps():
            yield from me.send(PARAMETERS, me.workers[0])
            yield from me.send(PARAMETERS, me.workers[1:])
            yield from gather(me, me.workers)
            yield from me.update()

    def worker(self, me):
        for _ in me.steps():
            yield from me.take_up((yield from me.receive(me.master)))
            yield from me.compute()
            yield from me.send(GRADIENT, me.master)


def test_a_text_that_treats_them_differently_is_run_by_each(monkeypatch):
    monkeypatch.setitem(protocols.PROTOCOLS, OneFirst.name, OneFirst)
    job = scenario(OneFirst(), test_size=0)
    with pytest.raises(ShortCutFailed):
        world.EventWorld(job, 0, want_trace=False).run()
    assert_same_without_trace(job)


def test_a_queue_serves_in_order():
    """Customers that find it busy wait; closed form: each begins when it comes or the one before has left."""
    assert served(np.array([0.0, 0.5, 5.0, 5.0]), 1.0, 2.0).tolist() == [1.0, 3.0, 5.0, 7.0]
