"""Gradients that were computed with older parameters: how many updates each had missed."""

import event
import pytest

from sim import protocols
from sim.answers.outcome import staleness_of
from sim.job.scenario import Scenario
from sim.laws import LogNormal
from sim.model import workload
from sim.model.costs import Costs, Line
from sim.platform.cluster import Cluster, Host


def missed(name: str, *settings: str, workers: int = 4, noise: float = 0.0) -> float:
    """On the average."""
    costs = Costs(compute=Line(base_s=0.01), noise=LogNormal(cv=noise))
    cluster = Cluster(hosts=[Host(count=workers + 1)], costs={"mlp": costs})
    text = protocols.make(name, settings)
    scenario = Scenario(text, workload.read("mlp"), workers=workers, cluster=cluster, steps=30)
    return staleness_of(event.trace(scenario)).mean()


def test_behind_a_barrier_no_gradient_is_stale():
    assert missed("ps-sync", "barrier=true") == 0


def test_asynchronous_workers_that_come_one_by_one_miss_an_update_of_each_other_one():
    """But for updates made between a worker's own and the answer to its request, a hundredth of a step and more when it has to queue."""
    assert missed("ps-async", noise=0.5) == pytest.approx(3, rel=0.05)
    assert missed("ps-async", workers=1) == 0


def test_asynchronous_workers_that_come_together_are_answered_after_the_next_one_s_gradient():
    """Its bytes take the port longer than an acknowledgement and a request: all but the last miss one update less."""
    assert missed("ps-async") == pytest.approx((3 * 2 + 1 * 3) / 4)
    assert missed("ps-async", workers=3) == pytest.approx((2 * 1 + 1 * 2) / 3)
