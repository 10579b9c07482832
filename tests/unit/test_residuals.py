"""What a profile says of one more run holds it as often as it says, and a profile knows how far off it is of its own runs."""

from dataclasses import replace

import numpy as np
import pytest

from calibration import contentions, residuals
from calibration.placement import Placement
from calibration.profiles import Probe, Source, make
from calibration.residuals import Residuals
from sim import event, outcome, stragglers, vector, workload
from sim.cluster import Cluster, Host, Link
from sim.costs import Costs, Line
from sim.laws import LogNormal
from sim.notes import notes
from sim.protocols.fmb import FixedMinibatch
from sim.scenario import Scenario

PLANTED = Costs(compute=Line(base_s=4e-3, slope_s=2e-4), update=Line(base_s=2e-3), noise=LogNormal(cv=0.05), error=0.08)
DRIFTING = Cluster(hosts=[Host(count=2)], costs={"mlp": PLANTED})
JOB = {"workload": workload.read("mlp"), "workers": 1, "warmup": 1, "steps": 8}


def runs_of(cluster, seed, batches=(64, 256), repeats=2, **about):
    """A calibration: runs of two batches, each with its own luck."""
    for number, batch in enumerate(batches * repeats):
        job = Scenario(FixedMinibatch(), batch=batch, cluster=cluster, seed=1000 * seed + number, **(JOB | about))
        yield Source(f"run{number}", event.trace(job))


def test_intervals_hold_nine_new_runs_in_ten():
    """Of many calibrations of few runs; by what they plug in alone, they would hold seven. Thirty say it to about 0.025."""
    new = vector.run(Scenario(FixedMinibatch(), batch=128, cluster=DRIFTING, seed=10**6, **JOB), 50).throughput()
    covered = []
    for seed in range(30):
        profile = make(list(runs_of(DRIFTING, seed)), "few runs")
        job = Scenario(FixedMinibatch(), batch=128, cluster=profile, seed=seed, **JOB)
        low, high = vector.run(job, 20).interval()
        covered.append(np.mean((low <= new) & (new <= high)))
    assert np.mean(covered) == pytest.approx(0.9, abs=3 * 0.025)


def known(cluster, **about):
    return make(list(runs_of(cluster, 0, **about)), "known")


def test_worlds_draw_the_same_error():
    job = Scenario(FixedMinibatch(), cluster=DRIFTING, **JOB)
    assert len({job.error_factor(replication) for replication in range(5)}) == 5
    np.testing.assert_allclose(vector.run(job, 2).step_s[1], outcome.of_trace(event.trace(job, 1)).step_s[0], rtol=1e-9)


def test_error_is_a_factor_on_all_work_with_median_one():
    job = Scenario(FixedMinibatch(), cluster=DRIFTING, **JOB)
    logs = np.log([job.error_factor(replication) for replication in range(200)])
    assert np.median(logs) == pytest.approx(0, abs=0.01)
    assert logs.std() == pytest.approx(0.08, rel=0.1)


def test_without_drift_nothing_is_added():
    still = DRIFTING.model_copy(
        update={"costs": {"mlp": PLANTED.model_copy(update={"error": 0.0, "noise": LogNormal(cv=0)})}}
    )
    assert known(still).costs["mlp"].error < 1e-3


def test_sleeps_are_the_runs_own():
    """Sleeps that differ from run to run, and are known, are no error of the profile."""
    still = DRIFTING.model_copy(
        update={"costs": {"mlp": PLANTED.model_copy(update={"error": 0.0, "noise": LogNormal(cv=0)})}}
    )
    law = {"stragglers": stragglers.read("niagara*0.01"), "stragglers_name": "niagara*0.01"}
    assert known(still, **law).costs["mlp"].error < 1e-3


def test_ranks_are_played_where_they_sat():
    """A rank on each of two hosts that would have taken both: its messages pass the network."""
    link = Link(latency_s=1e-3, bandwidth_bytes_per_s=1e8)
    still = PLANTED.model_copy(update={"error": 0.0, "noise": LogNormal(cv=0)})
    cluster = Cluster(hosts=[Host(name=n, cores=2, slots=1) for n in "ab"], network=link, costs={"mlp": still})
    sources = list(runs_of(cluster, 0))
    for source in sources:
        source.trace.header = replace(source.trace.header, hosts=(("a", 2), ("b", 2)))
    profile = make(sources, "apart", Probe(cores=2, network=link.model_dump()))
    assert [host.slots for host in profile.hosts] == [2, 2]
    assert profile.costs["mlp"].error < 1e-3


