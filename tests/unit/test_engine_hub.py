"""Exchanges of rank 0 with all others without events: the event world's digits, where they hold and just outside."""

from __future__ import annotations

import random
import sys
from dataclasses import replace

import numpy as np
import pytest
from engines import assert_alike

from sim import protocols, stragglers
from sim.engine.kernel.layout import FINISHED
from sim.job.scenario import Scenario
from sim.laws.randomness import BLOCK
from sim.model import workload
from sim.model.costs import Line
from sim.platform.cluster import Cluster, Host, Link
from sim.platform.tcp import Tcp

OWN_PORTS = Link(latency_s=2e-4, overhead_s=3e-5, gap_s=1e-5, bandwidth_bytes_per_s=1e8)


def job(name: str = "fmb", network: Link = OWN_PORTS, slots: int = 1, workers: int = 5, **about) -> Scenario:
    """Workers that sleep at random, and hosts of different speeds."""
    hosts = tuple(Host(name=f"h{i}", speed=1 - i / 37, slots=slots, cores=4) for i in range(9 if workers < 9 else 1))
    hosts = hosts if workers < 9 else (hosts[0].model_copy(update={"count": workers + 1}),)
    law = stragglers.read("niagara*0.01")
    said: dict = {"steps": 3, "warmup": 1, "stragglers": law, "cluster": Cluster(hosts=hosts, network=network)}
    protocol, *settings = name.split()
    return Scenario(protocols.make(protocol, settings), workload.read("mlp"), workers, **(said | about))


def is_hub(replications, scenario: Scenario) -> bool:
    """Whether the engine takes rank 0 for a hub."""
    return replications(scenario)._template.shape.hub


@pytest.mark.parametrize("name", ["fmb", "amb"])
@pytest.mark.parametrize("about", [{}, {"workers": 1}, {"test_size": 100, "evaluate_every": 2}], ids=str)
def test_a_hub_is_as_in_the_event_world(compiled, name, about):
    scenario = job(name, **about)
    assert is_hub(compiled.Replications, scenario)
    assert_alike(compiled.Replications, scenario)


def test_messages_that_come_together_are_as_in_the_event_world(compiled):
    """Nobody is slower than others, and ports take no time."""
    link = Link(latency_s=1e-4, overhead_s=0.0, gap_s=0.0, bandwidth_bytes_per_s=float("inf"))
    scenario = job(network=link, workers=70, steps=2, stragglers=stragglers.read("none"))
    assert is_hub(compiled.Replications, scenario)
    assert_alike(compiled.Replications, scenario)


def test_many_messages_are_sorted(compiled):
    scenario = job(workers=80, steps=2)
    assert is_hub(compiled.Replications, scenario)
    assert_alike(compiled.Replications, scenario)


def test_a_hub_goes_on_after_a_pause(compiled, monkeypatch):
    monkeypatch.setattr(sys.modules["sim.engine.job"], "EVENTS", 3)
    assert_alike(compiled.Replications, job())


OUTSIDE = {
    "ranks share a port": job(slots=2),
    "whole messages alone go on": job(network=OWN_PORTS.model_copy(update={"store_and_forward": True})),
    "ports have a credit": job(network=OWN_PORTS.model_copy(update={"sustained_bytes_per_s": 5e7})),
    "windows": job(network=OWN_PORTS.model_copy(update={"tcp": Tcp()})),
    "some in order of arrival": job("kbatch-async"),
    "others besides": job("ps-sync"),
}


@pytest.mark.parametrize("scenario", OUTSIDE.values(), ids=OUTSIDE)
def test_what_is_none_goes_by_events(compiled, scenario):
    assert not is_hub(compiled.Replications, scenario)
    assert_alike(compiled.Replications, scenario)


AHEAD = (
    "ps-async",
    "ps-sync",
    "ps-ssp",
    "kbatch-async",
    "kbatch-async gradients=2",
    "amb-dg time_limit_s=0.02 window_s=0.005",
)
NOT_AHEAD = {
    "others send to a worker": job("ps-async", servers=2),
    "ranks share a port": job("ps-async", slots=2),
    "letters are delayed": job("kbatch-async delay_std_s=0.01"),
}


@pytest.mark.parametrize("name", AHEAD)
@pytest.mark.parametrize(
    "network",
    [OWN_PORTS, OUTSIDE["windows"].network, OUTSIDE["ports have a credit"].network],
    ids=["plain", "tcp", "credit"],
)
def test_workers_that_hear_from_one_rank_alone_are_as_in_the_event_world(compiled, name, network):
    scenario = job(name, network=network, steps=8)
    assert compiled.Replications(scenario)._template.shape.ahead
    assert_alike(compiled.Replications, scenario)


@pytest.mark.parametrize("scenario", NOT_AHEAD.values(), ids=NOT_AHEAD)
def test_other_workers_hear_by_events(compiled, scenario):
    assert not compiled.Replications(scenario)._template.shape.ahead
    assert_alike(compiled.Replications, scenario)


def test_what_comes_to_them_is_no_event(compiled):
    """Of four messages for a gradient the two that go to the server are events."""
    job_of = compiled.Job(compiled.Replications(job("ps-async", steps=20))._template, 0)
    assert job_of.run() == FINISHED
    numbers = job_of.state.record[0]
    assert numbers["events"] < 0.55 * numbers["messages"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fmb", "allreduce"])
def test_numbers_are_drawn_a_block_after_another(compiled, monkeypatch, name):
    """Where ranks are many; also where the steps of ranks differ."""
    monkeypatch.setattr(sys.modules["sim.engine.arrays.drawn"], "MOST_DRAWN", 1)
    assert_alike(compiled.Replications, job(name, workers=2, steps=BLOCK + 2))


@pytest.mark.parametrize("spread", ["even", "one late", "equal", "two heaps"])
def test_times_are_sorted(as_python, spread):
    sorting, state = sys.modules["sim.engine.kernel.sorting"], sys.modules["sim.engine.kernel.state"]
    rng = random.Random(spread)
    times = [1 + rng.random() for _ in range(200)]
    times = {
        "even": times,
        "one late": [*times, 1e9],
        "equal": [1.0] * 200,
        "two heaps": [*times, *(1e6 + x * 1e-9 for x in times)],
    }[spread]
    arrays = {"reach": np.array(times), "spare": np.zeros(len(times)), "place": np.zeros(sorting.DIGITS, np.int64)}
    held = state.State(state.Beginning(arrays, {}))
    sorting.sort(held.record[0], len(times))
    assert held.arrays["reach"]["value"].tolist() == sorted(times)


def test_a_gradient_of_several_costs_as_much(compiled):
    """Adding, handing over and updating take time at rank 0."""
    scenario = job()
    costs = scenario.workload.costs.model_copy(update={"reduce": Line(base_s=1e-3, slope_s=1e-9)})
    assert_alike(
        compiled.Replications, replace(scenario, workload=scenario.workload.model_copy(update={"costs": costs}))
    )
