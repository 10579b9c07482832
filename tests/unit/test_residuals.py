"""What a profile says of one more run holds it as often as it says, and a profile knows how far off it is of its own runs."""

from dataclasses import replace

import event
import numpy as np
import pytest
from event import by_engine

from calibration.estimators import contentions, residuals
from calibration.estimators.errors import Residuals
from calibration.evidence.seats import Placement
from calibration.profiles import Probe, Source, make
from sim import stragglers
from sim.answers import extrapolation, outcome
from sim.answers.ignorance import CORE
from sim.answers.notes import notes
from sim.base import interval
from sim.job import variants
from sim.job.scenario import Scenario
from sim.laws import Constant, LogNormal
from sim.model import workload
from sim.model.costs import Costs, Line
from sim.platform.cluster import ASSUMED, Cluster, Host, Link
from sim.simulation import simulate
from sim.texts import AnytimeMinibatch, FixedMinibatch

PLANTED = Costs(compute=Line(base_s=4e-3, slope_s=2e-4), update=Line(base_s=2e-3), noise=LogNormal(cv=0.05), error=0.08)
DRIFTING = Cluster(hosts=[Host(count=2)], network=ASSUMED, costs={"mlp": PLANTED})
JOB = {"workload": workload.read("mlp"), "workers": 1, "warmup": 1, "steps": 8}


def runs_of(cluster, seed, batches=(64, 256), repeats=2, **about):
    """A calibration: runs of two batches, each with its own luck."""
    for number, batch in enumerate(batches * repeats):
        job = Scenario(FixedMinibatch(), batch=batch, cluster=cluster, seed=1000 * seed + number, **(JOB | about))
        yield Source(f"run{number}", event.trace(lucky(job)))


def lucky(job):
    """The job with a factor on all work that its random seed draws, as far off as its costs say."""
    off = job.costs.error * np.random.default_rng(job.seed).standard_normal()
    return variants.as_fast(job, np.exp(-off))


@pytest.mark.slow
@pytest.mark.usefixtures("installed")
def test_intervals_hold_nine_new_runs_in_ten():
    """Of many calibrations of few runs; by what they plug in alone, they would hold seven. Fourteen say it to about 0.037."""
    drawn = [Scenario(FixedMinibatch(), batch=128, cluster=DRIFTING, seed=10**6 + seed, **JOB) for seed in range(50)]
    new = np.array([by_engine(lucky(job)).throughput()[0] for job in drawn])
    covered = []
    for seed in range(14):
        profile = make(list(runs_of(DRIFTING, seed)), "few runs")
        job = Scenario(FixedMinibatch(), batch=128, cluster=profile, seed=seed, **JOB)
        low, high = interval_of(job)
        covered.append(np.mean((low <= new) & (new <= high)))
    assert np.mean(covered) == pytest.approx(0.9, abs=3 * 0.037)


def test_a_fit_that_is_far_off_its_two_runs_is_no_worse_than_nominal_computing(monkeypatch):
    """Two runs of one kind leave one degree of freedom: Student's t would say a factor of thousands, which no profile may hold."""
    far, zero = np.full(2, 0.36), np.zeros(2)
    found = Residuals(far, zero, zero + 0.5, zero, zero)
    assert found.error() > 2 * CORE.deviation
    monkeypatch.setattr(residuals, "of_runs", lambda *_: found)
    profile = make(list(runs_of(DRIFTING, 0)), "runs")
    assert profile.costs["mlp"].error == CORE.deviation


def coverage(kinds: int, repeats: int, of_kinds: float, of_runs: float, trials: int = 1200) -> float:
    """How often the law of one more run, of a kind of its own, holds nine tenths; the fit takes a line through the kinds."""
    rng, kind = np.random.default_rng(0), np.repeat(np.arange(kinds), repeats)
    held, zero = [], np.zeros(kinds * repeats)
    for _ in range(trials):
        amount = rng.standard_normal(kinds + 1)
        off = of_kinds * rng.standard_normal(kinds + 1)
        design = np.column_stack([np.ones(kinds + 1), amount])
        runs = off[kind] + of_runs * rng.standard_normal(len(kind))
        fitted = np.linalg.lstsq(design[kind], runs, rcond=None)[0]
        said = Residuals(runs - design[kind] @ fitted, zero, zero + 1, zero, kind).error()
        new = off[-1] + of_runs * rng.standard_normal() - design[-1] @ fitted
        held.append(abs(new) <= 1.645 * said)
    return float(np.mean(held))


