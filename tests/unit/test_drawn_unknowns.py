"""What is not known of drawn jobs: sleeps that were given stay as they are, and no interval of a change holds what cannot be."""

from __future__ import annotations

from dataclasses import replace
from math import exp

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scenarios import SETTINGS

from sim import protocols, stragglers
from sim.answers import quantities, shares
from sim.job.scenario import Scenario
from sim.laws import LogNormal
from sim.model.costs import Costs, Line
from sim.model.workload import Variable, Workload
from sim.platform.cluster import Cluster, Host, Link, Model, Provenance
from sim.simulation import simulate
from sim.studies import changes
from sim.studies.what_if import compare

MODEL = Workload(name="drawn", variables=[Variable(name="w", shape=(100_000,))])
TIMES = [said for said in SETTINGS if not said[0].startswith("amb")]
FASTER = {"network.bandwidth": "1 Tbit/s", "network.latency_s": "0", "hosts.0.speed": "2"}


@st.composite
def profiled(draw) -> Scenario:
    """A job of a profile whose steps are 20 ms of sleep, and computing of microseconds that is known up to a factor of 12."""
    rare = st.sampled_from([0.0, 0.3])
    costs = Costs(
        compute=Line(base_s=draw(st.floats(1e-5, 1e-3))),
        error=draw(st.sampled_from([0.1, 0.5, 1.5])),
        noise=LogNormal(cv=0.02),
        run=LogNormal(cv=draw(rare) / 6),
    )
    link = Link(
        latency_s=draw(st.floats(1e-5, 1e-3)),
        bandwidth_bytes_per_s=draw(st.floats(3e7, 1e10)),
        latency_spread=draw(rare),
        bandwidth_spread=draw(rare),
    )
    of = {"models": {MODEL.name: Model.of(MODEL)}, "batches": {MODEL.name: (8, 8)}, "repeated": (MODEL.name,)}
    place = Cluster(
        hosts=[Host(count=8, cores=2, contention=0.1, contention_error=draw(rare))],
        network=link,
        costs={MODEL.name: costs},
        provenance=Provenance(hosts=2, workers=2, links_measured=True, **of),
        oversleep_s=1e-4,
        oversleep_spread=draw(rare),
    )
    name, *said = draw(st.sampled_from(TIMES))
    law = "exponential(mean=20ms)"
    given = {"stragglers": stragglers.read(law), "stragglers_name": law, "steps": 6, "warmup": 1}
    workers, batch = draw(st.integers(2, 6)), draw(st.sampled_from([4, 8, 16]))
    return Scenario(protocols.make(name, said), MODEL, workers, cluster=place, batch=batch, **given)


@pytest.mark.slow
@given(profiled())
@settings(max_examples=30)
def test_a_sleep_is_not_widened_by_the_factor_of_computing(job):
    outcome = simulate(job, "auto", 1).outcome
    step_s = shares.mean_step_s(outcome)
    (work,) = (one for one in quantities.of(job) if one.key == quantities.WORK)
    slower, faster = outcome.ends.get(work.key) or work.bound(step_s)
    computing_s = float(job.costs.compute(job.batch))
    assert step_s * (exp(slower) - 1) <= 2 * (work.times(quantities.END) - 1) * computing_s + 1e-5
    assert step_s * (1 - exp(-faster)) <= 2 * computing_s + 1e-5


@pytest.mark.slow
@given(profiled(), st.sampled_from(sorted(FASTER)), st.booleans())
@settings(max_examples=30)
def test_what_is_nowhere_slower_never_costs_throughput_in_any_interval(job, path, real):
    """But by what the simulated pairs themselves say."""
    changed = replace(job, cluster=changes.with_values(job.cluster, {path: FASTER[path]}))
    one, other = (simulate(each, "auto", 2) for each in (job, changed))
    ahead, back = compare("", one, other, real), compare("", other, one, real)
    assert ahead.interval is None or ahead.interval[0] >= min(1, ahead.ratio)
    assert back.interval is None or back.interval[1] <= max(1, back.ratio)
