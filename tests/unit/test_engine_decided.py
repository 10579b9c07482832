"""Horovod's ranks pass over what they do after a decision: the event world's digits, where messages come between too."""

from __future__ import annotations

import math
import sys
from dataclasses import replace

import pytest
from engines import assert_alike

from sim import protocols, stragglers
from sim.job.scenario import Scenario
from sim.model import workload
from sim.platform.cluster import Cluster, Host, Link

SETTINGS = (
    "algorithm=ring",
    "algorithm=halving-doubling",
    "algorithm=tree",
    "algorithm=auto by_name=true",
    "fusion_bytes=1000 cycle_s=0",
)
FAST = Link(latency_s=2e-5, overhead_s=5e-6, bandwidth_bytes_per_s=1.25e9)


@pytest.fixture(autouse=True)
def nothing_noted(compiled):
    sys.modules["sim.engine.job"].noted._kept.clear()


def job(settings: str, workers: int = 5, network: Link = FAST, slots: int = 1, **about) -> Scenario:
    """Workers that sleep at random, and hosts of different speeds."""
    hosts = tuple(Host(name=f"h{i}", speed=1 - i / 37, slots=slots, cores=4) for i in range(workers))
    said: dict = {
        "steps": 4,
        "warmup": 1,
        "stragglers": stragglers.read("niagara*0.01"),
        "cluster": Cluster(hosts=hosts, network=network),
    }
    return Scenario(protocols.make("horovod", settings.split()), workload.read("mlp"), workers, **(said | about))


def ran(replications, scenario: Scenario, number: int = 0):
    """A replication's state after its run."""
    done, _ = replications(scenario)._ended(number, math.inf, sys.modules["sim.engine.job"].NOTHING)
    return done.state


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("workers", [1, 2, 7])
def test_sums_that_were_noted_are_as_in_the_event_world(compiled, settings, workers):
    scenario = job(settings, workers)
    for number in range(2):
        assert_alike(compiled.Replications, scenario, number)


@pytest.mark.parametrize("settings", ["algorithm=ring", "algorithm=halving-doubling", "algorithm=tree"])
def test_a_later_run_sends_no_message(compiled, settings):
    scenario = job(settings)
    assert ran(compiled.Replications, scenario).record["messages"] > 0
    assert ran(compiled.Replications, replace(scenario, seed=1)).record["messages"] == 0


def test_another_network_is_noted_anew(compiled):
    ran(compiled.Replications, job("algorithm=ring"))
    slower = job("algorithm=ring", network=FAST.model_copy(update={"latency_s": 1e-4}))
    assert ran(compiled.Replications, slower).record["messages"] > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "scenario",
    [
        job("algorithm=ring", network=FAST.model_copy(update={"sustained_bytes_per_s": 5e7})),
        job("algorithm=ring", network=FAST.model_copy(update={"store_and_forward": True})),
        job("algorithm=ring", slots=2),
    ],
    ids=["credit", "whole messages", "a port of several ranks"],
)
def test_elsewhere_sums_are_played_each_time(compiled, scenario):
    for number in range(2):
        assert_alike(compiled.Replications, scenario, number)
        assert ran(compiled.Replications, scenario, number).record["messages"] > 0


def between(monkeypatch) -> list[float]:
    """Times of messages that come between those that are passed over."""
    cycles, found = sys.modules["sim.engine.kernel.cycles"], []
    before = cycles.pass_between

    def pass_between(S, rank, r, reach_s, size_bytes):
        found.append(reach_s)
        return before(S, rank, r, reach_s, size_bytes)

    monkeypatch.setattr(cycles, "pass_between", pass_between)
    return found


SMALL = job("algorithm=ring cycle_s=0 order=uniform", 7, batch=4)


def test_a_message_that_comes_between_is_as_in_the_event_world(as_python, monkeypatch):
    found = between(monkeypatch)
    for number in range(2):
        assert_alike(as_python.Replications, SMALL, number)
    assert found


def test_a_run_in_which_messages_clash_is_begun_anew(as_python, monkeypatch):
    """As where none of the messages before is known."""
    monkeypatch.setattr(sys.modules["sim.engine.kernel.decided"], "ARRIVALS", 1)
    replications, found = as_python.Replications(SMALL), between(monkeypatch)
    made, begun = replications._job, []

    def begin(number, by_events, asked):
        begun.append(by_events)
        return made(number, by_events, asked)

    monkeypatch.setattr(replications, "_job", begin)
    assert_alike(lambda _: replications, SMALL)
    assert found
    assert begun[:2] == [False, True]
    assert all(begun[2:])


@pytest.mark.parametrize(
    ("settings", "latency_s", "bandwidth"), [("algorithm=ring", 1e-6, 1e6), ("algorithm=halving-doubling", 1e-4, 1e8)]
)
def test_sums_for_which_there_is_no_room_are_as_in_the_event_world(
    compiled, monkeypatch, settings, latency_s, bandwidth
):
    """They are played each time, and what a rank asks next may come before their last message."""
    monkeypatch.setattr(sys.modules["sim.engine.job"].noted, "DECISIONS", 0)
    link = Link(latency_s=latency_s, overhead_s=0.0, gap_s=0.0, bandwidth_bytes_per_s=bandwidth)
    for seed in range(6):
        assert_alike(
            compiled.Replications, job(f"{settings} cycle_s=0 order=uniform", 5, link, batch=4, steps=3, seed=seed)
        )
