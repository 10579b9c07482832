"""The part that bounds a job with servers is named, and its share is the closed form's."""

from __future__ import annotations

import pytest

from sim import bottleneck, protocols, workload
from sim.cluster import Cluster, Host, Link
from sim.costs import Costs, Line
from sim.scenario import Scenario
from sim.worlds import event

MLP = workload.read("mlp")


def shares(workers=4, bandwidth=1e12, **costs):
    costs = {"compute": Line(base_s=0.01), **costs}
    network = Link(latency_s=0, overhead_s=0, bandwidth_bytes_per_s=bandwidth)
    cluster = Cluster(hosts=[Host(count=workers + 1)], network=network, costs={"mlp": Costs(**costs)})
    scenario = Scenario(protocols.make("ps-async"), MLP, workers=workers, cluster=cluster, steps=60)
    return bottleneck.utilisation(event.run(scenario), scenario)


def busiest(**job) -> str:
    found = shares(**job)
    return max(found, key=found.get)


def test_each_part_can_be_the_bottleneck():
    port_s = MLP.message_bytes / 1e8
    assert busiest() == "compute"
    assert busiest(update=Line(base_s=0.01)) == "server apply"
    assert busiest(bandwidth=1e8, workers=20) == "server port"
    assert busiest(bandwidth=1e8, workers=1, compute=Line(base_s=port_s / 10)) in ("worker port", "server port")


def test_shares_are_the_closed_forms():
    """Four workers of 10 ms and updates of 1 ms: a gradient each 2.75 ms or so, so the server is busy 4 / 11 of the time."""
    found = shares(update=Line(base_s=0.001))
    assert found["server apply"] == pytest.approx(4 / 11, rel=0.05)
    assert found["compute"] == pytest.approx(10 / 11, rel=0.05)


def test_the_warning_names_the_part():
    assert bottleneck.warning({"compute": 0.3, "server port": 0.97}).startswith("server port bounds throughput")
    assert bottleneck.warning({"compute": 0.6, "server port": 0.2}).startswith("compute is the busiest part")


def test_staleness_of_a_barrier_is_0_and_of_async_one_less_than_the_workers():
    cluster = Cluster(hosts=[Host(count=5)], costs={"mlp": Costs(compute=Line(base_s=0.01))})
    for name, settings, expected in (("ps-sync", ["barrier=true"], 0), ("ps-async", [], 3)):
        scenario = Scenario(protocols.make(name, settings), MLP, workers=4, cluster=cluster, steps=60)
        assert bottleneck.staleness(event.run(scenario)).mean() == pytest.approx(expected, abs=0.1)
