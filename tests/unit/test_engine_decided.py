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


SMALL = job("algorithm=ring cycle_s=0 order=uniform", 7, batch=4, steps=2)


def test_a_message_that_comes_between_is_as_in_the_event_world(as_python, monkeypatch):
    found = between(monkeypatch)
    for number in range(2):
        assert_alike(as_python.Replications, SMALL, number)
    assert found


def test_a_run_in_which_messages_clash_is_begun_anew(as_python, monkeypatch):
    """As where none of the messages before is known, and no ring is played again."""
    monkeypatch.setattr(sys.modules["sim.engine.kernel.decided"], "ARRIVALS", 1)
    scenario = job("algorithm=recursive-doubling cycle_s=0 order=uniform", 7, batch=4, steps=2)
    replications, found = as_python.Replications(scenario), between(monkeypatch)
    made, begun = replications._job, []

    def begin(number, by_events, asked):
        begun.append(by_events)
        return made(number, by_events, asked)

    monkeypatch.setattr(replications, "_job", begin)
    assert_alike(lambda _: replications, scenario)
    assert found
    assert begun[:2] == [False, True]
    assert all(begun[2:])


def told(monkeypatch, name: str) -> list:
    """What a function of cycles has returned."""
    cycles, found = sys.modules["sim.engine.kernel.cycles"], []
    before = getattr(cycles, name)

    def call(*given):
        found.append(before(*given))
        return found[-1]

    monkeypatch.setattr(cycles, name, call)
    return found


@pytest.fixture
def no_room(monkeypatch):
    """No wait is noted, so that rings are played each time."""
    monkeypatch.setattr(sys.modules["sim.engine.job"].noted, "KNOWN_WAITS", 1)


@pytest.mark.parametrize(("settings", "workers"), [("", 7), ("fusion_bytes=100000 cycle_s=0", 5), ("order=end", 2)])
def test_rings_that_are_played_each_time_are_as_in_the_event_world(as_python, no_room, settings, workers):
    scenario = job(f"algorithm=ring {settings}", workers)
    for number in range(2):
        assert_alike(as_python.Replications, scenario, number)
        record = ran(as_python.Replications, scenario, number).record
        assert record["messages"] > 0
        assert record["decisions"] == 0


def test_a_ring_counts_towards_the_next_pause(as_python, no_room):
    record = ran(as_python.Replications, job("algorithm=ring", 7)).record
    assert record["events"] >= record["messages"] // sys.modules["sim.engine.kernel.ring"].AS_LONG > 0


def test_a_ring_is_played_again_with_requests_between_its_last_messages(as_python, no_room, monkeypatch):
    link = Link(latency_s=1e-6, overhead_s=0.0, gap_s=0.0, bandwidth_bytes_per_s=1e6)
    scenario = job("algorithm=ring cycle_s=0 order=uniform", 5, link, batch=4, steps=3)
    tails = told(monkeypatch, "play_tail")
    for number in range(2):
        assert_alike(as_python.Replications, scenario, number)
        assert ran(as_python.Replications, scenario, number).record["tree"] >= 0
    assert tails
    assert all(tails)


def test_a_ring_that_was_passed_over_is_played_again(as_python, monkeypatch):
    """As where none of the messages before is known."""
    monkeypatch.setattr(sys.modules["sim.engine.kernel.decided"], "ARRIVALS", 1)
    again = told(monkeypatch, "play_again")
    assert_alike(as_python.Replications, SMALL)
    assert ran(as_python.Replications, SMALL).record["tree"] >= 0
    assert again
    assert all(again)


def test_a_request_that_comes_before_the_turns_that_are_played_again(as_python, no_room, monkeypatch):
    """The run is begun anew by events."""
    monkeypatch.setattr(sys.modules["sim.engine.kernel.summing"], "TAIL", 1)
    tails = told(monkeypatch, "play_tail")
    assert_alike(as_python.Replications, SMALL)
    assert False in tails


@pytest.mark.parametrize(("block", "deep"), [(3, 8), (4, 3), (1, 2)])
def test_turns_of_many_ranks_are_played_together(as_python, no_room, monkeypatch, block, deep):
    ring, summing = (sys.modules[f"sim.engine.kernel.{name}"] for name in ("ring", "summing"))
    for name, number in (("BLOCK", block), ("DEEP", deep), ("WIDE", 1)):
        monkeypatch.setattr(ring, name, number)
    monkeypatch.setattr(summing, "TAIL", 2)
    assert_alike(as_python.Replications, job("algorithm=ring", 7))


@pytest.mark.parametrize(
    ("algorithm", "waits", "warmup"), [("ring", 1, 1), ("ring", 2**16, 2), ("tree", 1, 2), ("tree", 2**16, 1)]
)
def test_waits_in_which_the_warm_up_ends_count_from_there(as_python, monkeypatch, algorithm, waits, warmup):
    """Rank 0 updates while others wait for their last message."""
    monkeypatch.setattr(sys.modules["sim.engine.job"].noted, "KNOWN_WAITS", waits)
    link = FAST.model_copy(update={"latency_s": 5e-3, "bandwidth_bytes_per_s": 1e10})
    scenario = job(f"algorithm={algorithm}", 6, link, warmup=warmup)
    for number in range(2):
        assert_alike(as_python.Replications, scenario, number)


def test_a_run_that_passes_over_all_sums_schedules_nothing(as_python):
    scenario = job("algorithm=halving-doubling")
    assert ran(as_python.Replications, scenario).record["sequence"] > 0
    assert ran(as_python.Replications, scenario).record["sequence"] == 0


@pytest.mark.parametrize("decisions", [1, 5])
def test_some_sums_are_passed_over_and_others_played_by_events(as_python, monkeypatch, decisions):
    monkeypatch.setattr(sys.modules["sim.engine.job"].noted, "DECISIONS", decisions)
    scenario = job("algorithm=halving-doubling order=uniform cycle_s=0.0001", 6, batch=16, steps=2)
    for number in range(2):
        assert_alike(as_python.Replications, scenario, number)
    state = ran(as_python.Replications, scenario)
    assert (state.record["decisions"], state.record["noting"]) == (decisions, 0)
    assert state.arrays["decision"]["status"][:decisions].all()


def test_a_run_that_is_ended_while_it_notes_something_forgets_that(as_python):
    noted, scenario = sys.modules["sim.engine.job"].noted, job("algorithm=halving-doubling")
    whole = ran(as_python.Replications, scenario)
    whole.record["noting"] = 1
    noted.give_back(as_python.Replications(scenario)._template.shape, whole)
    (kept,) = noted._kept.values()
    assert kept.counts["decisions"] == whole.record["decisions"] - 1
    assert kept.arrays["latest"]["value"].max() <= kept.counts["decisions"]
    assert_alike(as_python.Replications, scenario)


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
