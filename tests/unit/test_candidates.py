"""An unknown algorithm: candidates are simulated alike, and the interval is that of their mixture."""

from __future__ import annotations

import math

import pytest

from sim import event, protocols
from sim.answers import candidates
from sim.base.errors import WrongSetting
from sim.job.scenario import Scenario
from sim.model.costs import Costs, Line
from sim.model.workload import Workload
from sim.platform.cluster import Cluster, Host
from sim.simulation import simulate

MODEL = Workload(name="mine", parameters="20 M", layers=4, costs=Costs(compute=Line(base_s=0.01)))


def job(protocol="allreduce", hosts=4, each=1, algorithm="unknown"):
    where = Cluster(hosts=[Host(count=hosts, cores=each)])
    text = protocols.make(protocol, [f"algorithm={algorithm}"])
    return Scenario(text, MODEL, workers=hosts * each, steps=3, warmup=1, cluster=where)


def test_the_interval_is_that_of_the_mixture():
    found = simulate(job())
    alone = {name: simulate(one, replications=1).samples_per_s for name, one in candidates.of(job()).items()}
    assert found.speeds == pytest.approx(alone)
    assert len(found.step_s) == candidates.RUNS * len(alone)
    assert found.samples_per_s == pytest.approx(math.exp(sum(map(math.log, alone.values())) / len(alone)))
    low, high = found.interval
    assert low < min(alone.values()) < max(alone.values()) < high
    one = simulate(job(algorithm="ring"), replications=4).interval
    assert high / low > 1.5 * one[1] / one[0]  # the negative control: an algorithm that is known


def test_the_answer_names_them_the_fastest_first():
    said = simulate(job()).notes[-1]
    speeds = simulate(job()).speeds
    assert said.startswith(f"the library's algorithm is unknown: {max(speeds, key=speeds.get)} ")
    assert all(name in said for name in speeds)


def test_hierarchies_are_candidates_where_hosts_have_several_ranks():
    assert "hierarchical" not in candidates.of(job())
    assert set(candidates.of(job("horovod", hosts=2, each=2))) == set(candidates.CANDIDATES)


def test_runs_that_are_asked_for_are_shared_out():
    assert simulate(job(), replications=8).step_s.shape == (8, 3)
    assert simulate(job(), replications=1).step_s.shape == (4, 3)


def test_a_trace_and_a_real_run_follow_one_algorithm():
    with pytest.raises(WrongSetting, match="a name, because a trace follows one algorithm"):
        simulate(job(), want_trace=True)
    with pytest.raises(WrongSetting, match="a real run"):
        candidates.refuse(job(), "a real run")
    with pytest.raises(WrongSetting):
        event.run(job())


def test_a_wrong_name_lists_it():
    with pytest.raises(WrongSetting, match="hierarchical, unknown"):
        job(algorithm="fastest")
