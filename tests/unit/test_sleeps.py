"""Every sleep of a text draws anew: the first of a step as ever, further ones independently of it, and alike in all worlds."""

from dataclasses import dataclass

import event
import numpy as np
import pytest
from event import agree
from law_examples import SEQUENCES

from sim import stragglers
from sim.job.scenario import Scenario
from sim.language.collectives import allreduce
from sim.language.text import Text
from sim.language.verbs import compute, gather, push, send
from sim.model import workload
from sim.protocols.base import protocol_of


@dataclass(frozen=True)
class LocalSteps(Text):
    """So many local steps between two sums."""

    local_steps: int = 3

    def __call__(self, me):
        for _ in me.steps():
            for _ in range(self.local_steps):
                yield from me.sleep()
            yield from compute(me)
            yield from allreduce(me, me.gradient, me.workers)
            yield from me.update()


@dataclass(frozen=True)
class Served(Text):
    """Two sleeps beside a server, without rounds of its own."""

    servers: int = 1

    def __call__(self, me):
        if me.rank in me.servers:
            for _ in me.steps():
                yield from send(me, me.weights, me.workers)
                yield from gather(me, me.workers, me.gradient)
                yield from me.update()
        else:
            while (yield from me.follow(me.master, me.weights)):
                for index in range(2):
                    yield from me.sleep()
                    yield from compute(me, index, 2)
                yield from push(me, me.servers)


def job(protocol, law, **more):
    return Scenario(
        protocol, workload.read("mlp"), stragglers=stragglers.read(law), **{"steps": 10, "workers": 2} | more
    )


def sleeps(scenario) -> np.ndarray:
    """Seconds of the sleeps of the first worker, in their order."""
    rows = event.trace(scenario).rows
    slept = rows[(rows["activity"] == "sleep") & (rows["rank"] == scenario.servers)]
    return (slept["end_s"] - slept["start_s"]).to_numpy()


@pytest.mark.parametrize("law", ["lognormal(mean=50ms, cv=1)", "lognormal(mean=9ms, cv=1) + exponential(mean=7ms)"])
def test_the_first_sleep_of_a_step_is_the_recorded_one_and_others_differ(law):
    scenario = job(protocol_of(LocalSteps)(), law)
    found = sleeps(scenario).reshape(scenario.rounds, 3)
    np.testing.assert_allclose(found[:, 0], scenario.draws.sleeps(0, 1).first(scenario.rounds))
    np.testing.assert_allclose(found[:, 2], scenario.draws.sleeps(0, 1, 2).first(scenario.rounds))
    assert len(np.unique(found.round(9))) == found.size


def test_local_steps_are_independent():
    scenario = job(protocol_of(LocalSteps)(), "exponential(mean=50ms)", steps=490, workers=1)
    found = sleeps(scenario).reshape(scenario.rounds, 3)
    assert np.abs(np.corrcoef(found.T) - np.eye(3)).max() < 0.15
    assert found.mean() == pytest.approx(0.05, rel=0.1)


def test_sleeps_beside_servers_draw_anew():
    found = sleeps(job(protocol_of(Served)(), "exponential(mean=50ms)", steps=10, warmup=2))
    assert len(np.unique(found.round(9))) == len(found) > 20


@pytest.mark.parametrize("law", ["lognormal(mean=50ms, cv=1)", *SEQUENCES])
def test_worlds_sleep_alike(law):
    made = SEQUENCES.get(law) or stragglers.read(law)
    scenario = Scenario(protocol_of(LocalSteps)(), workload.read("mlp"), stragglers=made, steps=8, workers=3)
    agree(scenario, 2)


def test_a_slow_rank_stays_slow_through_a_step():
    """Of a chain the state is the step's; what it sleeps is each call's."""
    found = sleeps(
        job(protocol_of(LocalSteps)(), "markov(p_slow=0.3, p_recover=0.3, seconds=exponential(mean=50ms))", steps=90)
    )
    slow = (
        job(protocol_of(LocalSteps)(), "markov(p_slow=0.3, p_recover=0.3, seconds=1)", steps=90)
        .draws.sleeps(0, 1)
        .first(100)
    )
    assert len(found) == 3 * np.count_nonzero(slow)
    assert len(np.unique(found.round(9))) == len(found)
