"""Servers behind a barrier in the vector world: requests and gradients pass them in the order in which they come."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_cycles import assert_alike

from sim import protocols, stragglers, vector
from sim.job.scenario import Scenario
from sim.laws import LogNormal
from sim.model.costs import Costs, Line
from sim.model.workload import Variable, Workload
from sim.platform.cluster import Cluster, Host, Link
from sim.protocols.ps_sync import SynchronousServers
from sim.simulation import simulate
from sim.verbs import pull, push, training

EXACT_S = 1e-9
KINDS = ("input", "pack", "reduce", "update", "evaluate", "take_up")
LINK = Link(latency_s=2e-4, overhead_s=3e-5, gap_s=2e-6, bandwidth_bytes_per_s=1e9)


def job(
    name: str = "ps-sync", *said: str, workers: int = 5, servers: int = 1, speeds=None, costs=None, **of
) -> Scenario:
    lines = dict.fromkeys(KINDS, Line(base_s=1e-4, slope_s=1e-10, cold_s=3e-4))
    given_costs = Costs(compute=Line(base_s=0.01, cold_s=1e-3), resume_s=1e-3, **lines).model_copy(update=costs or {})
    variables = [Variable(name=f"w{i}", shape=(size,)) for i, size in enumerate((3000, 70_000, 10, 200_000))]
    model = Workload(name="layers", variables=variables, costs=given_costs)
    hosts = [
        Host(name=f"h{i}", slots=1, speed=1 - i / 37 if speeds is None else speeds) for i in range(workers + servers)
    ]
    cluster = Cluster(hosts=hosts, network=of.pop("link", LINK), oversleep_s=1e-5)
    settings = {"steps": 5, "warmup": 1, "batch": 8} | of
    protocol = protocols.make(name, list(said or ["barrier=true"]))
    return Scenario(protocol, model, workers, servers=servers, cluster=cluster, **settings)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 9),
    st.integers(1, 3),
    st.sampled_from(["none", "niagara*0.01", "cedar*0.3"]),
    st.floats(1e6, 1e10),
    st.floats(0, 1e-4),
    st.sampled_from([0.0, 3e-5]),
    st.sampled_from([0.0, 0.3]),
    st.sampled_from([1e-4, 1e-2]),
    st.integers(0, 99),
)
def test_the_worlds_agree(workers, servers, sleeps, bandwidth, gap_s, overhead_s, cv, compute_s, seed):
    """Gradients of the first workers come before requests of the last, where these sleep or ports are slow."""
    link = LINK.model_copy(update={"bandwidth_bytes_per_s": bandwidth, "gap_s": gap_s, "overhead_s": overhead_s})
    costs = {"compute": Line(base_s=compute_s), "noise": LogNormal(cv=cv), "update_noise": LogNormal(cv=0.1)}
    evaluates = {"test_size": 50, "evaluate_every": 2} if servers == 1 else {}
    of = {"link": link, "costs": costs, "stragglers": stragglers.read(sleeps), "seed": seed, **evaluates}
    of |= {"speeds": None if cv else 1.0, "variable_partitions": servers}
    assert_alike(job(workers=workers, servers=servers, **of))


@pytest.mark.parametrize(("servers", "parts"), [(1, 1), (2, 1), (2, 2), (4, 4)])
@pytest.mark.parametrize("link", [{}, {"overhead_s": 0.0}, {"latency_s": 0.0}])
def test_equal_workers_come_in_the_order_of_their_numbers(servers, parts, link):
    """And messages of equal servers, whose parts of the variables are alike, in the order of these."""
    of = {"workers": 7, "speeds": 1.0, "variable_partitions": parts, "link": LINK.model_copy(update=link)}
    assert_alike(job(servers=servers, **of))


@pytest.mark.parametrize("servers", [1, 2])
def test_a_run_that_ends_early_is_the_run_of_so_many_steps(servers):
    """Also of what workers wait for the last update."""
    costs = {"noise": LogNormal(cv=0.5), "update": Line(base_s=2e-3)}
    scenario = job(servers=servers, costs=costs, steps=6, warmup=2)
    cut, whole = vector.run(scenario, 2, within_s=0.0), vector.run(replace(scenario, warmup=1, steps=1), 2)
    assert cut.step_s.shape == (2, 1)
    np.testing.assert_array_equal(cut.step_s, whole.step_s)
    np.testing.assert_allclose(cut.idle_fraction, whole.idle_fraction, rtol=0, atol=1e-12)


def test_backup_workers_of_whom_there_are_none_are_synchronous_ones():
    found = vector.run(job("ps-backup", "barrier=true", "backup=0"))
    np.testing.assert_array_equal(found.step_s, vector.run(job()).step_s)


@pytest.mark.parametrize(
    ("name", "said", "servers"),
    [
        ("ps-sync", "barrier=false", 1),
        ("ps-backup", "barrier=false", 2),
        ("ps-backup", "barrier=true", 2),
        ("ps-async", "", 1),
    ],
)
def test_where_workers_differ_in_what_they_do_next_the_event_world_answers(name, said, servers):
    scenario = job(name, *said.split(), servers=servers) if said else Scenario(protocols.make(name), job().workload, 3)
    with pytest.raises(vector.Refused):
        vector.run(scenario)
    assert simulate(scenario, replications=1).world == "event"


class Unfetched(SynchronousServers):
    """Its workers fetch a minibatch when they have the parameters."""

    def worker(self, me):
        while training(me):
            yield from me.sleep()
            yield from pull(me, me.servers)
            yield from me.compute()
            yield from push(me, me.servers)


def test_work_between_the_answers_and_the_gradient_is_the_event_worlds():
    with pytest.raises(vector.Refused, match="does not pull"):
        vector.run(replace(job(), protocol=Unfetched(barrier=True)))


def test_the_step_of_one_worker_is_a_request_an_answer_and_a_gradient():
    costs = dict.fromkeys(KINDS, Line()) | {"compute": Line(base_s=0.01)}
    link = LINK.model_copy(update={"gap_s": 0.0, "bandwidth_bytes_per_s": 1e8})
    scenario = job(workers=1, speeds=1.0, costs=costs, link=link)
    sizes = (32, 32 + 4 * scenario.workload.parameters)
    message_s = [link.latency_s + size / 1e8 for size in (sizes[0], sizes[1], sizes[1], sizes[0])]
    assert vector.run(scenario).step_s == pytest.approx(0.01 + sum(message_s) + 8 * link.overhead_s, abs=EXACT_S)
