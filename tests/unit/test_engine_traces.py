"""The engine records what the event world records: the same activities of the same ranks, at the same times, and the same timeline."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace

import numpy as np
import pytest
from engines import assert_same_outcome
from scenarios import CLUSTERS, EXACT_S, SETTINGS, bare, scenarios
from test_all_ranks import TEXTS, job
from test_engine import ANY, BESIDE, KNOWN, NIAGARA, PLACED, ROWS, THREADS, of_hosts, one

from sim import event, protocols
from sim.engine import choose
from sim.job.scenario import Scenario
from sim.model import workload
from sim.platform.cluster import Cluster, Host
from sim.protocols.fmb import FixedMinibatch
from sim.recording.horovod_timeline import Timeline
from sim.recording.traces import Trace
from sim.verbs.me import GRADIENT, PARAMETERS

WHAT = ["rank", "step", "activity", "peer", "version", "samples", "bytes"]
HOROVOD = [said for said in SETTINGS if said[0] == "horovod"]


def in_order(trace: Trace):
    """Rows by what they say, whose times then are of the same activities."""
    return trace.rows.sort_values([*WHAT, "start_s", "end_s"], kind="stable", ignore_index=True)


def assert_same(found: Trace, expected: Trace) -> None:
    assert found.header == expected.header
    here, there = in_order(found), in_order(expected)
    assert here[WHAT].equals(there[WHAT])
    for when in ("start_s", "end_s"):
        np.testing.assert_allclose(here[when], there[when], rtol=0, atol=EXACT_S)
    assert found.rows["end_s"].is_monotonic_increasing
    assert (found.rows.dtypes == expected.rows.dtypes).all()


def assert_recorded(replications, scenario: Scenario, number: int = 0) -> None:
    """The same trace, and the same outcome with and without one."""
    engine, (expected, there) = replications(scenario), event.run(scenario, number)
    outcome, trace = engine.run(number, want_trace=True)
    assert_same(trace, there)
    for found in (outcome, engine.outcome(number)):
        assert_same_outcome(found, expected)


@pytest.mark.parametrize("said", SETTINGS, ids=" ".join)
def test_every_protocol(compiled, said):
    assert_recorded(compiled.Replications, one("one core each", said))


@pytest.mark.parametrize("cluster", CLUSTERS)
@pytest.mark.parametrize("said", [("ps-sync",), ("allreduce", "algorithm=tree")], ids=" ".join)
def test_every_kind_of_host_and_port(compiled, cluster, said):
    assert_recorded(compiled.Replications, one(cluster, said, workers=2))


@pytest.mark.parametrize("said", ANY, ids=" ".join)
@pytest.mark.parametrize("place", PLACED)
def test_what_ranks_of_a_host_share(compiled, place, said):
    scenario = replace(one("one core each", said, workers=4), cluster=PLACED[place])
    assert scenario.threaded == ("threads" in place)
    assert_recorded(compiled.Replications, scenario)


@pytest.mark.parametrize("said", ANY, ids=" ".join)
@pytest.mark.parametrize(("host", "about"), BESIDE)
def test_other_threads(compiled, host, about, said):
    """Also where more moments are drawn than steps were thought of."""
    scenario = replace(one("one core each", said), cluster=of_hosts(host, **about), steps=3)
    costs = scenario.workload.costs.model_copy(update={"background": THREADS})
    job = replace(scenario, workload=scenario.workload.model_copy(update={"costs": costs}))
    assert np.abs(event.run(job)[0].step_s - event.run(scenario)[0].step_s).max() > EXACT_S
    assert_recorded(compiled.Replications, job)


@pytest.mark.parametrize("cluster", ["one core each", "four GPUs", "polls"])
@pytest.mark.parametrize("said", [("fmb",), ("kbatch-async", "gradients=2")], ids=" ".join)
def test_evaluations(compiled, cluster, said):
    scenario = one(cluster, said, test_size=100, evaluate_every=2)
    assert scenario.costs.evaluate(100) > 0
    assert_recorded(compiled.Replications, replace(scenario, steps=2 + scenario.warmup))


@pytest.mark.parametrize("cluster", ["one core each", "two cores"])
@pytest.mark.parametrize("said", ["amb-dg time_limit_s=0.02 delay_std_s=0.03", "kbatch-async delay_std_s=0.01"])
def test_induced_delays(compiled, cluster, said):
    assert_recorded(compiled.Replications, one(cluster, tuple(said.split())))


@pytest.mark.parametrize("cluster", ["one core each", "two cores"])
@pytest.mark.parametrize("text", TEXTS, ids=str)
def test_users_steps_of_all_ranks(compiled, text, cluster):
    law = "lognormal(mean=20ms, cv=1.5)"
    scenario = job(text, 3, law, cluster=CLUSTERS[cluster], steps=3, warmup=1, batch=64)
    assert_recorded(compiled.Replications, scenario)


@pytest.mark.parametrize("cluster", ["one core each", "two cores"])
def test_sleeps(compiled, cluster):
    scenario = one(cluster, ("fmb",), stragglers=NIAGARA)
    assert "sleep" in set(event.trace(scenario).rows["activity"])
    assert_recorded(compiled.Replications, scenario)


@pytest.mark.parametrize("said", [("fmb",), ("allreduce", "algorithm=tree"), ("ps-async",)], ids=" ".join)
@pytest.mark.parametrize("cluster", ["one core each", "two cores"])
def test_a_full_block_is_emptied_and_the_run_goes_on(compiled, monkeypatch, cluster, said):
    scenario, blocks = one(cluster, said), []
    recording = sys.modules["sim.engine.recording"]
    take = recording.Rows.take
    monkeypatch.setattr(recording, "BLOCK", 5)
    monkeypatch.setattr(recording.Rows, "take", lambda rows: blocks.append(1) or take(rows))
    assert_recorded(compiled.Replications, scenario)
    assert len(blocks) > 5


@dataclass(frozen=True)
class ComputesFirst(FixedMinibatch):
    """Workers that compute before they wait."""

    name = "computes-first"

    def worker(self, me):
        for _ in me.steps():
            yield from me.compute()
            yield from me.take_up((yield from me.receive(me.master)))
            yield from me.send(GRADIENT, me.master)


def test_a_full_block_is_emptied_where_nothing_happens_between_rows(compiled, monkeypatch):
    """Of ranks that never wait, that all begin at once, or that find all messages of a call there: a block has few rows more."""
    recording = sys.modules["sim.engine.recording"]
    monkeypatch.setattr(recording, "BLOCK", 5)
    monkeypatch.setattr(recording, "ROWS_OF_AN_INSTRUCTION", 0)
    assert_recorded(compiled.Replications, job(TEXTS[0], 3, "none", steps=40, warmup=1, batch=64))
    assert_recorded(compiled.Replications, replace(one("one core each", ("fmb",), workers=8), protocol=ComputesFirst()))
    hosts = tuple(Host(name=f"h{i}", speed=1e-3 if i == 8 else 1.0) for i in range(9))
    late = one("one core each", ("allreduce", "algorithm=alltoall-allgather"), workers=9)
    assert_recorded(compiled.Replications, replace(late, cluster=Cluster(hosts=hosts)))


@dataclass(frozen=True)
class SendsLast(FixedMinibatch):
    """A master whose last message nobody takes."""

    name = "sends-last"

    def master(self, me):
        yield from super().master(me)
        yield from me.send(PARAMETERS, me.workers, wait=False)


@pytest.mark.parametrize("cluster", ["one core each", "two cores", "four GPUs", "fair shares"])
def test_what_leaves_after_the_last_text_has_ended(compiled, cluster):
    """It is in neither trace, or in both."""
    scenario = replace(one(cluster, ("fmb",)), protocol=SendsLast())
    assert_recorded(compiled.Replications, scenario)


def test_a_run_that_is_cut_has_the_trace_of_what_it_has_done(compiled, monkeypatch):
    monkeypatch.setattr(sys.modules["sim.engine.job"], "EVENTS", 3)
    scenario = replace(one("two cores", ("allreduce",)), steps=6)
    engine = compiled.Replications(scenario)
    (cut, trace), (_, whole) = engine.run(0, within_s=0.0, want_trace=True), engine.run(0, want_trace=True)
    assert 0 < cut.step_s.shape[1] < 6
    assert 0 < len(trace.rows) < len(whole.rows)
    assert trace.header.warmup == cut.warmup


def events(timeline: Timeline, folder) -> list[str]:
    """What it writes: at one moment in any order, and at the microseconds around a half in any."""
    timeline.write(folder / "timeline.json")
    return sorted(json.dumps(one, sort_keys=True) for one in json.loads((folder / "timeline.json").read_text()))


@pytest.mark.slow
@pytest.mark.parametrize("want_trace", [False, True])
@pytest.mark.parametrize("cluster", ["one core each", "two cores", "four GPUs"])
@pytest.mark.parametrize("said", HOROVOD, ids=" ".join)
def test_the_timeline_is_that_of_the_event_world(compiled, tmp_path, said, cluster, want_trace):
    scenario = one(cluster, said)
    found, expected = Timeline(scenario), Timeline(scenario)
    _, trace = compiled.Replications(scenario).run(0, timeline=found, want_trace=want_trace)
    _, there = event.run(scenario, 0, expected, want_trace=want_trace)
    assert events(found, tmp_path) == events(expected, tmp_path)
    assert (trace is None) == (there is None) == (not want_trace)


def test_it_is_asked_for_traces(compiled, monkeypatch):
    scenario, engine = Scenario(protocols.make("fmb"), workload.read("mlp"), 16, steps=1, warmup=0), choose.Engine()
    of = engine.replications(scenario)
    _, trace = engine.run(of, 0, want_trace=True)
    assert_same(trace, event.trace(scenario))
    assert engine.run(of, 0)[1] is None
    monkeypatch.setattr(of, "run", None)
    assert engine.run(of, 0, want_trace=True) is None


def layers(said: str, cluster: str) -> Scenario:
    about = {"servers": 2, "steps": 2, "warmup": 1, "batch": 64}
    return Scenario(protocols.make("ps-layers", said.split()), bare("toy_fc"), 4, cluster=CLUSTERS[cluster], **about)


@pytest.mark.slow
@pytest.mark.parametrize("cluster", ["one core each", "two cores", "fair shares", "polls"])
@pytest.mark.parametrize("said", ["", "local_aggregation=true", "barrier=true"])
def test_variables_one_by_one(by_numba, cluster, said):
    assert_recorded(by_numba.Replications, layers(said, cluster))


@pytest.mark.slow
@pytest.mark.parametrize("cluster", ["one core each", "four GPUs", "two cores", "polls"])
@pytest.mark.parametrize("said", ROWS, ids=" ".join)
def test_rows_of_sparse_variables(by_numba, cluster, said):
    """Several parts at each of two servers, which are added and updated side by side."""
    protocol, size = protocols.make(said[0], list(said[1:])), {"servers": 2, "variable_partitions": 4}
    about = {"cluster": CLUSTERS[cluster], "steps": 2, "warmup": 1, "batch": 64}
    scenario = Scenario(protocol, bare("bigram"), 4, **about, **size)
    assert scenario.traffic.in_parts
    assert_recorded(by_numba.Replications, scenario)


@pytest.mark.slow
def test_all_scenarios(by_numba):
    for _, scenario in scenarios():
        assert_recorded(by_numba.Replications, scenario)


@pytest.mark.slow
@pytest.mark.parametrize("place", KNOWN)
def test_variables_and_layers_of_all_places(by_numba, place):
    """By the compiled kernel, in blocks that are full now and then."""
    for said in (("horovod",), ("horovod", "by_name=true"), ("ps-ssp",), ("amb-dg", "time_limit_s=0.02")):
        scenario = replace(one("one core each", said, workers=4), cluster=KNOWN[place], steps=4)
        assert_recorded(by_numba.Replications, scenario)


@pytest.mark.slow
def test_messages_that_nobody_waits_for_need_no_room_once_they_have_left(by_numba, monkeypatch):
    monkeypatch.setattr(sys.modules["sim.engine.arrays.shape"], "LEAST", 64)
    monkeypatch.setattr(sys.modules["sim.engine.arrays.shape"], "EACH", 0)
    scenario = replace(one("fair shares", ("ps-async",)), steps=40)
    engine = by_numba.Replications(scenario)
    sent = engine.run(0, want_trace=True)[1].rows.query("activity == 'send' and rank == 0")
    assert len(sent) > 64
    assert engine._template.shape.room == 1
