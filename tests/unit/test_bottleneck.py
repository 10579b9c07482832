"""The part that bounds a job with servers is named, and its share is the closed form's."""

import event
import pytest

from sim import protocols
from sim.answers import bottleneck
from sim.job.scenario import Scenario
from sim.laws import LogNormal
from sim.model import workload
from sim.model.costs import Costs, Line
from sim.platform.cluster import Cluster, Host, Link
from sim.runs.replications import Replications

MLP = workload.read("mlp")


def shares(workers=4, bandwidth=1e12, **costs):
    costs = {"compute": Line(base_s=0.01), **costs}
    network = Link(latency_s=0, overhead_s=0, bandwidth_bytes_per_s=bandwidth)
    cluster = Cluster(hosts=[Host(count=workers + 1)], network=network, costs={"mlp": Costs(**costs)})
    scenario = Scenario(protocols.make("ps-async"), MLP, workers=workers, cluster=cluster, steps=60)
    return bottleneck.utilisation(event.trace(scenario), scenario)


def busiest(**job) -> str:
    found = shares(**job)
    return max(found, key=found.get)


def test_each_part_can_be_the_bottleneck():
    port_s = MLP.message_bytes / 1e8
    assert busiest() == "compute"
    assert busiest(update=Line(base_s=0.01)) == "server apply"
    assert busiest(bandwidth=1e8, workers=20) == "server port"
    assert busiest(bandwidth=1e8, workers=1, compute=Line(base_s=port_s / 10)) in ("worker port", "server port")


@pytest.mark.parametrize("workers", [1, 4])
def test_shares_are_the_closed_forms(workers):
    """10 ms of computation and updates of 1 ms: equal workers push together, and what they then ask for waits behind all updates.

    So a step of each takes 10 ms and as many ms as there are workers.
    """
    found, step_ms = shares(workers, update=Line(base_s=0.001)), 10 + workers
    assert found["server apply"] == pytest.approx(workers / step_ms, rel=1e-3)
    assert found["compute"] == pytest.approx(10 / step_ms, rel=1e-3)


def test_the_warning_names_the_part():
    assert bottleneck.warning({"compute": 0.3, "server port": 0.97}).startswith("server port bounds throughput")
    assert bottleneck.warning({"compute": 0.6, "server port": 0.2}).startswith("compute is the busiest part")


def staleness(name: str, *settings: str, workers: int = 4, noise: float = 0.0) -> float:
    costs = Costs(compute=Line(base_s=0.01), noise=LogNormal(cv=noise))
    cluster = Cluster(hosts=[Host(count=workers + 1)], costs={"mlp": costs})
    scenario = Scenario(protocols.make(name, settings), MLP, workers=workers, cluster=cluster, steps=60)
    return bottleneck.staleness(event.trace(scenario)).mean()


def test_behind_a_barrier_no_gradient_is_stale():
    assert staleness("ps-sync", "barrier=true") == 0


def test_asynchronous_workers_that_come_one_by_one_miss_an_update_of_each_other_one():
    """But for updates made between a worker's own and the answer to its request, a hundredth of a step and more when it has to queue."""
    assert staleness("ps-async", noise=0.5) == pytest.approx(3, rel=0.05)
    assert staleness("ps-async", workers=1) == 0


def test_asynchronous_workers_that_come_together_are_answered_after_the_next_one_s_gradient():
    """Its bytes take the port longer than an acknowledgement and a request: all but the last miss one update less."""
    assert staleness("ps-async") == pytest.approx((3 * 2 + 1 * 3) / 4)
    assert staleness("ps-async", workers=3) == pytest.approx((2 * 1 + 1 * 2) / 3)


@pytest.mark.parametrize("want_trace", [True, False])
@pytest.mark.parametrize(("workers", "bounds"), [(20, True), (1, False)])
def test_a_port_that_earns_credit_is_as_busy_as_the_rate_that_lasts(workers, bounds, want_trace):
    """It sends at 1 Gbyte/s while it has credit, of which it earns a tenth: the share is that of what it earns in a step."""
    network = Link(latency_s=0, overhead_s=0, bandwidth_bytes_per_s=1e9, sustained_bytes_per_s=1e8)
    cluster = Cluster(hosts=[Host(count=workers + 1)], network=network, costs={"mlp": Costs(compute=Line(base_s=0.01))})
    scenario = Scenario(protocols.make("ps-async"), MLP, workers=workers, cluster=cluster, steps=60)
    outcome, trace = event.run(scenario)
    found = bottleneck.utilisation(trace, scenario) if want_trace else Replications(scenario).arrivals(0).busy
    assert (max(found, key=found.get) == "server port") == bounds
    gradients_per_s = outcome.throughput()[0] / scenario.batch
    assert found["server port"] == pytest.approx(MLP.message_bytes * gradients_per_s / 1e8, rel=0.03)
