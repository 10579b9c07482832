"""Every protocol goes through the same laws."""

import dataclasses
import re
from functools import cache
from inspect import getsourcefile
from pathlib import Path

import event
import numpy as np
import pytest

from sim import protocols, stragglers
from sim.answers.outcome import of_trace
from sim.job.scenario import Scenario
from sim.model import workload
from sim.model.workload import HEADER_BYTES, Variable, Workload
from sim.protocols.own import about
from sim.texts import TEXTS

NAMES = list(protocols.PROTOCOLS)
OTHERS = {"alone", "ps-barrier", "ps-rows"}  # texts that a protocol's settings, or jobs, choose
SETTINGS = {
    "hierarchical": ["group=3"],
    "pipeline": ["micro_batches=4"],
    "amb-dg": ["time_limit_s=0.02", "partitions=4"],
}
LAW = stragglers.read("niagara*0.01")
CHAIN = Workload(
    name="chain",
    flops_per_sample=1e7,
    variables=[Variable(name=f"w{i}", shape=(100, 100), activation_items=100) for i in range(4)],
)


@cache
def run(name: str, **options):
    model = CHAIN if name == "pipeline" else workload.read("mlp")
    scenario = Scenario(
        protocols.make(name, SETTINGS.get(name, ())),
        model,
        **{"workers": 3, "batch": 32, "steps": 4, "warmup": 1, **options},
    )
    return event.trace(scenario), scenario


def test_none_is_left_out_of_the_registry():
    """And no file of sim/texts has a text that nobody can name."""
    assert set(protocols.PROTOCOLS) == set(TEXTS) - OTHERS
    files = {path.stem for path in Path(getsourcefile(TEXTS["fmb"])).parent.glob("*.py")} - {"__init__"}
    assert files == {Path(getsourcefile(text)).stem for text in TEXTS.values()}


@pytest.mark.parametrize("name", NAMES)
def test_settings_are_frozen_and_the_source_is_named(name):
    protocol = protocols.PROTOCOLS[name]
    assert protocol.name == name
    assert protocol.__dataclass_params__.frozen
    assert re.search(r"\b20\d\d\b|SyncReplicasOptimizer", protocol.__doc__)
    documented = "".join(map(about, protocol.text_class.__mro__[:-2]))
    for field in dataclasses.fields(protocol):
        assert re.search(rf"\b{field.name}\b.*: ", documented), field.name


@pytest.mark.parametrize("name", NAMES)
def test_no_rank_does_two_things_at_once(name):
    """Within a rank activities do not overlap, but for transfers, whose sender goes on, and for what texts beside the main one do."""
    trace, scenario = run(name, stragglers=LAW)
    for _, rows in trace.rows.groupby("rank"):
        beside = ["send", "receive"] if scenario.protocol.overlaps else ["send"]
        if scenario.protocol.overlaps:  # servers sum and update layer beside layer; ranks sum while they compute
            beside += ["reduce", "update", "pack", "wait"]
        own = rows[~rows["activity"].isin(beside) & (rows["end_s"] > rows["start_s"])]
        own = own.sort_values(["start_s", "end_s"])
        assert (own["end_s"].to_numpy()[:-1] <= own["start_s"].to_numpy()[1:] + 1e-9).all()


@pytest.mark.parametrize("name", NAMES)
def test_what_is_sent_is_received(name):
    """Between any two ranks, but for what is under way when training is over: of each worker at most two gradients."""
    rows = run(name)[0].rows
    rows = rows[rows["bytes"] > HEADER_BYTES]
    sent, received = (rows[rows["activity"] == way] for way in ("send", "receive"))
    left = sent.groupby(["rank", "peer"])["bytes"].agg(["sum", "count"])
    came = received.groupby(["peer", "rank"])["bytes"].agg(["sum", "count"]).rename_axis(["rank", "peer"])
    under_way = left - came
    assert (under_way["sum"] == under_way["count"] * (left["sum"] / left["count"])).all()
    assert under_way["count"].between(0, 2).all()
    if name not in ("kbatch-async", "amb-dg", "ps-backup", "ps-async", "ps-ssp"):
        assert not under_way["count"].any()


@pytest.mark.parametrize("name", NAMES)
def test_samples_computed_are_samples_summed(name):
    """Whatever is computed joins an update, unless its protocol drops it."""
    from sim.recording.conformance import gradients

    found = gradients(run(name)[0])
    assert 0 < found.applied <= found.computed
    protocol = protocols.make(name)
    if not protocol.by_arrival and protocol.text_class.data == "own":
        assert found.applied == found.computed


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_faster_cluster_is_faster(name):
    from sim.platform.cluster import Cluster, Host

    outcomes = [
        of_trace(run.__wrapped__(name, cluster=Cluster(hosts=[Host(count=4, speed=speed)]))[0]) for speed in (1, 4)
    ]
    slow, fast = (outcome.throughput()[0] for outcome in outcomes)
    assert fast > slow


@pytest.mark.parametrize("name", NAMES)
def test_a_seed_is_a_run(name):
    again, other = (run.__wrapped__(name, stragglers=LAW, seed=seed)[0].rows for seed in (0, 1))
    first = run(name, stragglers=LAW)[0].rows
    assert first.equals(again)
    assert not np.array_equal(first["end_s"].to_numpy()[:50], other["end_s"].to_numpy()[:50])


@pytest.mark.parametrize(
    "path", sorted(Path(getsourcefile(TEXTS["fmb"])).parent.glob("*.py")), ids=lambda one: one.stem
)
def test_a_protocol_reads_like_its_paper(path):
    """In at most 40 lines."""
    assert len(path.read_text().splitlines()) <= 40


@pytest.mark.parametrize(
    ("name", "settings", "facts"),
    [
        ("fmb", [], ["alone", "waits"]),
        ("amb", [], ["alone", "waits", "limited"]),
        ("amb-dg", [], ["stale", "limited"]),
        ("kbatch-async", [], ["stale"]),
        ("ps-async", [], ["stale"]),
        ("ps-sync", [], []),
        ("ps-sync", ["barrier=true"], ["waits"]),
        ("ps-backup", ["barrier=true"], []),
        ("gradient-coding", [], []),
        ("ddp", [], ["waits", "overlaps"]),
        ("ps-layers", [], ["waits", "overlaps"]),
        ("local-sgd", [], ["waits", "stale"]),
    ],
)
def test_what_is_known_of_a_protocol(name, settings, facts):
    one = protocols.make(name, settings)
    known = {"alone": one.text_class.alone, "waits": not one.by_arrival, "stale": one.stale}
    known |= {"limited": one.limits_computing, "overlaps": one.overlaps}
    assert {fact for fact, holds in known.items() if holds} == set(facts)
