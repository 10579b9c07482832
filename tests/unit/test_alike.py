"""Jobs in which nothing is drawn: one replication is all, and only then."""

from dataclasses import replace

import event
import pytest
from scenarios import CLUSTERS, SETTINGS, bare

from sim import protocols
from sim.job.scenario import Scenario
from sim.laws import Constant, Exponential, LogNormal
from sim.model.costs import Line
from sim.runs.replications import Replications
from sim.simulation import simulate


def job(said=("fmb",), cluster="one core each", **costs) -> Scenario:
    model = bare("toy_fc")
    model = model.model_copy(update={"costs": model.costs.model_copy(update=costs)})
    text, none = protocols.make(*said[:1], said[1:]), Constant(value=0.0)
    return Scenario(text, model, 3, steps=3, warmup=1, batch=16, cluster=CLUSTERS[cluster], stragglers=none)


@pytest.mark.parametrize("cluster", ["two cores", "credits"])
def test_replications_of_jobs_that_are_alike_are_equal(cluster):
    for said in SETTINGS[::3]:
        one = job(said, cluster)
        if one.draws.are_alike:
            first, second = (event.run(one, number, want_trace=False)[0] for number in (0, 1))
            assert (first.step_s == second.step_s).all(), said


@pytest.mark.parametrize(
    "purpose",
    ["noise", "input_noise", "update_noise", "common_noise", "common_input_noise", "common_update_noise", "run"],
)
def test_a_law_of_any_cost_makes_them_differ(purpose):
    assert job().draws.are_alike
    assert not job(**{purpose: LogNormal(cv=0.1)}).draws.are_alike


def test_what_else_is_drawn_makes_them_differ():
    assert not replace(job(), stragglers=Exponential(mean=0.01)).draws.are_alike
    assert not job(background=Line(base_s=1e-3)).draws.are_alike
    assert not job(cluster="fair shares").draws.are_alike
    polls = job(cluster="polls")
    assert not polls.draws.are_alike
    assert not replace(polls, cluster=polls.cluster.model_copy(update={"oversleep_s": 0.0})).draws.are_alike
    assert not job(("amb-dg", "time_limit_s=0.02", "delay_std_s=0.01")).draws.are_alike


def test_a_job_without_draws_is_simulated_once(monkeypatch):
    calls = []
    outcome = Replications.outcome
    monkeypatch.setattr(Replications, "outcome", lambda self, *given: calls.append(self) or outcome(self, *given))
    found = simulate(job(), "event", 5)
    assert found.step_s.shape == (5, 3)
    assert (found.step_s == found.step_s[0]).all()
    once = len(calls)
    simulate(job(noise=LogNormal(cv=0.1)), "event", 5)
    assert len(calls) == 2 * once + 4