@pytest.mark.slow
@pytest.mark.parametrize("of_kinds", [0.0, 0.01, 0.05])
@pytest.mark.parametrize(("kinds", "repeats"), [(6, 2), (16, 3)])
def test_one_more_run_of_a_kind_that_was_not_fitted_is_held_nine_times_in_ten(kinds, repeats, of_kinds):
    """Kinds are off by something of their own, and repeats of one say nothing of the others."""
    assert 0.86 < coverage(kinds, repeats, of_kinds, 0.02) < 0.94


RESTED = Costs(compute=Line(base_s=2e-3), update=Line(base_s=1e-3), noise=LogNormal(cv=0.05))
ASLEEP = {"stragglers": stragglers.read("niagara*0.03"), "stragglers_name": "niagara*0.03", "steps": 20}


def late(seconds: float) -> Cluster:
    """Whose ranks go on so much later after a sleep than fits know."""
    return Cluster(hosts=[Host(count=2)], network=ASSUMED, costs={"mlp": RESTED}, oversleep_s=seconds)


def rested(seconds, seed: int = 0):
    """A profile of runs without sleeps, and with sleeps after which each rank is late by so many seconds, or as many as are drawn."""
    runs = list(runs_of(late(0.0), 2 * seed))
    for number in range(6):
        about = ASLEEP | {"seed": 1000 * seed + 500 + number}
        job = Scenario(FixedMinibatch(), batch=64, cluster=late(seconds()), **(JOB | about))
        runs.append(Source(f"asleep{number}", event.trace(job)))
    return make(runs, "rested").costs["mlp"]


@pytest.mark.slow
def test_what_a_rank_takes_more_after_a_sleep_is_found():
    found = rested(lambda: 5e-3)
    assert found.resume_s == pytest.approx(5e-3, rel=0.1)
    assert found.resume_error_s < 5e-4


@pytest.mark.slow
def test_nothing_is_found_after_sleeps_where_nothing_is():
    found = rested(lambda: 0.0)
    assert found.resume_s < 2e-4
    assert found.resume_error_s < 3e-4


def test_steps_that_sleeps_do_not_stretch_tell_nothing_of_them():
    """Those of amb end at its deadline, whenever a worker begins."""
    costs = RESTED.model_copy(update={"partition": Line(base_s=1e-2)})
    where = late(0.0).model_copy(update={"costs": {"mlp": costs}})
    protocols = AnytimeMinibatch(time_limit_s=0.3, partitions=64), FixedMinibatch()
    jobs = [Scenario(protocol, batch=64, cluster=where, **(JOB | ASLEEP)) for protocol in protocols]
    anytime, fixed = (residuals.of_runs(where, [event.trace(job)]).rest[0] for job in jobs)
    assert anytime == 0
    assert fixed > 0


@pytest.mark.slow
@pytest.mark.usefixtures("installed")
def test_intervals_of_runs_that_sleep_hold_what_is_not_known_of_them():
    """Ranks are late after sleeps by 10 ms, in each run by 2 ms more or less; by the error on work alone, six would be held."""
    rng = np.random.default_rng(0)

    def drawn_s():
        return 1e-2 + 2e-3 * rng.standard_normal()

    asked = Scenario(FixedMinibatch(), batch=64, cluster=late(0.0), sleeps_of=0, **(JOB | ASLEEP | {"seed": 10**6}))
    runs = [event.run(replace(asked, cluster=late(drawn_s())), 0)[0] for _ in range(40)]
    new = np.array([run.throughput()[0] for run in runs])
    held = {True: [], False: []}
    for seed in range(8):
        found = rested(drawn_s, seed)
        for knows, shares in held.items():
            costs = found if knows else found.model_copy(update={"resume_error_s": 0.0})
            profile = late(0.0).model_copy(update={"costs": {"mlp": costs}})
            low, high = interval_of(replace(asked, cluster=profile))
            shares.append(np.mean((low <= new) & (new <= high)))
    assert 0.85 < np.mean(held[True]) < 0.99
    assert np.mean(held[False]) < 0.75


def interval_of(job):
    """By the runs and the errors of costs alone."""
    found = simulate(job, "engine", 20).outcome
    known = [extrapolation.Unknown(*off) for off in found.ends.values()]
    return extrapolation.widened(found.interval(), interval.middle(found.throughput()), known)


