"""What a prediction rests on: costs of this very model, and by what a job is beyond the runs that were fitted."""

from dataclasses import replace

import event
import pytest

from calibration.profiles import FREE, Source, make
from sim import stragglers as laws
from sim.answers import sources
from sim.base.errors import WrongSetting
from sim.job.scenario import Scenario
from sim.model import workload
from sim.model.costs import Costs, Line
from sim.model.workload import Workload
from sim.platform.cluster import Cluster, Host, Link, Model, Provenance
from sim.simulation import simulate
from sim.texts import FixedMinibatch

MLP = workload.NAMED["mlp"]
LARGE = Workload(
    name="mlp", variables=[{"name": "w", "shape": (12_000, 10_000)}], costs=Costs(compute=Line(base_s=9.0))
)
COSTS = {"mlp": Costs(compute=Line(base_s=0.1))}
SEEN = {"models": {"mlp": Model.of(MLP)}, "workers": 2, "hosts": 3, "repeated": ("mlp",)}


def scenario(workers=2, model=MLP, network=None, hosts=None, **seen):
    """On a profile that was fitted to runs of `SEEN`, but for what is given."""
    known = Provenance(**SEEN | seen)
    where = Cluster(hosts=[hosts or Host(count=99)], network=network or Link(), costs=COSTS, provenance=known)
    return Scenario(FixedMinibatch(), model, workers=workers, cluster=where)


def test_a_job_like_those_fitted_is_not_beyond_them():
    assert sources.beyond(scenario()) is None
    assert sources.notes(scenario()) == []


def test_a_workload_of_the_same_name_takes_no_costs_of_another_model():
    """Of 120 M parameters, and called as one of 79 thousand is."""
    job = scenario(model=LARGE)
    assert job.costs == LARGE.costs
    assert scenario().costs == COSTS["mlp"]
    (note,) = sources.notes(job)
    assert "another model of 79,510 parameters (this one has 120,000,000)" in note


def test_names_of_variables_and_costs_change_no_model():
    renamed = [variable.model_copy(update={"name": f"my {variable.name}"}) for variable in MLP.variables]
    other = MLP.model_copy(update={"variables": tuple(renamed), "costs": Costs(), "batch": 3, "flops_per_sample": 9.0})
    assert Model.of(other) == Model.of(MLP)
    assert Model.of(MLP.model_copy(update={"sample_shape": (3,)})) != Model.of(MLP)


@pytest.mark.parametrize(
    ("job", "said", "doublings"),
    [
        ({"workers": 4, "hosts_seen": 5}, None, 0),
        ({"workers": 4}, "fitted on 2 workers, asked for 4", 1),
        ({"workers": 3, "network": FREE, "hosts_seen": 4}, "fitted on 2 workers, asked for 3", 0.585),
        ({"workers": 2, "network": FREE}, None, 0),
        ({"workers": 4, "hosts": Host(cores=9), "hosts_seen": 1}, None, 0),
        ({"workers": 2, "hosts_seen": 1}, "fitted on 1 host, asked for 3", 1.585),
        ({"workers": 15, "workers_seen": 40, "hosts_seen": 2}, "fitted on 2 hosts, asked for 16", 3),
        ({"workers": 16, "workers_seen": None}, "fitted on 1 worker, asked for 16", 4),
    ],
)
def test_a_larger_job_is_beyond_what_was_fitted(job, said, doublings):
    """Twice the workers on hosts that were fitted have been compared with real runs; of free links none."""
    seen = {name.removesuffix("_seen"): job.pop(name) for name in list(job) if name.endswith("_seen")}
    found = sources.beyond(_with(scenario(**job), seen))
    assert (None if found is None else str(found)) == said
    assert (found.doublings if found else 0) == pytest.approx(doublings, abs=1e-3)


def _with(made, seen):
    known = made.cluster.provenance.model_copy(update=seen)
    return replace(made, cluster=made.cluster.model_copy(update={"provenance": known}))


