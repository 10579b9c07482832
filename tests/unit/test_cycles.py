"""Horovod in the vector world: all ranks decide alike, and what follows a decision is the same each time."""

from __future__ import annotations

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scenarios import assert_alike, assert_alike_or_refused

from sim import collectives, protocols, stragglers, vector
from sim.collectives.schedule import schedule, template
from sim.job.scenario import Scenario
from sim.laws import LogNormal
from sim.model import workload
from sim.model.costs import Costs, Line
from sim.model.workload import Variable, Workload
from sim.platform.cluster import Cluster, Host, Link
from sim.vector.cycles.by_tree import ByTree
from sim.vector.cycles.negotiation import Begun

COSTS = Costs(
    compute=Line(base_s=0.0213),
    pack=Line(base_s=1e-5, slope_s=1e-10),
    reduce=Line(slope_s=1e-10),
    update=Line(base_s=1e-3),
    call=Line(base_s=2e-5),
    negotiate_s=1e-5,
    noise=LogNormal(cv=0.1),
)
LINK = Link(latency_s=2e-4, overhead_s=3e-5, gap_s=2e-6, bandwidth_bytes_per_s=1e9)


def model(sizes, **costs) -> Workload:
    variables = [Variable(name=f"w{i}", shape=(size,)) for i, size in enumerate(sizes)]
    return Workload(name="layers", variables=variables, costs=COSTS.model_copy(update=costs))


def job(
    *said: str, workers: int = 8, sizes=(3000, 70_000, 10, 200_000, 4097), cores=2, speeds=None, costs=None, **of
) -> Scenario:
    hosts = [
        Host(name=f"h{i}", cores=cores, slots=1, speed=1 - i / 37 if speeds is None else speeds) for i in range(workers)
    ]
    cluster = Cluster(hosts=hosts, network=of.pop("link", LINK))
    settings = {"steps": 5, "warmup": 1, "batch": 8} | of
    return Scenario(
        protocols.make("horovod", list(said)), model(sizes, **costs or {}), workers, cluster=cluster, **settings
    )


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(
    st.integers(1, 11),
    st.sampled_from(["auto", "ring", "tree", "halving-doubling", "nccl", "hierarchical"]),
    st.sampled_from([0, 10**5, 10**6, 2**27]),
    st.sampled_from([0, 1e-3, 7e-3]),
    st.sampled_from(["parameters", "uniform", "end"]),
    st.floats(1e7, 1e10),
    st.integers(0, 99),
)
def test_the_worlds_agree(workers, algorithm, fusion_bytes, cycle_s, order, bandwidth, seed):
    link = LINK.model_copy(update={"bandwidth_bytes_per_s": bandwidth})
    said = f"algorithm={algorithm}", f"fusion_bytes={fusion_bytes}", f"cycle_s={cycle_s}", f"order={order}"
    assert_alike_or_refused(job(*said, workers=workers, link=link, seed=seed))


@pytest.mark.parametrize("workers", [1, 2, 3, 6, 16])
@pytest.mark.parametrize("cycle_s", [0, 1e-3])
def test_equal_ranks_that_begin_together_pass_a_port_in_the_order_of_their_numbers(workers, cycle_s):
    """They have waited for the same gradient; of rings of 3 and 6 the first cycle has messages at one instant."""
    assert_alike(
        job("algorithm=ring", f"cycle_s={cycle_s}", workers=workers, speeds=1.0, costs={"noise": LogNormal(cv=0.0)})
    )


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    st.integers(2, 13),
    st.sampled_from(["auto", "ring", "tree", "halving-doubling", "nccl", "recursive-doubling", "reduce-broadcast"]),
    st.sampled_from([0, 10**5, 2**27]),
    st.sampled_from([0, 1e-3, 7e-3]),
    st.booleans(),
    st.sampled_from([0.0, 0.1]),
    st.sampled_from([1e7, 1e8, 1e9, 1e10]),
)
def test_the_worlds_agree_on_equal_ranks(workers, algorithm, fusion_bytes, cycle_s, by_name, cv, bandwidth):
    """Their messages reach ports together, and pass in the order of their senders."""
    said = (
        f"algorithm={algorithm}",
        f"fusion_bytes={fusion_bytes}",
        f"cycle_s={cycle_s}",
        f"by_name={str(by_name).lower()}",
    )
    link, costs = LINK.model_copy(update={"bandwidth_bytes_per_s": bandwidth}), {"noise": LogNormal(cv=cv)}
    assert_alike_or_refused(job(*said, workers=workers, speeds=1.0, link=link, costs=costs, steps=3))


