"""Numbers that are not known exactly: each put into the job at its ends, and all of them drawn at once (sim.answers.quantities)."""

from dataclasses import replace
from functools import cache
from math import hypot, log

import numpy as np
import pytest

from sim import options, run, simulated_options
from sim.answers import quantities, shares
from sim.answers.quantities import END
from sim.laws import LogNormal
from sim.model.costs import Costs, Line
from sim.model.workload import NAMED
from sim.platform import named_links
from sim.platform.cluster import Cluster, Host, Link, Model, Provenance
from sim.platform.named_links import LINK
from sim.protocols import make
from sim.simulation import simulate
from sim.stragglers import read as law

NAMED_GPUS = "--steps 2 --warmup 1 --stragglers none --batch 32 --workload"  # without sleeps steps are alike
COSTS = Costs(
    compute=Line(base_s=4e-3, slope_s=1e-4), error=0.1, resume_s=2e-3, resume_error_s=1e-3, noise=LogNormal(cv=0.02)
)


@cache
def asked(text: str):
    return simulated_options.scenario(run.parser().parse_args(text.split()), options.Readers())


@cache
def profiled():
    """A profile of which nothing is known exactly: of two workers with batch 8."""
    seen = {"models": {"mlp": Model.of(NAMED["mlp"])}, "batches": {"mlp": (8, 8)}, "repeated": ("mlp",)}
    known = Provenance(hosts=2, workers=2, links_measured=True, **seen)
    link = Link(latency_s=1e-3, bandwidth_bytes_per_s=1e8, latency_spread=0.3, bandwidth_spread=0.2)
    place = Cluster(
        hosts=[Host(count=2, cores=2, slots=2, contention=0.2, contention_error=0.2)],
        network=link,
        costs={"mlp": COSTS},
        provenance=known,
        oversleep_s=1e-3,
        oversleep_spread=0.4,
        poll_s=1e-5,
    )
    return replace(asked("--protocol fmb --workers 3 --steps 10 --workload mlp --batch 32"), cluster=place)


@cache
def fitted():
    """Links that were fitted to steps."""
    link = Link(bandwidth_bytes_per_s=1e8, spread_by_hosts=((2, 0.1), (4, 0.3)))
    known = Provenance(
        hosts=4, workers=4, links_measured=True, repeated=("mlp",), models={"mlp": Model.of(NAMED["mlp"])}
    )
    place = Cluster(hosts=[Host(count=4)], network=link, costs={"mlp": COSTS}, provenance=known)
    changed = {"protocol": make("allreduce", []), "servers": 0, "workers": 4, "cluster": place}
    return replace(asked("--protocol amb --workers 3 --steps 10"), workload=NAMED["mlp"], **changed)


JOBS = {
    "one GPU's host": lambda: asked(f"--protocol allreduce {NAMED_GPUS} resnet50 --cluster g5.12xlarge*1 --workers 4"),
    "hosts by name": lambda: asked(f"--protocol allreduce {NAMED_GPUS} vgg16 --cluster p4d.24xlarge*2 --workers 16"),
    "nominal cores": lambda: asked("--protocol ps-sync --workers 3 --steps 10 --workload mnist --stragglers none"),
    "profile": profiled,
    "fitted": fitted,
}


@pytest.fixture(params=JOBS)
def job(request):
    return JOBS[request.param]()


def test_all_kinds_are_here_and_each_moves_a_step():
    names = {quantities.WORK, quantities.CONTENTION, quantities.AFTER_SLEEPS, quantities.BATCH, quantities.BETWEEN}
    names |= {quantities.WITHIN, quantities.SUMMING}
    names |= {quantities.MESSAGES, quantities.OVERSLEPT, "rate of the link", "latency of the link"}
    assert {one.key for make_job in JOBS.values() for one in quantities.of(make_job())} == names
    moved = {
        key
        for make_job in JOBS.values()
        for key, off in simulate(make_job(), "auto", 2).outcome.ends.items()
        if max(off) > 0.005
    }
    assert moved == names


