"""The event world and the engine give the same answers on the same draws, and closed forms where there are any."""

import tracemalloc
from collections import OrderedDict
from dataclasses import replace

import event
import numpy as np
import pytest
from event import agree, by_engine
from hypothesis import given, settings
from hypothesis import strategies as st

from sim import protocols, stragglers
from sim.answers import notes
from sim.answers.outcome import of_trace
from sim.job.scenario import Scenario
from sim.language.collectives import NAMES
from sim.laws import LogNormal, randomness
from sim.laws.randomness import BLOCK
from sim.model import workload
from sim.model.costs import Costs, Line
from sim.platform.cluster import Cluster, Host, Link
from sim.simulation import simulate

MLP = workload.read("mlp")
EXACT_S = 1e-9
SLEEPS = ("none", "niagara*0.02", "cedar*0.3", "exponential(mean=10ms)")
SLOW = (
    "independent(factor=lognormal(mean=2, cv=0.5), by=host)",
    "persistent(seconds=exponential(mean=20ms), persistence=0.7)",
    "markov(factor=3, p_slow=0.3, p_recover=0.5)",
    "exponential(mean=5ms) + persistent(factor=lognormal(mean=1.5, cv=0.3), persistence=0.9)",
    "slow-ranks(rank=1, factor=3)",
    "slow-ranks(rank=1, seconds=exponential(mean=20ms)) + independent(seconds=exponential(mean=5ms), by=host)",
)
# Drawn in test_language_engine_jobs.py.
JOBS_OF_THEIR_OWN = ("hybrid", "horovod", "hierarchical", "pipeline", "d-psgd", "gradient-coding")


def seconds(most):
    return st.floats(0, most, allow_nan=False)


def lines():
    return st.builds(Line, base_s=st.floats(1e-6, 1e-2), slope_s=seconds(1e-6), cold_s=seconds(1e-2))


def costs():
    kinds = ("compute", "partition", "input", "pack", "take_up", "reduce", "update", "evaluate")
    kinds += ("to_device", "to_host")
    return st.builds(
        Costs,
        **dict.fromkeys(kinds, lines()),
        loop_s=seconds(1e-2),
        resume_s=seconds(1e-2),
        resume_error_s=seconds(1e-2),
        noise=st.builds(LogNormal, cv=st.sampled_from([0.0, 0.1, 1.0])),
        input_noise=st.builds(LogNormal, cv=st.sampled_from([0.0, 0.5])),
        run=st.builds(LogNormal, cv=st.sampled_from([0.0, 0.3])),
        update_noise=st.builds(LogNormal, cv=st.sampled_from([0.0, 0.5])),
        **{
            f"common_{name}noise": st.builds(LogNormal, cv=st.sampled_from([0.0, 0.3]))
            for name in ("", "input_", "update_")
        },
    )


def links():
    slow = {"latency_s": seconds(1e-2), "overhead_s": seconds(1e-3), "gap_s": seconds(1e-3)}
    return st.builds(Link, **slow, bandwidth_bytes_per_s=st.floats(1e6, 1e10))


@st.composite
def scenarios(draw):
    name = draw(st.sampled_from([name for name in protocols.PROTOCOLS if name not in JOBS_OF_THEIR_OWN]))
    workers = draw(st.integers(0 if protocols.make(name).text_class.alone else 1 + (name == "ps-backup"), 6))
    speeds = draw(st.lists(st.floats(0.3, 3), min_size=workers + 1, max_size=workers + 1, unique=True))
    slots = draw(st.integers(1, 2))
    cores = slots * (2 if protocols.make(name).overlaps else draw(st.integers(1, 2)))
    cluster = Cluster(
        hosts=[Host(name=f"h{i}", speed=speed, cores=cores, slots=slots) for i, speed in enumerate(speeds)],
        network=draw(links()),
        oversleep_s=draw(seconds(1e-3)),
        costs={"mlp": draw(costs())},
    )
    assignments = []
    if name == "amb":
        assignments = [f"time_limit_s={draw(seconds(0.1))}", f"partitions={draw(st.integers(1, 20))}"]
    if name == "allreduce":
        assignments = [f"algorithm={draw(st.sampled_from(NAMES))}", f"fused={draw(st.booleans())}"]
    return Scenario(
        protocols.make(name, assignments),
        MLP,
        workers=workers,
        steps=draw(st.integers(1, 12)),
        warmup=draw(st.integers(0, 3)),
        batch=draw(st.integers(20, 200)),
        cluster=cluster,
        stragglers=stragglers.read(draw(st.sampled_from(SLEEPS + SLOW if workers > 1 else SLEEPS))),
        seed=draw(st.integers(0, 2**32)),
        test_size=draw(st.sampled_from([0, 50])),
        evaluate_every=draw(st.integers(1, 4)),
    )


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(scenarios())
def test_worlds_agree(scenario):
    agree(scenario, 2)