@pytest.mark.parametrize(("algorithm", "workers"), [("halving-doubling", 7), ("halving-doubling", 10), ("tree", 12)])
def test_equal_ranks_whose_messages_come_together_are_not_refused(algorithm, workers):
    """All without noise, and none of them a power of two."""
    said = f"algorithm={algorithm}", "by_name=true", "cycle_s=0"
    assert_alike(job(*said, workers=workers, speeds=1.0, costs={"noise": LogNormal(cv=0.0)}))


@pytest.mark.parametrize("said", [[], ["by_name=true", "fusion_bytes=100000"], ["order=end", "fusion_bytes=0"]])
def test_replications_decide_each_for_itself(said):
    """With sleeps and much noise they sum other gradients together; each is what it is alone; a factor on all cores is one more table."""
    of = {"stragglers": stragglers.read("niagara*0.01"), "test_size": 10, "evaluate_every": 2}
    scenario = job(*said, workers=4, costs={"noise": LogNormal(cv=0.5), "error": 0.1}, **of)
    assert_alike(scenario, replications=3)
    together, apart = vector.run(scenario, 4), vector.run(scenario, 2, first=2)
    np.testing.assert_array_equal(together.step_s[2:], apart.step_s)
    np.testing.assert_allclose(together.idle_fraction[2:], apart.idle_fraction, rtol=0, atol=1e-12)


def test_a_gradient_that_has_been_ready_is_no_tie():
    """In replication 10 a cycle's begin is one rounding before the moment from which rank 0 goes on: all it sums next was ready before."""
    scenario = Scenario(protocols.make("horovod"), workload.read("resnet50"), 2, steps=2, warmup=0)
    assert_alike(scenario, replications=20)


@pytest.mark.parametrize(
    ("algorithm", "workers", "size", "latency_s"),
    [
        pytest.param("recursive-doubling", 11, 3000, 1e-3, id="between the requests and the answer"),
        pytest.param("halving-doubling", 13, 300_000, 1e-5, id="and hold it up"),
        pytest.param("alltoall-allgather", 7, 300_000, 1e-3, id="in several rounds"),
    ],
)
def test_data_may_come_to_a_port_before_the_answer(algorithm, workers, size, latency_s):
    """From a rank that was told sooner, because it is higher in the tree."""
    costs = {"compute": Line(base_s=1.337e-3), "noise": LogNormal(cv=0.0)}
    link = Link(latency_s=latency_s, overhead_s=1e-5, bandwidth_bytes_per_s=1e9)
    of = {"workers": workers, "sizes": (size,), "speeds": 1.0, "costs": costs, "link": link, "steps": 2}
    assert_alike(job(f"algorithm={algorithm}", "order=end", **of), 1)


def test_waits_of_the_background_thread_count_from_when_its_rank_has_computed():
    """On a slow network calls go on long after: the first is at work when computing ends."""
    slow = LINK.model_copy(update={"bandwidth_bytes_per_s": 2e7})
    scenario = job("fusion_bytes=0", link=slow, steps=3, costs={"compute": Line(base_s=0.1)})
    assert_alike(scenario)
    found = vector.run(scenario).idle_fraction
    assert found.mean() > 1e-3
    with mock.patch(
        "sim.vector.cycles.decided.MOST_NUMBERS", 1
    ):  # nothing is kept, and decisions are worked out one by one
        np.testing.assert_allclose(vector.run(scenario).idle_fraction, found, rtol=0, atol=1e-12)


