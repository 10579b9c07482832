"""A minibatch that was fetched ahead is the one that is computed, whole, in parts or until a moment; in all worlds."""

from dataclasses import dataclass

import event
import pytest
from event import agree

from sim.job.scenario import Scenario
from sim.model import workload
from sim.model.costs import Costs, Line
from sim.platform.cluster import Cluster, Host
from sim.protocols.base import Protocol
from sim.verbs import gather
from sim.verbs.me import GRADIENT, PARAMETERS, Partition

COSTS = Costs(compute=Line(slope_s=1e-4), input=Line(slope_s=1e-5), partition=Line(slope_s=1e-4))


@dataclass(frozen=True)
class Fetching(Protocol):
    """Fetches while parameters are on their way, or leaves it to what computes."""

    how: str = "whole"
    ahead: bool = True

    def worker(self, me):
        for _ in me.steps():
            if self.ahead:
                yield from me.fetch()
            yield from me.take_up((yield from me.receive(me.master)))
            if self.how == "whole":
                yield from me.compute()
            elif self.how == "until":
                yield from me.compute_until(me.now_s + 1.0, 4)
            else:
                for index in range(4):
                    yield from me.compute(Partition(index, 4))
            yield from me.send(GRADIENT, me.master)

    def master(self, me):
        for _ in me.steps():
            yield from me.send(PARAMETERS, me.workers)
            yield from gather(me, me.workers)
            yield from me.update()


def job(how: str, ahead: bool) -> Scenario:
    cluster = Cluster(hosts=(Host(count=4),), costs={"mlp": COSTS})
    return Scenario(Fetching(how, ahead), workload.read("mlp"), batch=32, steps=5, warmup=1, cluster=cluster)


@pytest.mark.parametrize("how", ["whole", "until", "parts"])
@pytest.mark.parametrize("ahead", [False, True])
def test_a_step_fetches_one_minibatch(how, ahead):
    scenario = job(how, ahead)
    inputs = event.trace(scenario).rows.query("activity == 'input'")
    assert len(inputs) == scenario.workers * scenario.rounds


@pytest.mark.parametrize("how", ["whole", "until", "parts"])
@pytest.mark.parametrize("ahead", [False, True])
def test_both_worlds_fetch_alike(how, ahead):
    agree(job(how, ahead))
