"""Timelines that Perfetto opens: valid events, named ranks, arrows from sends to receives."""

import json
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import event
import pytest
from scenarios import ANYWHERE

from sim import protocols, stragglers, timeline
from sim.job.scenario import Scenario
from sim.model import workload
from sim.platform.cluster import Cluster, Host, Link
from sim.recording.traces import ACTIVITIES, Trace
from sim.timeline import ORDER

SLOW = Link(latency_s=1e-4, bandwidth_bytes_per_s=1e8)


@pytest.fixture
def written(trace, tmp_path):
    """The events of the trace beside itself."""
    timeline.write_many([("simulated", trace), ("measured", trace)], tmp_path / "t.json")
    return json.loads((tmp_path / "t.json").read_text())["traceEvents"]


def phase(events, letter, pid=1):
    return [event for event in events if event["ph"] == letter and event["pid"] == pid]


def names(events, what, pid=1):
    return [event["args"]["name"] for event in phase(events, "M", pid) if event["name"] == what]


def test_events_are_in_order_of_time_and_none_is_negative(written):
    events = phase(written, "X")
    assert [event["ts"] for event in events] == sorted(event["ts"] for event in events)
    assert all(event["dur"] >= 0 for event in events)


def test_times_are_microseconds_and_arguments_are_the_row(written):
    (event,) = [event for event in phase(written, "X") if event["name"] == "compute"]
    assert (event["ts"], event["dur"], event["tid"]) == (3.2e6, 4.8e6, 2)
    assert event["args"] == {"step": 1, "samples": 18, "bytes": 0, "peer": -1, "version": 1}


def test_ranks_and_runs_are_named(written):
    assert names(written, "thread_name") == ["master", "worker 1"]
    assert names(written, "process_name", 1) == ["simulated"]
    assert names(written, "process_name", 2) == ["measured"]


def test_one_process_alone_is_no_master(trace, tmp_path):
    alone = Trace(replace(trace.header, workers=0), trace.rows[trace.rows["rank"] == 0])
    timeline.write_many([("run", alone)], tmp_path / "t.json")
    assert names(json.loads((tmp_path / "t.json").read_text())["traceEvents"], "thread_name") == ["process"]


def test_arrows_lead_from_each_send_to_its_receive(written):
    starts, ends = phase(written, "s"), phase(written, "f")
    assert [(event["tid"], event["ts"]) for event in starts] == [(1, 0.0), (1, 2e6)]
    assert [(event["tid"], event["ts"]) for event in ends] == [(2, 0.5e6), (2, 3e6)]
    assert [event["id"] for event in starts] == [event["id"] for event in ends]
    ids = [event["id"] for event in written if event["ph"] == "s"]  # of both runs
    assert len(set(ids)) == len(ids) == 4


def test_a_trace_without_rows_is_a_timeline(header, tmp_path):
    timeline.write_many([("run", Trace.of(header, []))], tmp_path / "t.json")
    assert json.loads((tmp_path / "t.json").read_text())["otherData"]["runs"][0]["protocol"] == "fmb"


def simulated(protocol):
    """A short run, with whatever the protocol does beside computing."""
    ours, name = protocols.make(protocol), "lstm_lm" if protocol == "hybrid" else "mlp"
    job = {"workers": 3, "steps": 2, "warmup": 1, "stragglers": stragglers.read("niagara*0.01")}
    job |= {"servers": 2, "variable_partitions": 2} if ours.has_servers else {"test_size": 8}
    cluster = Cluster(name="slow", hosts=(Host(name="host", count=5),), network=SLOW)
    return event.trace(Scenario(ours, workload.NAMED[name], cluster=cluster, **job))


@pytest.mark.parametrize("protocol", ANYWHERE)
def test_no_viewer_drops_a_slice(protocol, tmp_path):
    """On a thread they are disjoint, and every activity is there."""
    trace = simulated(protocol)
    timeline.write_many([("run", trace)], tmp_path / "t.json")
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    slices = phase(events, "X")
    rows = trace.rows[["activity", "step", "samples", "bytes", "peer", "version"]]
    said = [(one["name"], *(one["args"][name] for name in rows.columns[1:])) for one in slices]
    assert Counter(said) == Counter(rows.itertuples(index=False, name=None))
    named = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert sorted(named) == list(range(1, len(named) + 1))
    for thread in {one["tid"] for one in slices}:
        times = sorted(
            (round(one["ts"] * 1000), round((one["ts"] + one["dur"]) * 1000)) for one in slices if one["tid"] == thread
        )
        assert all(before[1] <= after[0] for before, after in pairwise(times)), named[thread]


def test_what_goes_on_beside_has_a_lane_of_its_own(tmp_path):
    """And arrows begin and end at slices."""
    trace = simulated("ps-async")
    timeline.write_many([("run", trace)], tmp_path / "t.json")
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    said = names(events, "thread_name")
    assert said[:2] == ["server 0", "server 0, beside"]
    assert {"server 1", "worker 2", "worker 4"} <= set(said)
    beside = {thread for thread, name in enumerate(said, 1) if "beside" in name}
    assert {"send"} <= {event["name"] for event in phase(events, "X") if event["tid"] in beside}
    assert "compute" not in {event["name"] for event in phase(events, "X") if event["tid"] in beside}
    starts = {(event["name"], event["tid"], event["ts"]) for event in phase(events, "X")}
    assert phase(events, "s")
    assert {("send", event["tid"], event["ts"]) for event in phase(events, "s")} <= starts
    assert {("receive", event["tid"], event["ts"]) for event in phase(events, "f")} <= starts


def test_every_activity_has_its_place_in_the_order():
    assert sorted(ORDER) == sorted(ACTIVITIES)