def test_work_does_not_answer_for_the_network():
    """Runs off by a tenth of which cores take a hundredth: no factor of ten on work."""
    off, spread = np.array([-0.1, 0.1, -0.1, 0.1]), np.zeros(4)
    by_share = [Residuals(off, spread, np.full(4, share), 1).error() for share in (1.0, 0.5, 0.01)]
    assert by_share[1] == pytest.approx(2 * by_share[0])
    assert by_share[2] == by_share[1]


def test_as_many_runs_as_kinds_know_nothing_of_runs():
    profile = known(DRIFTING, repeats=1)
    assert profile.costs["mlp"].error == 0
    assert any("2 runs of 2 kinds cannot tell" in note for note in profile.provenance.notes)


def test_the_error_of_contention_is_as_large_as_it_says():
    """Of calibrations of two runs by one worker and two by two, on cores that drift from run to run."""
    host = Host(cores=2, slots=8, contention=0.3)
    shared = DRIFTING.model_copy(update={"hosts": (host,)})
    found = []
    for seed in range(25):
        traces = [s.trace for n in (1, 2) for s in runs_of(shared, 100 * seed + n, batches=(64,), workers=n)]
        found.append(contentions.fit(traces, Placement(("localhost",), (2,), (0, 0, 0))))
    values, errors = np.transpose(found)
    assert np.mean(np.abs(np.log((1 + values) / 1.3)) <= 1.645 * errors) > 0.8
    assert np.mean(errors) < 4 * np.std(np.log1p(values))


def test_replications_differ_in_what_is_not_known_of_contention():
    """Where two workers keep two cores busy; one alone has no use for it."""
    host = Host(cores=2, slots=8, contention=0.3, contention_error=0.1)
    still = Costs(compute=Line(base_s=0.01))
    where = Cluster(hosts=[host], costs={"mlp": still})
    spread = {}
    for workers in (1, 2):
        job = Scenario(FixedMinibatch(), cluster=where, **(JOB | {"workers": workers}))
        runs = outcome.join([outcome.of_trace(event.trace(job, replication)) for replication in range(10)])
        spread[workers] = np.std(runs.step_s.mean(axis=1))
    assert spread[1] < 1e-9
    assert spread[2] == pytest.approx(0.01 * 1.3 * 0.1, rel=0.3)


class NeverEnding(FixedMinibatch):
    """Its master waits for a message more than its workers send."""

    name = "never-ending"

    def master(self, me):
        yield from super().master(me)
        yield from me.gather(me.workers)


def test_what_cannot_be_simulated_is_said():
    source = next(iter(runs_of(DRIFTING, 0)))
    source.trace.header = replace(source.trace.header, protocol=f"{__name__}:NeverEnding")
    profile = make([source], "gone")
    assert any("cannot be simulated" in note for note in profile.provenance.notes)


def test_a_run_that_was_cut_short_is_played_as_long_as_it_was():
    """And not for as many steps as it was asked for, which may be a thousand million."""
    source = next(iter(runs_of(DRIFTING, 0)))
    whole = source.trace.header
    source.trace.header = replace(whole, steps=10**9)
    assert residuals.played(source.trace) == whole


def test_a_job_unlike_those_fitted_is_noted():
    profile = known(Cluster(hosts=[Host(cores=3)], costs={"mlp": PLANTED}), workers=2)
    asked = {"cluster": profile.model_copy(update={"hosts": (Host(cores=2, slots=9),)}), "workload": JOB["workload"]}
    law = {"stragglers": stragglers.read("niagara*0.01"), "stragglers_name": "niagara*0.01"}

    def said(**job):
        scenario = Scenario(FixedMinibatch(), **asked, **job)
        return notes(scenario, outcome.of_trace(event.trace(scenario)), "event")

    assert said(workers=2, steps=2) == []
    (note,) = said(workers=3, steps=2, **law)
    assert "slept" in note
    assert "more workers than cores" in note
    assert "too narrow" in note
