"""Masters that update by count or by time, and workers that wait for nobody: closed forms, laws, and that every run ends."""

import math
from dataclasses import replace

import event
import numpy as np
import pytest
from event import by_engine

from sim import protocols, stragglers
from sim.answers.notes import notes
from sim.answers.outcome import of_trace, staleness_of
from sim.base.errors import WrongSetting
from sim.job.scenario import Scenario
from sim.model import workload
from sim.model.costs import Costs, Line
from sim.platform.cluster import Cluster, Host, Link
from sim.runs.job import Drawn

MLP = workload.read("mlp")
FREE = Link(latency_s=0, overhead_s=0, bandwidth_bytes_per_s=float("inf"))
BOTH = ("kbatch-async", "amb-dg")


def job(
    name: str, *assignments: str, link=FREE, speeds=(), update_s=0.0, reduce_s=0.0, costs=None, **options
) -> Scenario:
    """A sample takes 1 ms, a minibatch 10 ms; nothing else takes time but what is given."""
    options = {"workers": 3, "batch": 10, "steps": 20, "warmup": 5, **options}
    speeds = [*speeds, *[1.0] * (1 + options["workers"] - len(speeds))]
    costs = costs or Costs(compute=Line(slope_s=1e-3), update=Line(base_s=update_s), reduce=Line(base_s=reduce_s))
    hosts = [Host(name=f"h{i}", speed=speed) for i, speed in enumerate(speeds)]
    cluster = Cluster(hosts=hosts, network=link, costs={"mlp": costs})
    given = any(assignment.startswith("partitions=") for assignment in assignments)
    own = ["partitions=10"] if name == "amb-dg" and not given else []
    return Scenario(protocols.make(name, [*own, *assignments]), MLP, cluster=cluster, **options)


def of_rank(trace, rank: int, activity: str):
    """A rank's activities of one kind, in order."""
    rows = trace.rows[(trace.rows["rank"] == rank) & (trace.rows["activity"] == activity)]
    return rows.sort_values(["end_s", "start_s"], kind="stable")


@pytest.mark.parametrize("seed", range(3))
def test_with_k_1_updates_come_in_the_order_of_asynchronous_servers(seed):
    """Nobody waits for a message that takes no time, so that waiting or not is one."""
    luck = {"stragglers": stragglers.read("niagara*0.01"), "seed": seed, "speeds": (1, 1.07, 0.93, 0.81)}
    batched = event.trace(job("kbatch-async", "gradients=1", steps=90, warmup=0, **luck))
    served = event.trace(job("ps-async", steps=30, warmup=0, **luck))
    by_batch, by_server = (of_rank(trace, 0, "reduce") for trace in (batched, served))
    assert by_batch["peer"].tolist() == by_server["peer"].tolist()
    np.testing.assert_allclose(by_batch["end_s"], by_server["end_s"], atol=1e-9)


@pytest.mark.parametrize("round_trip_s", [0.004, 0.014, 0.018])
def test_with_k_of_equal_workers_staleness_is_the_round_trip_in_steps(round_trip_s):
    """All gradients come together, n a step; what they were begun on is a round trip old, in steps of 10 ms, rounded up."""
    link = Link(latency_s=round_trip_s / 2, overhead_s=0, bandwidth_bytes_per_s=float("inf"))
    trace = event.trace(job("kbatch-async", "gradients=3", link=link))
    assert set(staleness_of(trace)) == {math.ceil(round_trip_s / 0.01)}
    np.testing.assert_allclose(of_trace(trace).step_s, 0.01, atol=1e-9)


@pytest.mark.parametrize("gradients", [1, 2, 4, 7])
def test_an_update_is_made_of_k_gradients_from_anybody(gradients):
    trace = event.trace(job("kbatch-async", f"gradients={gradients}", speeds=(1, 5)))
    assert set(of_trace(trace).samples[0]) == {10 * gradients}
    assert of_trace(trace).step_s.mean() == pytest.approx(gradients * 0.01 / 7, rel=0.05)
    senders = of_rank(trace, 0, "reduce")["peer"].value_counts()
    assert senders[1] > 4 * senders[2]


@pytest.mark.parametrize(("window_s", "update_s"), [(0.05, 0.0), (0.05, 0.004), (0.1, 0.001)])
def test_the_master_updates_when_the_window_has_passed(window_s, update_s):
    """Where messages are plentiful: the window from the last update on, then the update."""
    settings = [f"window_s={window_s}", "time_limit_s=0.004"]
    step_s = of_trace(event.trace(job("amb-dg", *settings, update_s=update_s, steps=4))).step_s
    np.testing.assert_allclose(step_s, window_s + update_s, atol=1e-9)


