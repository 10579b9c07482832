"""A minibatch that was fetched ahead is the one that is computed, whole, in parts or until a moment; in all worlds."""

from dataclasses import dataclass

import event
import pytest
from event import agree

from sim.job.scenario import Scenario
from sim.language.text import Text
from sim.language.verbs import compute, compute_until, fetch, gather, push, send
from sim.model import workload
from sim.model.costs import Costs, Line
from sim.platform.cluster import Cluster, Host

COSTS = Costs(compute=Line(slope_s=1e-4), input=Line(slope_s=1e-5), partition=Line(slope_s=1e-4))


@dataclass(frozen=True)
class Fetching(Text):
    """Fetches while parameters are on their way, or leaves it to what computes."""

    how: str = "whole"
    ahead: bool = True

    servers = 1

    def __call__(self, me):
        for _ in me.steps():
            if me.rank == me.master:
                yield from send(me, me.weights, me.workers)
                yield from gather(me, me.workers, me.gradient)
                yield from me.update()
                continue
            if self.ahead:
                yield from fetch(me)
            yield from me.take(me.master, me.weights)
            if self.how == "whole":
                yield from compute(me)
            elif self.how == "until":
                yield from compute_until(me, me.now() + 1.0, 4)
            else:
                for micro in range(4):
                    yield from compute(me, micro, 4)
            yield from push(me, me.servers)


def job(how: str, ahead: bool) -> Scenario:
    cluster = Cluster(hosts=(Host(count=4),), costs={"mlp": COSTS})
    return Scenario(Fetching(how, ahead), workload.read("mlp"), batch=32, steps=5, warmup=1, cluster=cluster)


@pytest.mark.parametrize("how", ["whole", "until", "parts"])
@pytest.mark.parametrize("ahead", [False, True])
def test_a_step_fetches_one_minibatch(how, ahead):
    scenario = job(how, ahead)
    inputs = event.trace(scenario).rows.query("activity == 'input'")
    seconds = (inputs["end_s"] - inputs["start_s"]).sum()
    assert seconds == pytest.approx(scenario.workers * scenario.rounds * 32e-5)


@pytest.mark.parametrize("how", ["whole", "until", "parts"])
@pytest.mark.parametrize("ahead", [False, True])
def test_both_worlds_fetch_alike(how, ahead):
    agree(job(how, ahead))
