"""What is a slow host's and what a slow run's: told apart by repeated runs, or by what lasts through a single one."""

from dataclasses import replace

import event
import numpy as np
import pandas as pd
import pytest
from event import by_engine

from calibration.evidence import factors
from calibration.evidence import host_speeds as hosts
from calibration.profiles import FREE, Source, make
from sim import stragglers
from sim.answers.outcome import of_trace
from sim.job.scenario import Scenario
from sim.laws import LogNormal
from sim.model import workload
from sim.model.costs import Costs, Line
from sim.platform.cluster import Cluster, Host
from sim.recording.traces import Trace
from sim.texts import FixedMinibatch

MLP = workload.NAMED["mlp"]


def test_a_host_is_slow_if_runs_repeat_it():
    rng, host = np.random.default_rng(5), np.tile(np.arange(6), 3)
    slow = np.where(host == 2, 1.25, 1.0) * np.exp(0.01 * rng.standard_normal(18))
    found = hosts.tell_apart(slow, host, 6)
    assert found.speeds[2] == pytest.approx(1 / 1.25, rel=0.03)
    assert factors.law(found.left(slow, host)).cv < 0.03


def test_a_slow_run_is_no_slow_host():
    factor = np.ones(20)
    factor[7] = 1.17
    factor *= np.exp(0.01 * np.random.default_rng(6).standard_normal(20))
    found = hosts.tell_apart(factor, np.tile(np.arange(10), 2), 10)
    assert (found.speeds == 1).all()
    assert "do not repeat" in found.note


def test_what_lasts_through_a_single_run_is_the_host_s():
    """A slow host that is one in each replication, and not none or three; without quarters, or without differences, as before."""
    factor = np.array([1.0, 1.2, 1.0])
    quarters = factor[:, None] * np.exp(0.002 * np.random.default_rng(7).standard_normal((3, 4)))
    found = hosts.tell_apart(factor, np.arange(3), 3, quarters)
    assert found.speeds == pytest.approx([1, 1 / 1.2, 1])
    assert (set(found.left(factor, np.arange(3))), found.believed) == ({1.0}, True)
    assert "other runs may have other speeds" in found.note
    passing = np.exp(0.1 * np.random.default_rng(8).standard_normal((3, 4)))
    assert (hosts.tell_apart(passing.mean(axis=1), np.arange(3), 3, passing).speeds == 1).all()


@pytest.mark.slow
@pytest.mark.parametrize("hidden", [False, True])
def test_a_single_run_is_replayed_with_its_slow_host(hidden):
    """Fixed minibatches wait for the slowest: p5 to p95 of the steps are those of the run, whether or not sleeps were logged."""
    costs = Costs(compute=Line(slope_s=2e-3), update=Line(base_s=0.05), noise=LogNormal(cv=0.01))
    where = Cluster(
        hosts=(Host(count=6), Host(name="slow", speed=0.85), Host(count=2)), network=FREE, costs={"mlp": costs}
    )
    named = {"stragglers": stragglers.read("niagara*0.1"), "stragglers_name": "niagara*0.1"}
    job = {"workload": MLP, "workers": 8, "batch": 256, "steps": 800, "warmup": 1} | named
    trace = event.trace(Scenario(FixedMinibatch(), cluster=where, **job))
    if hidden:
        trace = _logged_as_one(trace)
    made = make([Source("run", trace)], "one")
    assert made.costs["mlp"].compute(256) == pytest.approx(costs.compute(256), rel=0.01)
    speeds = [host.speed for host in list(made.machines())]
    assert speeds == pytest.approx([1] * 6 + [0.85] + [1] * 2, rel=0.01)
    again = by_engine(Scenario(FixedMinibatch(), cluster=made, **job), 10)
    recorded = of_trace(trace).step_s
    for percent in (5, 50, 95):
        assert np.percentile(again.step_s, percent) == pytest.approx(np.percentile(recorded, percent), rel=0.02), (
            percent
        )


def _logged_as_one(trace):
    """Sleep and computation in one row, as the AMB repository's statistics have them."""
    rows = trace.rows[trace.rows["activity"] != "sleep"].copy()
    begins = trace.rows[trace.rows["activity"] == "sleep"].set_index(["rank", "step"])["start_s"]
    compute = rows["activity"] == "compute"
    keys = pd.MultiIndex.from_frame(rows.loc[compute, ["rank", "step"]])
    own_s = rows.loc[compute, "start_s"].to_numpy()
    rows.loc[compute, "start_s"] = np.fmin(begins.reindex(keys).to_numpy(), own_s)
    return Trace(replace(trace.header, sleep_in_compute=True), rows)


def test_one_run_cannot_tell():
    factor = np.array([1.0, 1.2, 1.0])
    found = hosts.tell_apart(factor, np.arange(3), 3)
    assert (found.speeds == 1).all()
    assert (found.left(factor, np.arange(3)) == factor).all()