@pytest.mark.parametrize(("protocol", "workers"), [("fmb", 40), ("amb", 40), ("allreduce", 8)])
def test_memory_does_not_grow_with_the_steps(protocol, workers, monkeypatch):
    """But for when each ended and its samples: some ten bytes."""
    monkeypatch.setattr(randomness, "MOST_KEPT", 0)
    monkeypatch.setattr(randomness, "_kept", OrderedDict())  # what other tests drew would make room, draw by draw
    costs, peaks, settings = quiet_costs(noise=LogNormal(cv=0.5)), {}, ["algorithm=ring"] * (protocol == "allreduce")
    for steps in (BLOCK, 4 * BLOCK):
        tracemalloc.start()
        by_engine(quiet(protocol, *settings, workers=workers, steps=steps, warmup=0, costs=costs))
        peaks[steps] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert (peaks[4 * BLOCK] - peaks[BLOCK]) / (3 * BLOCK) < 2000


SEVERAL = {  # what ranks carry from a step to the next differs
    "amb, cold, evaluation": ("amb", {"update": Line(base_s=1e-3, cold_s=5e-3), "resume_s": 1e-3}, {"test_size": 9}),
    "fmb, alone": ("fmb", {"update": Line(base_s=1e-3, cold_s=1e-3)}, {"workers": 0}),
}


@pytest.mark.parametrize("about", SEVERAL)
def test_what_ranks_carry_from_a_step_to_the_next_is_the_same(about):
    (protocol, *settings), costs, job = (SEVERAL[about][0].split(), *SEVERAL[about][1:])
    costs = quiet_costs(noise=LogNormal(cv=0.3), **costs)
    link = Link(latency_s=1e-4, overhead_s=1e-5, bandwidth_bytes_per_s=1e9)
    law = stragglers.read("niagara*0.01")
    scenario = quiet(protocol, *settings, costs=costs, link=link, stragglers=law, **{"steps": 12, "warmup": 2} | job)
    scenario = replace(
        scenario, cluster=scenario.cluster.model_copy(update={"hosts": [Host(count=9, cores=2, slots=1)]})
    )
    agree(scenario, 3)


@pytest.mark.parametrize(("protocol", "warmup"), [("fmb", 1), ("ps-async", 2), ("allreduce", 1)])
def test_a_run_whose_time_is_over_ends_with_the_first_step_that_can_be_measured(protocol, warmup):
    """After one step of warm-up; asynchronous workers, who begin together, have all of it."""
    scenario = quiet(protocol, costs=quiet_costs(noise=LogNormal(cv=0.5)), steps=60, warmup=2)
    trace, whole = event.trace(scenario, within_s=0.0), of_trace(event.trace(replace(scenario, warmup=warmup)))
    cut = of_trace(trace)
    done = cut.step_s.shape[1]
    assert 1 <= done < 60
    assert trace.header.warmup in (warmup, 2)
    first = trace.header.warmup - warmup
    np.testing.assert_allclose(cut.step_s[0], whole.step_s[0, first : first + done], atol=EXACT_S)
    in_time = event.trace(scenario, within_s=600.0)
    assert (of_trace(in_time).step_s.shape, in_time.header.warmup) == ((1, 60), 2)