def known(cluster, **about):
    return make(list(runs_of(cluster, 0, **about)), "known")


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("world", ["event", "engine"])
def test_an_error_is_in_no_run_and_in_the_interval(world):
    """Of a job that is all work."""
    job = Scenario(FixedMinibatch(), cluster=DRIFTING, **JOB)
    known = DRIFTING.model_copy(update={"costs": {"mlp": PLANTED.model_copy(update={"error": 0.0})}})
    found, exact = (simulate(one, world, 3) for one in (job, replace(job, cluster=known)))
    assert (found.step_s == exact.step_s).all()
    assert not exact.outcome.ends
    assert found.outcome.ends["all work"] == pytest.approx([1.645 * 0.08] * 2, rel=0.05)


def test_what_is_unknown_after_sleeps_is_in_the_interval():
    """Where ranks sleep."""
    costs = RESTED.model_copy(update={"noise": LogNormal(cv=0), "resume_s": 0.01, "resume_error_s": 0.004})
    asleep = {"stragglers": Constant(value=0.05), "stragglers_name": "constant"}
    for about, after in ((asleep, ["work after sleeps"]), ({}, [])):
        job = Scenario(FixedMinibatch(), cluster=late(0.0), **(JOB | about))
        job = replace(job, cluster=job.cluster.model_copy(update={"costs": {"mlp": costs}}))
        found = simulate(job, replications=2).outcome
        assert list(found.ends) == after
        for longer, shorter in found.ends.values():
            off = 1.645 * 0.004 / found.step_s[0].mean()
            assert (longer, shorter) == pytest.approx((np.log(1 + off), -np.log(1 - off)), rel=0.1)


def test_without_drift_nothing_is_added():
    """Sleeps that differ from run to run, and are known, are no error of the profile."""
    steady = PLANTED.model_copy(update={"error": 0.0, "noise": LogNormal(cv=0)})
    still = DRIFTING.model_copy(update={"costs": {"mlp": steady}})
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


def test_as_many_runs_as_kinds_know_nothing_of_runs():
    profile = known(DRIFTING, repeats=1)
    assert profile.costs["mlp"].error == 0
    assert any("2 runs of 2 kinds cannot show it" in note for note in profile.provenance.notes)


@pytest.mark.slow
def test_the_error_of_contention_is_as_large_as_it_says():
    """Of calibrations of two runs by one worker and two by two, on cores that drift from run to run."""
    host = Host(cores=2, slots=8, contention=0.3)
    shared = DRIFTING.model_copy(update={"hosts": (host,)})
    found = []
    for seed in range(12):
        traces = [s.trace for n in (1, 2) for s in runs_of(shared, 100 * seed + n, batches=(64,), workers=n)]
        found.append(contentions.fit(traces, Placement(("localhost",), (2,), (0, 0, 0))))
    values, errors = np.transpose(found)
    assert np.mean(np.abs(np.log((1 + values) / 1.3)) <= 1.645 * errors) > 0.8
    assert np.mean(errors) < 4 * np.std(np.log1p(values))


def test_what_is_not_known_of_contention_is_in_the_interval():
    """Where two workers keep two cores busy; one alone has no use for it."""
    host = Host(cores=2, slots=8, contention=0.3, contention_error=0.1)
    where = Cluster(hosts=[host], costs={"mlp": Costs(compute=Line(base_s=0.01))})
    for workers in (1, 2):
        job = Scenario(FixedMinibatch(), cluster=where, **(JOB | {"workers": workers}))
        found = simulate(job, replications=2).outcome
        assert found.step_s.std() < 1e-9
        expected = (0.0, 0.0) if workers == 1 else (1.645 * 0.1, 1.645 * 0.1)
        assert found.ends["busy cores"] == pytest.approx(expected, rel=0.1, abs=1e-9)


class NeverEnding(FixedMinibatch):
    """Its master waits for a message more than its workers send."""

    name = "never-ending"

    def __call__(self, me):
        yield from super().__call__(me)
        if me.rank == me.master:
            yield from me.take(me.workers)


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
    slept, crowded = said(workers=3, steps=2, **law)
    assert "no fitted run slept" in slept
    assert "more workers than cores: the interval may be too narrow" in crowded
