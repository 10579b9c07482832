"""No field of a job is ignored by the engine: each matters in a small job, and both worlds agree on it."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from engines import assert_alike
from scenarios import CLUSTERS, EXACT_S, hosts, made

from sim import event, stragglers
from sim.job.scenario import Scenario
from sim.laws import LogNormal
from sim.model.costs import Line
from sim.platform.cluster import Cluster, Link

NOISE, SLOW = LogNormal(cv=0.5), Line(base_s=1e-3)
COSTS = {
    **dict.fromkeys(("noise", "update_noise", "input_noise", "run"), ("fmb", NOISE)),
    **dict.fromkeys(("common_noise", "common_update_noise", "common_input_noise"), ("allreduce", NOISE)),
    **dict.fromkeys(("agree_s", "negotiate_s"), ("allreduce", 0.001)),
    **dict.fromkeys(("input", "compute", "pack", "take_up", "update", "background"), ("fmb", SLOW)),
    "reduce": ("ps-async", Line(base_s=1e-3, floor_s=5e-3)),
    "call": ("horovod", SLOW),
    "to_device": ("amb-dg time_limit_s=0.02", SLOW),
    "to_host": ("fmb", SLOW),
    "partition": ("amb time_limit_s=0.02", SLOW),
    "loop_s": ("amb time_limit_s=0.02", 1e-3),
    "resume_s": ("fmb", 1e-2),
}
LINKS = {"gap_s": 1e-3, "overhead_s": 1e-3, "latency_s": 1e-2, "bandwidth_bytes_per_s": 1e7}
NETWORKS = {
    **LINKS,
    "uneven": 0.5,
    "sustained_bytes_per_s": 1e7,
    "background_s": 1e-3,
    "store_and_forward": True,
    "fair": True,
}
GPUS = hosts(4, cores=2, gpus=2)
CHANGED = {
    "contention": ("fmb", "two cores", {"hosts": hosts(2, cores=2, contention=0.2)}),
    "switching": ("ps-async", GPUS, {"hosts": hosts(4, cores=2, gpus=2, switching=0.3)}),
    "shared_cores": ("fmb", "one core each", {"shared_cores": 2}),
    "poll_s": ("fmb", "two cores", {"poll_s": 4e-5}),
    "oversleep_s": ("fmb", "polls", {"oversleep_s": 1e-3}),
    "library": ("allreduce", "one core each", {"library": Link(latency_s=1e-2)}),
}
SETTINGS = {
    "sleeps_of": 0,
    "batch": 128,
    "seed": 9,
    "stragglers": stragglers.read("pareto(mean=5ms,shape=2.5)"),
    "servers": 2,
    "servers_on": "workers",
    "placement": "greedy",
}


def job(said: str, cluster: str = "one core each", workers: int = 3, **about) -> Scenario:
    (_, found), *_ = made(cluster, tuple(said.split()), "toy_fc", workers, 1)
    law = stragglers.read("lognormal(mean=20ms, cv=1)")
    return replace(found, steps=2, warmup=1, stragglers=law, **about)


def assert_it_matters(with_it, without: Scenario, changed: Scenario) -> None:
    before, after = (event.run(one, 1, want_trace=False)[0].step_s for one in (without, changed))
    assert np.abs(before - after).max() > EXACT_S
    assert_alike(with_it.Replications, changed, 1)


@pytest.mark.parametrize("name", COSTS)
def test_costs(compiled, name):
    said, value = COSTS[name]
    without = job(said)
    costs = without.workload.costs.model_copy(update={name: value})
    changed = replace(without, workload=without.workload.model_copy(update={"costs": costs}))
    assert_it_matters(compiled, without, changed)


@pytest.mark.parametrize("name", NETWORKS)
def test_the_network(compiled, name):
    without = job("allreduce")
    link = without.cluster.network.model_copy(update={name: NETWORKS[name]})
    assert_it_matters(compiled, without, replace(without, cluster=without.cluster.model_copy(update={"network": link})))


def test_a_field_of_a_link_that_the_engine_does_not_know_is_refused(compiled):
    """Once it says anything: it would be ignored without a word."""

    class Racks(Link):
        uplink_s: float = 0.0

    for uplink_s, is_known in ((0.0, True), (1e-3, False)):
        link = Racks(uplink_s=uplink_s)
        asked = job("allreduce", cluster="two cores").cluster.model_copy(update={"network": link})
        with nullcontext() if is_known else pytest.raises(compiled.NotBuilt, match="links with uplink_s"):
            compiled.check(replace(job("allreduce"), cluster=asked))


@pytest.mark.parametrize("name", [*LINKS, "background_s"])
def test_the_link_within_a_host(compiled, name):
    without = job("allreduce", "two cores")
    link = without.cluster.local.model_copy(update={name: NETWORKS[name]})
    assert_it_matters(compiled, without, replace(without, cluster=without.cluster.model_copy(update={"local": link})))


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=[pytest.mark.slow] * (one in ("oversleep_s", "poll_s"))) for one in CHANGED]
)
def test_the_cluster(compiled, name):
    said, on, update = CHANGED[name]
    without = replace(job(said), workers=5, cluster=CLUSTERS[on] if isinstance(on, str) else Cluster(hosts=on))
    without = replace(without, stragglers=stragglers.read("none"))  # which work at once
    assert_it_matters(compiled, without, replace(without, cluster=without.cluster.model_copy(update=update)))


SLOWER = ("servers_on", "placement")


@pytest.mark.parametrize("name", [pytest.param(one, marks=[pytest.mark.slow] * (one in SLOWER)) for one in SETTINGS])
def test_the_scenario(compiled, name):
    without = job("ps-sync", "two cores", servers=2 if name in SLOWER else 1)
    assert_it_matters(compiled, without, replace(without, **{name: SETTINGS[name]}))
