"""Calls of all ranks that the engine plays at once, and what scenarios share that differ in their random seed alone."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from engines import assert_alike

from sim import event, protocols, stragglers
from sim.job.scenario import Scenario
from sim.model import workload
from sim.platform.cluster import Cluster, Host

TABLES = ["halving-doubling", "tree", "recursive-doubling", "nccl", "reduce-broadcast", "alltoall-allgather", "auto"]
SLOW = (Host(name="slow", count=5, cores=1, speed=0.5), Host(name="fast", count=8, cores=1))


def job(algorithm: str, workers: int = 6, law: str = "niagara*0.001", **about) -> Scenario:
    of_calls = [f"algorithm={algorithm}", f"fused={about.pop('fused', True)}"]
    other = about.pop("protocol", None)
    protocol = protocols.make(*other.split(" ")) if other else protocols.make("allreduce", of_calls)
    how = {"steps": 3, "warmup": 1, "stragglers": stragglers.read(law), "seed": 1, **about}
    return Scenario(protocol, workload.read("toy_fc"), workers, **how)


@pytest.fixture
def plays(as_python, monkeypatch) -> list:
    """A row for each call that is played at once."""
    calls, found = sys.modules["sim.engine.kernel.calls"], []
    play = calls.play_call
    monkeypatch.setattr(calls, "play_call", lambda S, k, slot: (found.append(k), play(S, k, slot))[1])
    return found


@pytest.mark.parametrize(
    ("algorithm", "workers", "fused"),
    [*((algorithm, workers, True) for algorithm in TABLES[:-1] for workers in (2, 5, 8)), ("tree", 5, False)],
)
def test_calls_are_played_at_once_as_events_have_them(as_python, plays, algorithm, workers, fused):
    assert_alike(as_python.Replications, job(algorithm, workers, fused=fused))
    assert plays


@pytest.mark.parametrize(
    ("algorithm", "law"), [*((name, "niagara*0.0001") for name in TABLES), ("tree", "none"), ("nccl", "cedar*0.1")]
)
def test_late_ranks_and_slow_ones_are_as_in_the_event_world(as_python, plays, algorithm, law):
    """Messages of other ranks come before those that are waited for."""
    assert_alike(as_python.Replications, job(algorithm, 7, law, cluster=Cluster(hosts=SLOW)), 2)
    assert plays


@pytest.mark.slow
def test_messages_that_pass_those_of_an_earlier_call_are_events(as_python, plays):
    """Rings, whose ranks go on at once, among other calls."""
    scenario = replace(job("auto", 9, fused=False), workload=workload.read("mlp"))
    found = as_python.Replications(scenario)
    outcomes = [found.outcome(number) for number in range(3)]
    assert found._clash
    assert plays
    for number, outcome in enumerate(outcomes):
        np.testing.assert_allclose(outcome.step_s, event.run(scenario, number)[0].step_s, rtol=0, atol=1e-9)
    plays.clear()
    assert found.outcome(3)
    assert not plays


def test_calls_have_room_for_all_messages_that_are_on_their_way(as_python, plays, monkeypatch):
    monkeypatch.setattr(sys.modules["sim.engine.arrays.shape"], "LEAST", 4)
    monkeypatch.setattr(sys.modules["sim.engine.arrays.shape"], "EACH", 0)
    found = as_python.Replications(job("alltoall-allgather", 8, seed=8))
    assert found.outcome(0)
    assert found._template.shape.room > 1
    assert_alike(as_python.Replications, job("alltoall-allgather", 8, seed=8))


@pytest.mark.parametrize("said", [("fmb",), ("allreduce", "algorithm=tree"), ("ps-sync", "barrier=true")], ids=" ".join)
def test_scenarios_of_other_seeds_share_what_does_not_change(as_python, said):
    """And have random numbers of their own."""
    scenario = replace(job("ring", 3), protocol=protocols.make(said[0], list(said[1:])), servers=1, cluster=None)
    first = as_python.Replications(scenario)
    for seed in (2, 3):
        other = replace(scenario, seed=seed)
        assert as_python.Replications(other)._prepared is first._prepared
        assert_alike(as_python.Replications, other)


OTHERS = {
    "batch": 32,
    "workers": 4,
    "steps": 2,
    "stragglers": stragglers.read("cedar*0.1"),
    "workload": workload.read("mlp"),
    "protocol": protocols.make("allreduce", ["algorithm=ring", "fused=false"]),
    "cluster": Cluster(hosts=SLOW),
}


@pytest.mark.parametrize("name", OTHERS)
def test_scenarios_that_differ_in_anything_else_share_nothing(as_python, name):
    scenario = job("ring", 3)
    other = replace(scenario, **{"cluster": None, name: OTHERS[name]})
    assert as_python.Replications(other)._prepared is not as_python.Replications(scenario)._prepared
    assert_alike(as_python.Replications, other)


def test_what_takes_much_memory_is_not_kept(as_python, monkeypatch):
    monkeypatch.setattr(as_python, "MOST_BYTES", 1000)
    scenario = job("ring", 3, steps=5)
    first, second = (as_python.Replications(scenario)._prepared for _ in range(2))
    assert first is not second


def test_nothing_is_read_before_a_run_writes_it(as_python, monkeypatch):
    """What the memory held before a run makes no difference."""
    state, outcomes = sys.modules["sim.engine.kernel.state"], []
    for held in (0x00, 0xFF):
        empty = partial(np.full, fill_value=held)
        monkeypatch.setattr(
            state, "np", SimpleNamespace(**{**vars(np), "empty": lambda size, kind, of=empty: of(size, dtype=kind)})
        )
        outcomes.append(
            [as_python.Replications(one).outcome(0) for one in (job("tree"), job("tree", protocol="ps-async"))]
        )
    monkeypatch.undo()
    for others in outcomes[1:]:
        for one, other in zip(outcomes[0], others, strict=True):
            np.testing.assert_array_equal(one.step_s, other.step_s)
            np.testing.assert_array_equal(one.idle_fraction, other.idle_fraction)
