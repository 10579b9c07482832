"""Every protocol goes through the same laws, and a user's own runs as those of the registry do."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sim import protocols, stragglers, workload
from sim.outcome import of_trace
from sim.protocols.base import Protocol
from sim.scenario import Scenario
from sim.workload import HEADER_BYTES
from sim.worlds import event

ROOT = Path(__file__).parents[2]
NAMES = list(protocols.PROTOCOLS)


def subclasses(of: type) -> set[type]:
    """All of them, whose module is one of ours."""
    found = {c for c in of.__subclasses__() if c.__module__.startswith("sim.")}
    return found.union(*map(subclasses, found)) if found else found


def run(name: str, **options):
    scenario = Scenario(
        protocols.make(name), workload.read("mlp"), **{"workers": 3, "batch": 32, "steps": 40, **options}
    )
    return event.run(scenario), scenario


def test_none_is_left_out_of_the_registry():
    assert subclasses(Protocol) == set(protocols.PROTOCOLS.values())


@pytest.mark.parametrize("name", NAMES)
def test_settings_are_frozen_and_the_source_is_named(name):
    protocol = protocols.PROTOCOLS[name]
    assert protocol.name == name
    assert protocol.__dataclass_params__.frozen
    assert re.search(r"\b20\d\d\b|SyncReplicasOptimizer", protocol.__doc__)
    for field in dataclasses.fields(protocol):
        documented = "".join(c.__doc__ for c in protocol.__mro__ if c.__doc__)
        assert f"{field.name}:" in documented, field.name


@pytest.mark.parametrize("name", NAMES)
def test_no_rank_does_two_things_at_once(name):
    """Within a rank activities do not overlap, but for answers, posts, and transfers that are meant to: their sender goes on."""
    trace, scenario = run(name, stragglers=stragglers.read("niagara*0.01"))
    for rank, rows in trace.rows.groupby("rank"):
        protocol = scenario.protocol
        goes_on = protocol.arrival_order_matters and (rank < scenario.servers or not protocol.uses_servers)
        goes_on = goes_on or not scenario.served
        beside = ["send", "receive"] if protocol.overlaps else ["send"] if goes_on else []
        if name == "horovod":  # whose background thread sums and copies while the other computes
            beside += ["reduce", "pack"]
        own = rows[~rows["activity"].isin(beside) & (rows["end_s"] > rows["start_s"])]
        own = own.sort_values(["start_s", "end_s"])
        assert (own["end_s"].to_numpy()[:-1] <= own["start_s"].to_numpy()[1:] + 1e-9).all()


@pytest.mark.parametrize("name", NAMES)
def test_what_is_sent_is_received(name):
    """Between any two ranks, but for the last messages, which carry nothing and are not recorded as sent."""
    rows = run(name)[0].rows
    rows = rows[rows["bytes"] > HEADER_BYTES]
    sent, received = (rows[rows["activity"] == way] for way in ("send", "receive"))
    pairs = sent.groupby(["rank", "peer"])["bytes"].agg(["sum", "count"])
    assert pairs.equals(received.groupby(["peer", "rank"])["bytes"].agg(["sum", "count"]).rename_axis(["rank", "peer"]))


@pytest.mark.parametrize("name", NAMES)
def test_samples_computed_are_samples_summed(name):
    """Whatever is computed joins an update, unless its protocol drops it."""
    rows = run(name)[0].rows
    computed = rows[rows["activity"] == "compute"]["samples"].sum()
    summed = rows[(rows["activity"] == "update") & (rows["rank"] == 0)]["samples"].sum()
    assert summed <= computed
    if name in ("amb", "fmb", "ps-layers", "allreduce", "horovod", "hybrid"):
        assert summed == computed


@pytest.mark.parametrize("name", NAMES)
def test_a_faster_cluster_is_faster(name):
    from sim.cluster import Cluster, Host

    outcomes = [of_trace(run(name, cluster=Cluster(hosts=[Host(count=4, speed=speed)]))[0]) for speed in (1, 4)]
    slow, fast = (outcome.throughput()[0] for outcome in outcomes)
    assert fast > slow


@pytest.mark.parametrize("name", NAMES)
def test_a_seed_is_a_run(name):
    law = stragglers.read("niagara*0.01")
    first, again, other = (run(name, stragglers=law, seed=seed)[0].rows for seed in (1, 1, 2))
    assert first.equals(again)
    assert not np.array_equal(first["end_s"].to_numpy()[:50], other["end_s"].to_numpy()[:50])


OWN = '''
from dataclasses import dataclass
from sim.protocols.base import Protocol


@dataclass(frozen=True)
class Twice(Protocol):
    """Two gradients a step."""

    rounds: int = 2
    name = "twice"

    def worker(self, me):
        for _ in me.steps():
            yield from me.receive(me.master)
            for _ in range(self.rounds):
                yield from me.compute()
            yield from me.send(me.master)

    def master(self, me):
        for _ in me.steps():
            yield from me.send(me.workers)
            yield from me.gather(me.workers)
            yield from me.update()
'''


def test_a_protocol_of_ones_own_runs_in_both_worlds(tmp_path):
    (tmp_path / "mine.py").write_text(OWN)
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    answers = []
    for world in ("event", "vector"):
        line = [sys.executable, "-m", "sim.run", "--protocol", "mine:Twice", "--set", "rounds=3", "--world", world]
        done = subprocess.run(
            [*line, "--json", "--replications", "2"], capture_output=True, text=True, env=environment, check=True
        )
        answers.append(json.loads(done.stdout))
    assert answers[0]["protocol"] == "twice"
    assert answers[0]["step_s"] == pytest.approx(answers[1]["step_s"])