def test_a_run_that_ends_early_is_the_run_of_so_many_steps():
    scenario = job(steps=6, warmup=2)
    with mock.patch.object(vector.at_once, "MOST_RANKS", 0):  # steps that are made at once end with a block
        cut = vector.run(scenario, 2, within_s=0.0)
    whole = vector.run(replace(scenario, warmup=1, steps=1), 2)
    assert cut.step_s.shape == (2, 1)
    np.testing.assert_array_equal(cut.step_s, whole.step_s)
    np.testing.assert_allclose(cut.idle_fraction, whole.idle_fraction, rtol=0, atol=1e-12)


def test_it_is_refused_what_the_vector_world_cannot_do():
    assert "too few" in vector.refusal(job(cores=1))
    assert "slow one another" in vector.refusal(
        replace(job(), cluster=Cluster(hosts=[Host(count=8, cores=2, slots=1, contention=0.1)]))
    )
    assert vector.refusal(job()) is None
    assert vector.refusal(Scenario(protocols.make("horovod"), workload.read("resnet50"), 4)) is None


@pytest.mark.parametrize("ranks", [2, 3, 7, 8, 13])
def test_requests_that_wait_at_ports_are_the_sums_of_those_that_do_not(ranks):
    """Where no message waits for another both ways of reckoning are one; where one does, the root has all later."""
    rng, tree = np.random.default_rng(ranks), ByTree(ranks, LINK)
    now_s = rng.uniform(0, 2e-4, (500, ranks))
    free_s, never_s = np.zeros(now_s.shape), np.full(now_s.shape, -np.inf)
    begun = Begun(
        now_s,
        np.full((1, ranks), 3e-5),
        free_s,
        never_s,
        lambda: None,
        np.zeros(500, bool),
        lambda: None,
    )
    unhindered, _ = tree._unhindered(begun)
    in_order, found = tree._in_order(begun), tree.ask(begun)
    np.testing.assert_allclose(found.root_s, in_order.root_s, rtol=0, atol=1e-15)
    np.testing.assert_allclose(found.left_s[:, 1:], in_order.left_s[:, 1:], rtol=0, atol=1e-15)
    assert (in_order.root_s >= unhindered.root_s - 1e-15).all()
    assert (found.root_s > unhindered.root_s + 1e-9).any() or ranks != 3
    np.testing.assert_allclose(
        waited_s(found.waits, now_s.shape), waited_s(in_order.waits, now_s.shape), rtol=0, atol=1e-14
    )


def waited_s(waits, shape) -> np.ndarray:
    """Of each rank, shape (replications, ranks)."""
    found_s = np.zeros(shape)
    for ranks, from_s, to_s in waits:
        found_s[:, ranks] += np.maximum(to_s - from_s, 0)
    return found_s


@pytest.mark.parametrize(
    "algorithm", [name for name in collectives.NAMES if name not in ("auto", "nccl", "reduce-broadcast")]
)
@pytest.mark.parametrize("ranks", [1, 2, 5, 8, 12])
def test_an_algorithm_is_laid_out_once_for_all_sizes(algorithm, ranks):
    hosts = tuple(rank // 2 for rank in range(ranks)) if algorithm == "hierarchical" else tuple(range(ranks))
    wholes = [slice(0, 10), slice(3, 1001), slice(7, 9), slice(1, 1), slice(12345, 99999)]
    laid_out = template(algorithm, hosts).sized(
        *(np.array([getattr(w, end) for w in wholes]) for end in ("start", "stop"))
    )
    for row, whole in enumerate(wholes):
        apart = schedule(collectives.allreduce(algorithm, rank, hosts, whole) for rank in range(ranks))
        np.testing.assert_array_equal(laid_out.size_bytes[row], apart.size_bytes)
        np.testing.assert_array_equal(laid_out.order, apart.order)


def test_an_algorithm_that_counts_chunks_is_laid_out_for_each_size():
    assert template("nccl", (0, 1)) is None
