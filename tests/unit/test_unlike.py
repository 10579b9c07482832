"""Hosts of unlike speed: what the slowest cost, in samples and in USD."""

from dataclasses import replace

import pytest

from sim import protocols, run
from sim.answers import quantities
from sim.answers.summary import COSTS, SLOW_HOSTS_COST
from sim.job import variants
from sim.job.scenario import Scenario
from sim.model.costs import Costs, Line
from sim.model.workload import Workload
from sim.platform.cluster import Cluster, Host
from sim.simulation import simulate
from sim.studies.why import FREE, why

BATCH, SLOPE_S = 32, 1e-3


def job(*hosts: Host, name: str = "allreduce", **options) -> Scenario:
    """Workers on all hosts, whose messages and sums take no time."""
    workload = Workload(name="planted", variables=[{"name": "w", "shape": [8]}], batch=BATCH)
    costs = {"planted": Costs(compute=Line(slope_s=SLOPE_S))}
    cluster = Cluster(hosts=hosts, network=FREE, local=FREE, costs=costs)
    workers = sum(host.count for host in hosts) - options.pop("beside", 0)
    return Scenario(protocols.make(name), workload, workers, 5, 2, cluster=cluster, **options)


FAST, SLOW = Host(name="fast", count=3, price_per_hour=2.0), Host(name="slow", speed=0.25, price_per_hour=0.5)


def speed(scenario: Scenario) -> float:
    return simulate(scenario, replications=1).samples_per_s


def test_hosts_within_a_tenth_are_alike():
    assert variants.without_slowest(job(FAST, Host(speed=0.91))) is None
    assert variants.without_slowest(job(FAST, Host(speed=0.5), Host(speed=0.51))).cluster.hosts == (FAST,)


def test_hosts_without_a_worker_are_not_slow():
    scenario = job(FAST, SLOW)
    assert variants.without_slowest(replace(scenario, workers=3)) is None


def test_without_the_slow_host_the_others_set_the_pace():
    scenario = job(FAST, SLOW)
    fewer = variants.without_slowest(scenario)
    assert fewer
    assert fewer.workers == 3
    assert fewer.cluster.usd_per_hour == 6.0
    assert speed(fewer) / speed(scenario) == pytest.approx(3 / (4 * 0.25), rel=1e-6)


def test_a_server_on_the_slow_host_stays():
    slow = Host(name="slow", speed=0.25, cores=2, slots=2)
    assert variants.without_slowest(job(slow, FAST, name="ps-sync")) is None
    beside = variants.without_slowest(job(FAST, SLOW, name="ps-sync", servers_on="workers"))
    assert beside
    assert beside.workers == 3


def test_a_straggler_that_would_be_gone_leaves_no_such_job():
    from sim.stragglers import read

    scenario = job(FAST, SLOW, stragglers=read("slow-ranks(rank=3, factor=2)"))
    assert variants.without_slowest(scenario) is None


def test_the_line_says_it_in_samples_and_in_usd():
    scenario = job(FAST, SLOW)
    now, fewer = (simulate(one, replications=1).answer() for one in (scenario, variants.without_slowest(scenario)))
    said = COSTS[SLOW_HOSTS_COST](now, fewer)
    assert said == "66.7%: 3,000 samples/s without 1 x slow, 0.556 USD a million samples, 6 an hour"
    assert COSTS[SLOW_HOSTS_COST](fewer, now).startswith("nothing: ")


def test_a_run_says_what_slow_hosts_cost(capsys, tmp_path):
    path = tmp_path / "mixed.toml"
    path.write_text(
        'schema = "cluster/1"\nhosts = [{ name = "big", count = 2, gpu = "A100" }, { name = "old", gpu = "T4" }]\n'
    )
    words = ["--protocol", "allreduce", "--workload", "mlp", "--workers", "all", "--cluster", str(path)]
    run.main([*words, "--stragglers", "none", "--replications", "2", "--steps", "5"])
    out = " ".join(capsys.readouterr().out.split())
    assert "slow hosts cost" in out
    assert "without 1 x old (T4)" in out
    assert "USD" not in out


def test_a_host_more_is_still_on_the_same_network():
    base = replace(job(FAST, SLOW), cluster=Cluster(hosts=(FAST, SLOW)))
    fewer = replace(base, cluster=Cluster(hosts=(FAST,)), workers=3)
    ours, theirs = ({one.cause for one in quantities.of(scenario)} for scenario in (base, fewer))
    assert "links of fast" in ours & theirs


def test_why_has_them():
    scenario = job(FAST, SLOW)

    def again(other: Scenario, replications: int | None = None):
        return simulate(other, replications=replications or 2)

    found = why(again(scenario), again, lambda text: scenario)
    assert found.critical == "without slow hosts"