def test_a_message_that_is_coming_when_the_window_ends_is_waited_for():
    link = Link(latency_s=1e-3, overhead_s=1e-5, bandwidth_bytes_per_s=1e9)
    windowed = job("amb-dg", "window_s=0.05", "time_limit_s=0.004", link=link, steps=12)
    over_s = of_trace(event.trace(windowed)).step_s - 0.05
    assert (over_s > -1e-9).all()
    assert 0 < over_s.max() < link.occupancy_s(MLP.message_bytes) + 1e-5


def test_the_master_waits_for_one_message_at_least():
    scenario = job("amb-dg", "window_s=0.001", "time_limit_s=0", "partitions=1", workers=1)
    outcome = of_trace(event.trace(scenario))
    np.testing.assert_allclose(outcome.step_s, 0.01, atol=1e-9)
    assert set(outcome.samples[0]) == {10}


@pytest.mark.parametrize("delay_std_s", [0, 0.02])
def test_without_window_and_partitions_it_is_k_batch_with_k_1(delay_std_s):
    luck = {"stragglers": stragglers.read("niagara*0.01"), "link": Link(latency_s=1e-3)}
    one = event.trace(job("kbatch-async", "gradients=1", f"delay_std_s={delay_std_s}", **luck))
    settings = ["window_s=0", "time_limit_s=0", "partitions=1", f"delay_std_s={delay_std_s}"]
    assert one.rows.equals(event.trace(job("amb-dg", *settings, **luck)).rows)


def test_a_step_takes_the_time_limit_and_less_than_a_partition_whatever_comes():
    """Partitions of 1 ms; receiving costs nothing here."""
    trace = event.trace(job("amb-dg", "time_limit_s=0.0065", "partitions=10", "window_s=0.003"))
    posted = of_rank(trace, 1, "send")["start_s"].to_numpy()
    np.testing.assert_allclose(np.diff(posted), 0.007, atol=1e-9)


PACK_S, COLD_S = 0.02, 0.004  # a rank that idled while it packs would be cold


def test_partitions_that_follow_one_another_are_warm():
    """Packing is work; after a sleep, or a wait as long, the first is cold."""
    costs = Costs(compute=Line(slope_s=1e-3, cold_s=COLD_S), pack=Line(base_s=PACK_S))
    renewing = job("amb-dg", "time_limit_s=0.2", "window_s=0.1", "partitions=10", costs=costs, workers=1, warmup=0)
    asleep = {"stragglers": stragglers.read("niagara"), "stragglers_name": "niagara"}
    for scenario, first_s in ((renewing, 1e-3), (replace(renewing, **asleep), 1e-3 + COLD_S)):
        rows = of_rank(event.trace(scenario), 1, "compute")
        took_s = (rows["end_s"] - rows["start_s"]).groupby(rows["step"])
        np.testing.assert_allclose(took_s.nth(slice(1, None)), 1e-3, atol=1e-9)
        slept = set(of_rank(event.trace(scenario), 1, "sleep")["step"])
        firsts = took_s.first()
        np.testing.assert_allclose(firsts[[step in slept for step in firsts.index]], first_s, atol=1e-9)


@pytest.mark.parametrize("pack_s", [0.0, PACK_S])
def test_a_rank_that_packs_stays_warm(pack_s):
    """A worker idles while the master updates, 4 ms, in which it gets half cold; packing does not count."""
    costs = Costs(compute=Line(slope_s=1e-3, cold_s=COLD_S), update=Line(base_s=0.004), pack=Line(base_s=pack_s))
    scenario = job("fmb", costs=costs, workers=1)
    for found in (event.run(scenario)[0], by_engine(scenario)):
        np.testing.assert_allclose(found.step_s, 0.01 + pack_s + 0.004 + COLD_S / 2, atol=1e-9)


def test_new_parameters_are_taken_up_between_partitions_and_the_gradient_is_of_the_oldest():
    trace = event.trace(job("amb-dg", "time_limit_s=1", "partitions=10", "window_s=0.0025", speeds=(1, 1, 3, 7)))
    versions = of_rank(trace, 1, "compute").groupby("step")["version"].agg(["min", "max", "first"])
    assert (versions["max"] > versions["min"] + 1).mean() > 0.8
    sent = of_rank(trace, 1, "send").set_index("step")["version"]
    assert (sent == versions["first"].loc[sent.index]).all()


def test_a_worker_takes_the_newest_and_skips_those_before():
    """Ten updates a step of its own: it receives them all, and takes up one."""
    trace = event.trace(job("kbatch-async", "gradients=1", workers=2, speeds=(1, 1, 10.01), steps=40))
    received, taken_up = (len(of_rank(trace, 1, activity)) for activity in ("receive", "update"))
    assert received > 7 * taken_up
    # The last is what it finds when training is over.
    assert (of_rank(trace, 1, "update")["version"].diff()[1:-1] > 7).all()


