"""Ranks that share hosts, in the vector world: they copy from one another, and take turns at the ports of their host."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scenarios import EXACT_S, assert_alike, assert_alike_or_refused

from sim import collectives, protocols, stragglers, vector
from sim.collectives.base import hand, take
from sim.job.scenario import Scenario
from sim.laws import LogNormal
from sim.model import workload
from sim.model.costs import Costs, Line
from sim.platform import cluster
from sim.platform.cluster import Cluster, Host, Link
from sim.simulation import simulate
from sim.vector.shared.call import Call, Clocks, Seconds
from sim.vector.shared.plan import plan

MLP = workload.read("mlp")


def job(name: str, *said: str, workers: int = 6, slots: int | list[int] = 3, noise: float = 0.3, **of) -> Scenario:
    """Hosts of so many slots, or of these in turn. The first is a little slower, and the last may not be full."""
    lines = dict.fromkeys(("pack", "take_up", "reduce", "update", "evaluate"), Line(base_s=1e-5, slope_s=1e-10))
    costs = Costs(
        compute=Line(base_s=4e-3, cold_s=1e-3),
        partition=Line(base_s=1e-3),
        call=Line(base_s=1e-5),
        noise=LogNormal(cv=noise),
        **lines,
    )
    threads = 2 if name == "horovod" else 1
    hosts: list[Host] = []
    each = itertools.cycle([slots] if isinstance(slots, int) else slots)
    while sum(host.slots for host in hosts) < workers + of.get("servers", 1):
        count = next(each)
        own = {"slots": count, "cores": threads * count}
        hosts.append(Host(name=f"h{len(hosts)}", speed=1 - 0.1 * (not hosts), **own))
    network = of.pop("network", Link(latency_s=2e-5, gap_s=1e-6, bandwidth_bytes_per_s=1e9))
    local = of.pop("local", Link(latency_s=2e-6, overhead_s=1e-5, bandwidth_bytes_per_s=2e10))
    model = of.pop("model", MLP)
    place = Cluster(hosts=hosts, network=network, local=local, costs={"mlp": costs})
    settings = {"steps": 4, "warmup": 1, "batch": 20} | of
    return Scenario(protocols.make(name, list(said)), model, workers, cluster=place, **settings)


@st.composite
def jobs(draw, names=("fmb", "amb", "allreduce", "horovod")) -> Scenario:
    name = draw(st.sampled_from(names))
    said = {
        "fmb": [],
        "amb": [f"time_limit_s={draw(st.floats(0, 0.02))}", "partitions=8"],
        "allreduce": [
            f"algorithm={draw(st.sampled_from(collectives.NAMES))}",
            f"fused={draw(st.booleans())}",
        ],
        "horovod": [
            f"algorithm={draw(st.sampled_from(collectives.NAMES))}",
            f"fusion_bytes={draw(st.sampled_from([0, 10**5, 2**27]))}",
            f"cycle_s={draw(st.sampled_from([0, 1e-4, 1e-3, 2e-2]))}",
            f"by_name={draw(st.booleans())}",
        ],
    }[name]
    links = {
        kind: Link(
            latency_s=draw(st.sampled_from([0.0, 1e-6, 1e-3])),
            overhead_s=draw(st.sampled_from([0.0, 1e-5])),
            gap_s=draw(st.sampled_from([0.0, 1e-5])),
            bandwidth_bytes_per_s=draw(st.floats(1e6, 1e10)),
        )
        for kind in ("network", "local")
    }
    of = {
        "noise": draw(st.sampled_from([0.0, 0.3, 1.0])),
        "stragglers": stragglers.read(draw(st.sampled_from(["none", "niagara*0.002"]))),
        "seed": draw(st.integers(0, 99)),
        "test_size": draw(st.sampled_from([0, 50])),
        "evaluate_every": 2,
    }
    several = st.lists(st.integers(1, 8), min_size=1, max_size=4) | st.integers(2, 8)
    slots = draw(several if name in ("allreduce", "horovod") else st.sampled_from([2, 3, 4]))
    return job(name, *said, workers=draw(st.integers(2, 9)), slots=slots, **links, **of)


@settings(max_examples=40, deadline=None)
@example(job("allreduce", "algorithm=ring"))
@example(job("amb", workers=7))
@example(job("horovod", "algorithm=ring", workers=8, slots=4))
@example(job("horovod", "algorithm=hierarchical", "fusion_bytes=0", "cycle_s=0.0001", workers=9, slots=4))
@given(jobs())
def test_the_worlds_agree(scenario):
    """Where messages of one call come to a port before the last of another, or so near that rounding decides, the vector world refuses."""
    assert_alike_or_refused(scenario)


@pytest.mark.parametrize(("name", "said"), [("allreduce", ["algorithm=tree"]), ("fmb", [])])
def test_equal_ranks_whose_messages_take_no_core_are_not_refused(name, said):
    """What wakes a rank has taken a port, so that ranks are on their way to a port before they come to it together."""
    link = Link(latency_s=2e-5, overhead_s=0.0, bandwidth_bytes_per_s=1e9)
    assert_alike(job(name, *said, workers=8, slots=4, noise=0.0, network=link), 1)


@pytest.mark.parametrize("workers", [7, 8])
@pytest.mark.parametrize("algorithm", collectives.NAMES)
def test_no_algorithm_is_refused_where_ranks_are_equal(algorithm, workers):
    """Messages that come to a port together pass it in the order of ranks."""
    assert_alike(job("allreduce", f"algorithm={algorithm}", workers=workers, slots=4, noise=0.0), 1)


@settings(max_examples=60, deadline=None)
@example(job("horovod", "algorithm=ring", workers=6, slots=3))
@example(job("horovod", "algorithm=ring", "by_name=true", workers=12, slots=5))
@example(job("horovod", "algorithm=auto", "cycle_s=0.0001", workers=9, slots=[6, 1, 7]))
@example(job("horovod", "algorithm=tree", "by_name=true", "fusion_bytes=0", workers=9, slots=[2, 7], noise=0.0))
@given(jobs(["horovod"]))
def test_the_worlds_agree_where_ranks_of_a_host_ask_rank_0_together(scenario):
    """Requests of several ranks pass a host's port, among one another and among the last messages of the call before."""
    assert_alike_or_refused(scenario)


