"""Reading of minibatches: a step takes as long as reading or computing, whichever is longer, and the answer says where reading binds."""

from math import inf

import pytest
from event import agree

from sim import protocols
from sim.answers.extrapolation import unknowns
from sim.job import reading
from sim.job.scenario import Scenario
from sim.model.costs import Costs, Line
from sim.model.workload import Workload
from sim.platform.cluster import Cluster, Host, read
from sim.simulation import simulate
from sim.studies.why import FREE, why

BATCH, SLOPE_S = 32, 1e-3
COMPUTING_S = BATCH * SLOPE_S


def job(*hosts: Host, name: str = "allreduce", costs: dict | None = None, reading: float | None = None) -> Scenario:
    """Workers on all hosts, whose messages and sums take no time."""
    model = Workload(name="planted", variables=[{"name": "w", "shape": [8]}], batch=BATCH, reading=reading)
    measured = {"planted": Costs(**({"compute": Line(slope_s=SLOPE_S)} | (costs or {})))}
    cluster = Cluster(hosts=hosts, network=FREE, local=FREE, costs=measured)
    beside = 0 if name == "allreduce" else 1
    workers = sum(host.count * host.ranks for host in hosts) - beside
    return Scenario(protocols.make(name), model, workers, 5, 2, cluster=cluster)


TWO = Host(count=2, cores=4, slots=2)


def step_s(scenario: Scenario) -> float:
    return simulate(scenario, replications=1).step_s.mean()


@pytest.mark.parametrize(("per_s", "read_s"), [(1000, 2 * BATCH / 1000), (1e6, 0.0)])
def test_a_step_takes_as_long_as_reading_or_computing(per_s, read_s):
    assert step_s(job(TWO, reading=per_s)) == pytest.approx(max(COMPUTING_S, read_s), rel=1e-9)


@pytest.mark.parametrize("name", ["allreduce", "ps-async", "amb", "horovod"])
def test_both_worlds_wait_alike(name):
    agree(job(Host(count=4, cores=2, slots=1), name=name, reading=500))


def test_of_unlike_hosts_the_slowest_sets_the_pace():
    slow = Host(speed=0.5)
    assert step_s(job(Host(), slow, reading=900)) == pytest.approx(COMPUTING_S / 0.5, rel=1e-9)
    assert step_s(job(Host(), slow, reading=400)) == pytest.approx(BATCH / 400, rel=1e-9)


def test_a_longer_measured_wait_stays():
    waits = {"input": Line(base_s=0.1)}
    assert step_s(job(TWO, costs=waits, reading=1000)) == pytest.approx(COMPUTING_S + 0.1, rel=1e-9)


def test_the_note_says_both_rates_where_reading_binds():
    (note,) = reading.notes(job(TWO, reading=800))
    assert note.startswith("reading data binds: host reads 800 samples/s, and its workers would compute 2,000")
    assert reading.notes(job(TWO, reading=1e6)) == []
    assert reading.notes(job(TWO)) == []
    assert note in simulate(job(TWO, reading=800), replications=1).notes


def test_why_finds_it_and_faster_computing_does_not_help():
    scenario = job(TWO, reading=500)

    def again(other: Scenario, replications: int | None = None):
        return simulate(other, replications=replications or 2)

    found = why(again(scenario), again, lambda text: scenario)
    assert found.critical == "without waiting for data"
    assert found.causes[0].ratio == pytest.approx(2 * BATCH / 500 / COMPUTING_S, rel=1e-6)
    assert [one.change for one in found.causes] == ["without waiting for data"]


def test_nothing_in_the_interval_is_faster_than_reading():
    place = read("p3.8xlarge*1")
    model = Workload(name="mine", parameters=1000, layers=1, flops_per_sample=4e9, batch=BATCH, reading=320)
    result = simulate(Scenario(protocols.make("allreduce"), model, 4, 5, 2, cluster=place), replications=2)
    (shared,) = [one for one in unknowns(result.scenario, result.outcome) if one.number == "hosts that GPUs share"]
    assert shared.faster < 0.02
    assert shared.slower > 0.4
    assert inf > reading.least_s(result.scenario) == pytest.approx(4 * BATCH / 320)