def test_free_links_are_said():
    """Between hosts; on one host there is nothing to say."""
    assert sources.notes(scenario(network=FREE)) == [
        "links are free: the fitted runs do not separate messages from work"
    ]
    assert sources.notes(scenario(network=FREE, hosts=Host(cores=9), crowded=True)) == []


def test_sleeps_of_another_law_than_was_fitted_are_said():
    """A factor on a law is the same law; a profile that does not say its laws says nothing."""
    known = {"slept": True, "laws": ("niagara",)}
    cedar = {"stragglers_name": "cedar*0.1", "stragglers": laws.read("cedar*0.1")}
    for seen, said in (
        (known, "those of the runs that were fitted were of niagara"),
        ({"slept": False}, "no fitted run slept"),
    ):
        notes = sources.notes(replace(scenario(**seen), **cedar))
        assert f"sleeps are of cedar; {said}: the interval contains caches that are cold after a sleep" in notes
    for name, laws_known in (("niagara*0.5", known), ("cedar*0.1", {"slept": True})):
        job = replace(scenario(**laws_known), stragglers_name=name, stragglers=laws.read(name))
        assert not any("sleeps are of" in note for note in sources.notes(job))


def test_an_older_profile_is_said_to_be_one():
    assert "older version" in sources.notes(scenario(models={}))[0]


def test_an_evaluation_that_no_fitted_run_had_is_no_free_one():
    job = replace(scenario(), test_size=100)
    assert job.costs.evaluate(100) == pytest.approx(COSTS["mlp"].compute(100) / 3)
    assert (
        "evaluation was not measured: 100 samples are taken to need 33.3 ms, a third of computing them"
        in sources.notes(job)
    )
    measured = COSTS["mlp"].model_copy(update={"evaluate": Line(slope_s=1e-3)})
    own = replace(scenario(model=LARGE), test_size=2)
    assert any("evaluation was not measured: 2 samples" in note for note in sources.notes(own))
    known = replace(job, cluster=job.cluster.model_copy(update={"costs": {"mlp": measured}}))
    assert known.costs.evaluate(100) == pytest.approx(0.1)
    assert sources.notes(known) == []


def test_a_batch_that_nobody_gave_is_said():
    model = Workload(name="own", parameters=1000, layers=1, flops_per_sample=1e6)
    said = "own says no batch: 256 samples per worker and step are taken unless --batch says otherwise"
    whole = model.model_copy(update={"batch": 256})
    for one, batch, whether in ((model, None, True), (model, 8, False), (whole, None, False), (MLP, None, False)):
        job = Scenario(FixedMinibatch(), one, steps=2, batch=batch)
        assert (said in simulate(job, replications=1).notes) is whether


def fitted(*jobs):
    return make([Source(f"run{i}", event.trace(job)) for i, job in enumerate(jobs)], "x")


def job(model=MLP, workers=2, seed=0):
    where = Cluster(hosts=[Host(count=9)], costs={"mlp": Costs(compute=Line(base_s=0.01))})
    return Scenario(FixedMinibatch(), model, workers=workers, steps=8, warmup=1, batch=8, seed=seed, cluster=where)


def test_a_fit_says_what_it_saw():
    known = fitted(job(), job(seed=1), job(workers=3, seed=2), job(workers=3, seed=3)).provenance
    assert (known.workers, known.hosts, known.repeated, known.slept) == (3, 4, ("mlp",), False)
    assert known.models == {"mlp": Model.fitted(MLP, 8)}
    assert fitted(job()).provenance.repeated == ()
    slept = replace(job(), stragglers_name="niagara*0.01", stragglers=laws.read("niagara*0.01"))
    assert fitted(slept).provenance.laws == ("niagara",)


def test_two_models_of_one_name_are_not_fitted_together():
    with pytest.raises(WrongSetting, match=r"run1: given 'two models called mlp, of 79,510 and 120,000,000"):
        fitted(job(), job(LARGE))