@pytest.mark.parametrize("by_name", ["false", "true"])
@pytest.mark.parametrize("slots", [2, 3, 4, 5, 6, 7, 8, [3, 1, 5], [1, 7], [6, 2]], ids=str)
def test_horovod_is_not_refused_on_hosts_of_any_number_of_ranks(slots, by_name):
    """Where links have some latency."""
    assert_alike(job("horovod", "algorithm=ring", f"by_name={by_name}", workers=9, slots=slots))


@pytest.mark.parametrize(("name", "workers"), [("fmb", 15), ("allreduce", 16)])
def test_hosts_with_gpus_are_answered_by_the_vector_world(name, workers):
    """Of which the planner asks most."""
    said = ["algorithm=ring"] * (name == "allreduce")
    of = {"cluster": cluster.read("p3.16xlarge*2"), "steps": 3, "warmup": 1}
    scenario = Scenario(protocols.make(name, said), workload.read("resnet50"), workers, **of)
    found = simulate(scenario, replications=1)
    assert found.world == "vector"
    np.testing.assert_allclose(found.step_s, simulate(scenario, "event", replications=1).step_s, rtol=0, atol=EXACT_S)


@pytest.mark.parametrize(
    ("algorithm", "hosts", "world"),
    [("auto", 2, "vector"), ("auto", 4, "event"), ("halving-doubling", 4, "event"), ("hierarchical", 4, "vector")],
)
def test_an_allreduce_is_answered_by_the_faster_world(algorithm, hosts, world):
    """Where many ranks of a host send to others at once, events take less than arrays that are settled again and again."""
    of = {"cluster": cluster.read(f"p3.16xlarge*{hosts}"), "steps": 1, "warmup": 0}
    scenario = Scenario(protocols.make("allreduce", [f"algorithm={algorithm}"]), MLP, 8 * hosts, **of)
    assert simulate(scenario, replications=1).world == world


PIECE = slice(0, 25_000)  # which takes a port 1 ms


@pytest.mark.parametrize(
    ("to_second", "begin_s", "end_s"),
    [
        pytest.param(1, (1e-3, 8e-4), (2.8e-3, 1.8e-3, 3.0e-3, 2.0e-3), id="one after another"),
        pytest.param(2, (9e-3, 0.0), (1e-2, 2e-3, 1.02e-2, 2.2e-3), id="the second before the first of the other"),
    ],
)
def test_ranks_of_a_host_take_turns_at_its_port(to_second, begin_s, end_s):
    """Two hosts of two. Rank 0 hands 0.1 MB to rank 2, and rank 1 to rank 3, once or twice."""
    exchanges = [[hand(2, PIECE)], [hand(3, PIECE)] * to_second, [take(0, PIECE)], [take(1, PIECE)] * to_second]
    laid, link = plan(exchanges, [0, 0, 1, 1]), Link(latency_s=2e-4, overhead_s=0.0, bandwidth_bytes_per_s=1e8)
    free_s = np.zeros((1, 2))
    clocks = Clocks(np.array([[*begin_s, 0.0, 0.0]]), free_s, free_s)
    call = Call(laid, Seconds.of(np.array(laid.size_bytes), link, link, Line()), np.ones((1, 4)), clocks)
    np.testing.assert_allclose(call.play().now_s, [end_s], rtol=0, atol=1e-15)


def test_of_ranks_that_share_more_the_event_world_knows():
    assert "ranks on one host" in vector.refusal(job("fmb", local=Link(wakes=True, latency_s=1e-5)))