def quiet_costs(**lines) -> Costs:
    return Costs(compute=Line(slope_s=1e-3), partition=Line(slope_s=1e-3), **lines)


def quiet(protocol: str, *assignments: str, costs: Costs | None = None, **job) -> Scenario:
    """No noise; a sample takes 1 ms, messages take no time but what `link` says."""
    workers = job.pop("workers", 3)
    link = job.pop("link", Link(latency_s=0, overhead_s=0, bandwidth_bytes_per_s=float("inf")))
    cluster = Cluster(hosts=[Host(count=workers + 1)], network=link, costs={"mlp": costs or quiet_costs()})
    return Scenario(protocols.make(protocol, list(assignments)), MLP, workers=workers, cluster=cluster, **job)


def test_fmb_step_is_compute_plus_logp_messages_and_master_work():
    """Parameters down one after another, the last worker computes, its gradient up, reduced; then the update."""
    link = Link(latency_s=1e-3, overhead_s=1e-4, gap_s=0, bandwidth_bytes_per_s=1e8)
    port_s = MLP.message_bytes / 1e8
    costs = quiet_costs(reduce=Line(base_s=2e-4), update=Line(base_s=3e-3))
    scenario = quiet("fmb", workers=3, batch=100, steps=5, link=link, costs=costs)
    down_s = 1e-4 + 3 * port_s + 1e-3 + 1e-4
    up_s = 1e-4 + port_s + 1e-3 + 1e-4
    expected_s = down_s + 0.1 + up_s + 2e-4 + 3e-3
    for outcome in (of_trace(event.trace(scenario)), by_engine(scenario)):
        np.testing.assert_allclose(outcome.step_s, expected_s, rtol=0, atol=EXACT_S)


def test_fmb_step_waits_for_the_largest_sleep():
    law = stragglers.read("niagara*0.1")
    scenario = quiet("fmb", workers=4, batch=10, steps=400, warmup=0, stragglers=law)
    sleeps = np.stack([scenario.draws.sleeps(0, rank).first(400) for rank in range(1, 5)])
    np.testing.assert_allclose(by_engine(scenario).step_s[0], sleeps.max(axis=0) + 0.01, atol=EXACT_S)


def test_the_first_work_after_a_sleep_takes_longer():
    law = stragglers.read("niagara*0.1")
    costs = {"costs": quiet_costs(resume_s=0.02), "workers": 1, "batch": 10, "steps": 50, "warmup": 0}
    scenario = quiet("fmb", stragglers=law, **costs)
    slept_s = scenario.draws.sleeps(0, 1).first(50)
    for outcome in (of_trace(event.trace(scenario)), by_engine(scenario)):
        np.testing.assert_allclose(outcome.step_s[0], slept_s + 0.02 * (slept_s > 0) + 0.01, atol=EXACT_S)
    assert 0 < np.count_nonzero(slept_s) < 50


@pytest.mark.parametrize(
    ("limit_s", "expected"), [(0, 10), (0.005, 10), (0.010, 10), (0.0101, 20), (0.095, 100), (1, 160)]
)
def test_amb_checks_the_clock_before_each_partition(limit_s, expected):
    """16 partitions of 10 ms: one at least, the last overruns, and no more than there are."""
    scenario = quiet("amb", f"time_limit_s={limit_s}", "partitions=16", workers=1, batch=160, steps=3)
    assert (by_engine(scenario).samples == expected).all()
    assert (of_trace(event.trace(scenario)).samples == expected).all()


@pytest.mark.parametrize("limit_s", [0, 0.05, 0.1, 0.101, 0.2])
def test_partitions_that_take_no_time_are_all_computed_while_there_is_time(limit_s):
    """The loop is entered in 0.1 s; of no time left one is computed."""
    costs = Costs(loop_s=0.1, update=Line(base_s=1e-3))
    scenario = quiet("amb", f"time_limit_s={limit_s}", "partitions=16", workers=2, batch=160, steps=3, costs=costs)
    outcome, simulated = by_engine(scenario), of_trace(event.trace(scenario))
    assert (outcome.samples == (320 if limit_s > 0.1 else 20)).all()
    np.testing.assert_array_equal(outcome.samples, simulated.samples)