def test_nobody_waits_but_for_the_gradient_before():
    """A link that takes 30 ms for a gradient of 10 ms: one is on its way at most, and it sets the pace. Whose bytes move is not idle."""
    slow = Link(latency_s=0, overhead_s=0, bandwidth_bytes_per_s=MLP.message_bytes / 0.03)
    for link, pace_s in ((FREE, 0.01), (slow, 0.03)):
        trace = event.trace(job("kbatch-async", "gradients=1", workers=1, link=link))
        sent = of_rank(trace, 1, "send")
        assert (sent["start_s"].to_numpy()[1:] >= sent["end_s"].to_numpy()[:-1] - 1e-9).all()
        assert of_trace(trace).idle_fraction[0, 1] == pytest.approx(0, abs=0.02)
        assert np.median(np.diff(sent["start_s"])) == pytest.approx(pace_s)


@pytest.mark.parametrize("slots", [1, 4])
def test_each_worker_has_one_gradient_under_way(slots):
    """A master's port that passes a gradient in the time in which twelve workers compute six: the next leaves once one is taken."""
    link = Link(latency_s=1e-3, overhead_s=1e-4, bandwidth_bytes_per_s=MLP.message_bytes / 0.02)
    hosts = [Host(name=f"h{i}", speed=1 - i / 37, slots=slots, cores=2) for i in range(13 // slots + 1)]
    costs = {"mlp": Costs(compute=Line(slope_s=1e-3))}
    where = Cluster(hosts=hosts, network=link, costs=costs)
    trace = event.trace(Scenario(protocols.make("kbatch-async"), MLP, 12, 4, 0, batch=40, cluster=where))
    taken = of_rank(trace, 0, "receive")
    for worker in range(1, 13):
        sent, came = of_rank(trace, worker, "send"), taken[(taken["peer"] == worker) & (taken["bytes"] > 100)]
        taken_s, next_s = came["end_s"].to_numpy() - link.overhead_s, sent["start_s"].to_numpy()[1:]
        together = min(len(taken_s), len(next_s))
        assert (sent["end_s"].to_numpy()[: len(came)] <= came["end_s"].to_numpy() + 1e-9).all()
        assert (next_s[:together] >= taken_s[:together] - 1e-9).all()
        assert len(came) <= len(sent) <= len(came) + 1


def test_k_is_the_number_of_workers_unless_it_is_given():
    assert set(of_trace(event.trace(job("kbatch-async", workers=7))).samples[0]) == {70}


def delays_of(scenario: Scenario, rank: int):
    return Drawn(scenario, scenario.protocol.delay_std_s).noises(0, rank, "delay")


def test_the_first_update_comes_after_both_delays():
    scenario = job("kbatch-async", "gradients=1", "delay_std_s=0.05", workers=1, warmup=0)
    first_s = of_trace(event.trace(scenario)).step_s[0, 0]
    worker_s, master_s = (delays_of(scenario, rank)[0] for rank in (1, 0))
    assert first_s >= worker_s + 0.01 - 1e-9
    assert first_s <= worker_s + 0.01 + master_s + 1e-9  # or a later gradient has overtaken the first


def test_messages_come_in_the_order_in_which_their_delays_expire():
    scenario = job("kbatch-async", "gradients=1", "delay_std_s=0.05", workers=3, steps=200)
    trace = event.trace(scenario)
    added = of_rank(trace, 0, "reduce")
    sent = trace.rows[(trace.rows["activity"] == "send") & (trace.rows["rank"] > 0)]
    came_s = sent["start_s"].sort_values().to_numpy()  # they take no time
    delays_s = Drawn(scenario, 0.05).noises(0, 0, "delay")
    expire_s = np.sort(came_s + [delays_s[k] for k in range(len(came_s))])
    np.testing.assert_allclose(added["end_s"], expire_s[: len(added)], atol=1e-9)
    overtaken = added[added["peer"] == 1]["version"].diff() < 0
    assert overtaken.any()


@pytest.mark.parametrize("name", BOTH)
def test_delays_make_gradients_stale_and_the_note_says_so(name):
    traces = [event.trace(job(name, f"delay_std_s={std_s}", steps=6)) for std_s in (0, 0.05)]
    prompt, late = (staleness_of(trace).mean() for trace in traces)
    assert late > prompt + 0.3
    said = notes(job(name), of_trace(traces[1]), "event", traces[1])
    assert any(f"staleness of gradients, in updates: mean {late:.2f}" in note for note in said)


@pytest.mark.parametrize("name", BOTH)
def test_one_process_alone_is_refused(name):
    with pytest.raises(WrongSetting, match=f"--workers.*from 1 with {name}"):
        job(name, workers=0)
