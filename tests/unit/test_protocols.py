"""Every protocol goes through the same laws."""

import ast
import dataclasses
import inspect
import re

import event
import numpy as np
import pytest

from sim import protocols, stragglers
from sim.answers.outcome import of_trace
from sim.job.scenario import Scenario
from sim.model import workload
from sim.model.workload import HEADER_BYTES
from sim.protocols.base import Protocol

NAMES = list(protocols.PROTOCOLS)


def subclasses(of: type) -> set[type]:
    """All of them, whose module is one of ours."""
    found = {c for c in of.__subclasses__() if c.__module__.startswith("sim.protocols.")}
    return found.union(*map(subclasses, found)) if found else found


def run(name: str, **options):
    scenario = Scenario(
        protocols.make(name), workload.read("mlp"), **{"workers": 3, "batch": 32, "steps": 40, **options}
    )
    return event.trace(scenario), scenario


def test_none_is_left_out_of_the_registry():
    """A class without settings of its own has texts that others share."""
    assert {one for one in subclasses(Protocol) if "__dataclass_fields__" in vars(one)} == set(
        protocols.PROTOCOLS.values()
    )


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
        goes_on = protocol.counts_updates and (rank < scenario.servers or not protocol.has_servers)
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


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_faster_cluster_is_faster(name):
    from sim.platform.cluster import Cluster, Host

    outcomes = [of_trace(run(name, cluster=Cluster(hosts=[Host(count=4, speed=speed)]))[0]) for speed in (1, 4)]
    slow, fast = (outcome.throughput()[0] for outcome in outcomes)
    assert fast > slow


@pytest.mark.parametrize("name", NAMES)
def test_a_seed_is_a_run(name):
    law = stragglers.read("niagara*0.01")
    first, again, other = (run(name, stragglers=law, seed=seed)[0].rows for seed in (1, 1, 2))
    assert first.equals(again)
    assert not np.array_equal(first["end_s"].to_numpy()[:50], other["end_s"].to_numpy()[:50])


@pytest.mark.parametrize(
    "kind", dict.fromkeys(kind for one in protocols.PROTOCOLS.values() for kind in one.__mro__[:-2])
)
def test_a_protocol_reads_like_its_paper(kind):
    """In at most 40 lines, without comments, docstrings and decorators."""
    tree = ast.parse(inspect.getsource(kind))
    tree.body[0].decorator_list.clear()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
            node.body = node.body[1:] or [ast.Pass()]
    assert len(ast.unparse(tree).replace("\n\n", "\n").strip().splitlines()) <= 40