def test_amb_step_does_not_depend_on_stragglers_shorter_than_the_limit():
    """Ferdinand et al. 2019: the step takes the time limit, plus less than a partition; stragglers cost samples."""
    limit_s, partition_s = 0.1, 1e-3
    jobs = [
        quiet(
            "amb", f"time_limit_s={limit_s}", "partitions=500", batch=500, workers=5, stragglers=stragglers.read(name)
        )
        for name in ("none", "cedar*0.2")
    ]
    free, slowed = (by_engine(job) for job in jobs)
    for outcome in (free, slowed):
        assert (outcome.step_s >= limit_s - EXACT_S).all()
        assert (outcome.step_s <= limit_s + partition_s + EXACT_S).all()
    assert slowed.samples.mean() < free.samples.mean()


def test_amb_computes_all_samples_though_they_do_not_divide():
    outcome = by_engine(quiet("amb", "time_limit_s=9", "partitions=16", workers=2, batch=356))
    assert (outcome.samples == 2 * 356).all()


@pytest.mark.parametrize(("partitions", "said"), [(4, True), (40, False)])
def test_a_partition_that_may_overrun_the_limit_by_much_is_said(partitions, said):
    """Of 160 samples of a millisecond each, 40 together or 4."""
    scenario = quiet("amb", "time_limit_s=0.1", f"partitions={partitions}", workers=1, batch=160, steps=3)
    note = "the last partition of a step takes 40 ms and may end by as much after the time limit of 100 ms"
    assert any(note in one for one in simulate(scenario).notes) == said


@pytest.mark.parametrize(("ran_out", "said"), [(0, []), (3, ["in 3% of the steps"])])
def test_what_is_none_in_whole_percent_is_no_note(ran_out, said):
    scenario = quiet("amb", "time_limit_s=0.1", workers=2, batch=160, steps=100)
    samples = np.where(np.arange(100) < ran_out, 2 * 160, 100)[None]
    outcome = replace(by_engine(scenario), samples=samples)
    found = [one for one in notes.notes(scenario, outcome, "event") if "ran out of data" in one]
    assert [one.split("limit ")[1].split(":")[0] for one in found] == said


def test_of_a_real_run_each_worker_that_ran_out_of_data_counts():
    """Not the steps alone in which all of them did."""
    scenario = quiet("amb", "time_limit_s=0.1", workers=2, batch=160, steps=100)
    trace = event.trace(scenario)
    real = replace(trace, header=replace(trace.header, world="mpi", ran_out=55 * 2))
    found = notes.notes(scenario, of_trace(trace), "mpi", real)
    assert [one.split("limit ")[1].split(":")[0] for one in found if "ran out of data" in one] == [
        "in 50% of the steps"
    ]


def test_idle_is_what_is_left_of_a_step():
    """A worker of 10 ms beside one of 40 ms idles three quarters; the master all but nothing else."""
    cluster = Cluster(
        hosts=[Host(name="m"), Host(name="fast", speed=4), Host(name="slow")],
        network=Link(latency_s=0, overhead_s=0, bandwidth_bytes_per_s=float("inf")),
        costs={"mlp": quiet_costs()},
    )
    scenario = Scenario(protocols.make("fmb"), MLP, workers=2, batch=40, cluster=cluster)
    for outcome in (of_trace(event.trace(scenario)), by_engine(scenario)):
        np.testing.assert_allclose(outcome.idle_fraction[0], [1, 0.75, 0], atol=0.01)


def test_replications_spread_over_the_law_of_drift():
    """By the golden ratio: the mean of 20 is near the law's, where independent draws would be off by 0.2 / sqrt(20)."""
    drifting = quiet("fmb", costs=quiet_costs(run=LogNormal(cv=0.2)))
    factors = np.array([drifting.draws.run_factor(replication, 0) for replication in range(20)])
    assert factors.mean() == pytest.approx(1, abs=0.015)
    assert factors.std() == pytest.approx(0.2, rel=0.2)
    assert drifting.draws.run_factor(0, 1) != drifting.draws.run_factor(0, 0)