def test_at_its_median_a_number_changes_nothing_and_beyond_it_steps_take_longer(job):
    """By the same random numbers, and where the number shows at all."""
    same = simulate(job, "auto", 1).samples_per_s
    for one in quantities.of(job):
        speeds = [simulate(one.put(job, z), "auto", 1).samples_per_s for z in (-END, 0.0, END)]
        assert speeds[1] == pytest.approx(same, rel=1e-9), one.key
        assert speeds[0] >= 0.999 * speeds[1], one.key
        assert speeds[2] <= 1.001 * speeds[1] or one.key == quantities.SUMMING, one.key


@pytest.mark.slow
@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("name", ["one GPU's host", "hosts by name", "nominal cores"])
def test_ends_one_at_a_time_are_those_of_draws_of_all_at_once(name):
    """The reference: every number is drawn in each of 300 runs. Ends count as independent, in logarithms."""
    job, rng = JOBS[name](), np.random.default_rng(1)
    found, known = simulate(job, "engine", 2), quantities.of(job)
    step_s, middle = shares.mean_step_s(found.outcome), found.samples_per_s
    off = [found.outcome.ends.get(one.key) or one.bound(step_s) for one in known]
    drawn = []
    for _ in range(300):
        one = job
        for number in known:
            one = number.put(one, float(rng.standard_normal()))
        drawn.append(log(simulate(one, "engine", 1).samples_per_s / middle))
    low, high = np.quantile(drawn, (0.05, 0.95))
    slower, faster = (hypot(*side) for side in zip(*off, strict=True))
    assert slower + faster == pytest.approx(high - low, rel=0.2)
    assert np.mean([-slower <= one <= faster for one in drawn]) == pytest.approx(0.9, abs=0.06)


def test_the_factor_of_computing_is_not_one_of_sleeps_and_of_work_after_them():
    """A step of half a millisecond beside a sleep of 20: eleven times as long adds six milliseconds, and not hundreds."""
    costs = Costs(compute=Line(base_s=5e-4), error=1.48, resume_s=2e-3)
    job = replace(profiled(), cluster=Cluster(hosts=[Host(count=4)], costs={"mlp": costs}))
    job = replace(job, stragglers=law("exponential(mean=20ms)"), stragglers_name="exponential(mean=20ms)")
    outcome = simulate(job, "auto", 2).outcome
    step_s = shares.mean_step_s(outcome)
    slower, faster = outcome.ends[quantities.WORK]
    assert step_s > 0.02
    assert 1e-3 < step_s * (np.exp(slower) - 1) < 11 * 6e-4
    assert 0 < step_s * (1 - np.exp(-faster)) < 6e-4


def test_what_cannot_move_a_step_is_bounded_and_not_simulated():
    job = profiled()
    still = replace(job, cluster=job.cluster.model_copy(update={"oversleep_s": 1e-9}))
    for one, there in ((job, True), (still, False)):
        step_s = shares.mean_step_s(simulate(one, "auto", 1).outcome)
        assert (quantities.OVERSLEPT in quantities.at_ends(one, step_s)) == there
        assert any(number.key == quantities.OVERSLEPT for number in quantities.of(one))


def test_ends_are_simulated_with_a_quarter_of_the_steps_beside_the_same_ones():
    few, many = (simulate(replace(profiled(), steps=steps), "auto", 2).outcome.ends for steps in (20, 80))
    assert few == many
    assert simulate(replace(profiled(), steps=84), "auto", 2).outcome.ends != few


def test_a_bound_is_by_the_share_that_messages_have():
    """Of a step that is messages alone the bound is as long as they are; of one that is computing alone they do not show."""
    job = JOBS["hosts by name"]()
    (link,) = (one for one in quantities.of(job) if one.key == quantities.BETWEEN)
    at = named_links.median(job.cluster.network, LINK)
    assert link.bound(1e9) == pytest.approx((log(LINK.at(1) / at), log(at)), rel=0.01)
    assert link.bound(0.5 * shares.computing_s(job))[1] == 0
