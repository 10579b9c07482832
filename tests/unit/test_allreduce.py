"""Allreduce in the event world: closed forms of every algorithm in seconds and bytes, and the laws of the protocol."""

import math
from dataclasses import replace

import event
import numpy as np
import pytest

from sim import protocols, stragglers
from sim.answers.outcome import of_trace
from sim.job.scenario import Scenario
from sim.language.collectives import CHUNK_BYTES, LINK_BYTES, SLICES
from sim.model import workload
from sim.model.costs import Costs, Line
from sim.model.workload import Variable, Workload
from sim.platform.cluster import Cluster, Host, Link

ITEMS = 720_720  # can be cut in 2 to 16 equal parts
BYTES = 4 * ITEMS
DIVISIBLE = Workload(name="divisible", variables=[Variable(name="w", shape=(ITEMS,))])
LINK = Link(latency_s=1e-3, overhead_s=2e-4, gap_s=3e-5, bandwidth_bytes_per_s=1e8)
LOCAL = Link(latency_s=1e-5, overhead_s=1e-4, bandwidth_bytes_per_s=1e9)
COSTS = Costs(compute=Line(base_s=0.01), reduce=Line(base_s=1e-5, slope_s=1e-9), update=Line(base_s=1e-3))
POWERS = (2, 4, 8, 16)


def job(algorithm: str = "ring", workers: int = 4, hosts: list[Host] | None = None, **options) -> Scenario:
    fused = f"fused={options.pop('fused', True)}"
    link, costs = options.pop("link", LINK), options.pop("costs", COSTS)
    model = options.pop("workload", DIVISIBLE)
    cluster = Cluster(hosts=hosts or [Host(count=workers)], network=link, local=LOCAL, costs={model.name: costs})
    options = {"steps": 3, "warmup": 1, "batch": 10, **options}
    return Scenario(
        protocols.make("allreduce", [f"algorithm={algorithm}", fused]), model, workers, cluster=cluster, **options
    )


def seconds(scenario: Scenario) -> np.ndarray:
    """From the end of packing to the update, in the first step, shape (ranks,)."""
    rows = event.trace(replace(scenario, steps=1, warmup=0)).rows
    rows = rows[rows["step"] == 0].sort_values("end_s").groupby(["rank", "activity"])
    return rows["start_s"].last().xs("update", level=1).to_numpy() - rows["end_s"].last().xs("pack", level=1).to_numpy()


def message_s(size_bytes: float) -> float:
    """LogGP: from one rank's call to the other's having it."""
    return LINK.latency_s + 2 * LINK.overhead_s + LINK.occupancy_s(size_bytes)


@pytest.mark.parametrize("n", [2, 3, 5, 8, 15, 16])
def test_ring_takes_its_closed_form(n):
    """2 (n - 1) (L + 2 o + g + m / (n B)), and n - 1 sums of m / n bytes."""
    expected_s = 2 * (n - 1) * message_s(BYTES / n) + (n - 1) * COSTS.reduce(BYTES / n)
    np.testing.assert_allclose(seconds(job("ring", n)), expected_s, rtol=0, atol=1e-9)


@pytest.mark.parametrize("latency_s", [0.0, 0.01, 0.05])
@pytest.mark.parametrize("turns", [1, 3])
@pytest.mark.parametrize("n", [2, 4, 6])
def test_nccl_pays_the_latencies_of_every_chunk(n, turns, latency_s):
    """Each of 2 (n - 1) rounds of each turn the longer of two slices through the port and of one on its way."""
    link = Link(latency_s=latency_s, overhead_s=0, bandwidth_bytes_per_s=1e8)
    model = Workload(name="chunks", variables=[Variable(name="w", shape=(turns * n * CHUNK_BYTES // 4,))])
    slice_s = CHUNK_BYTES / SLICES / link.bandwidth_bytes_per_s
    round_s = max(SLICES * slice_s, latency_s + slice_s)
    last_s = min(latency_s, (SLICES - 1) * slice_s)  # after its last round a turn's last slice is still to come
    expected_s = turns * (2 * (n - 1) * round_s + last_s)
    scenario = job("nccl", n, workload=model, link=link, costs=Costs(), steps=1, warmup=0)
    assert seconds(scenario).max() == pytest.approx(expected_s, rel=1e-6)


@pytest.mark.parametrize("latency_s", [0.0, 0.05])
@pytest.mark.parametrize("chunks", [1, 7])
@pytest.mark.parametrize("n", [*range(2, 9), 16])
def test_reduce_broadcast_pays_a_chain_s_latencies_twice(n, chunks, latency_s):
    """2 ((K + n - 2) (g + c / B) + (n - 1) L): the last to know is at the chain's end."""
    link = LINK.model_copy(update={"latency_s": latency_s, "overhead_s": 0.0})
    items = chunks * LINK_BYTES // 4
    model = Workload(name="chunks", variables=[Variable(name="w", shape=(items,))])
    expected_s = 2 * ((chunks + n - 2) * link.occupancy_s(LINK_BYTES) + (n - 1) * latency_s)
    scenario = job("reduce-broadcast", n, workload=model, link=link, costs=Costs(), steps=1, warmup=0)
    assert seconds(scenario).max() == pytest.approx(expected_s, rel=1e-9)


@pytest.mark.parametrize("latency_s", [0.0, 0.05])
@pytest.mark.parametrize("n", [2, 3, 5, 8, 15, 16])
def test_alltoall_allgather_pays_two_latencies_however_many_ranks(n, latency_s):
    """2 (L + (n - 1) (g + m / (n B)))."""
    link = LINK.model_copy(update={"latency_s": latency_s, "overhead_s": 0.0})
    expected_s = 2 * (latency_s + (n - 1) * link.occupancy_s(BYTES / n))
    scenario = job("alltoall-allgather", n, link=link, costs=Costs())
    np.testing.assert_allclose(seconds(scenario), expected_s, rtol=0, atol=1e-9)


def test_what_is_handed_over_ahead_has_left_by_the_end_of_the_call():
    """Also at a rank that adds up so slowly that the other's half is there before its own leaves."""
    rows = event.trace(job("alltoall-allgather", 2, _hosts([1, 0.1]), costs=Costs(reduce=Line(base_s=0.1)))).rows
    for _, of_rank in rows[rows["step"] == 0].groupby("rank"):
        ended = of_rank.groupby("activity")["end_s"].max()
        updated_s = of_rank[of_rank["activity"] == "update"]["start_s"].iloc[0]
        assert updated_s >= ended["send"]


@pytest.mark.parametrize("n", POWERS)
def test_algorithms_in_log_n_rounds_take_their_closed_forms(n):
    """Halves and back; whole vectors exchanged; whole vectors up and down a tree, where the last to know counts."""
    rounds = int(math.log2(n))
    halves = [BYTES / 2**k for k in range(1, rounds + 1)]
    expected_s = {
        "halving-doubling": sum(2 * message_s(half) + COSTS.reduce(half) for half in halves),
        "recursive-doubling": rounds * (message_s(BYTES) + COSTS.reduce(BYTES)),
        "tree": rounds * (2 * message_s(BYTES) + COSTS.reduce(BYTES)),
    }
    found = {algorithm: seconds(job(algorithm, n)) for algorithm in expected_s}
    assert {algorithm: one.max() for algorithm, one in found.items()} == pytest.approx(expected_s, rel=0, abs=1e-9)
    assert all(np.ptp(found[name]) < 1e-9 for name in ("halving-doubling", "recursive-doubling"))


@pytest.mark.parametrize("algorithm", ["halving-doubling", "recursive-doubling"])
@pytest.mark.parametrize("n", [3, 6, 12])
def test_ranks_beyond_a_power_of_two_cost_a_message_before_and_one_after(algorithm, n):
    """But for what those without a pair send meanwhile: a latency and an overhead saved, or a port that is taken."""
    below = 1 << (n.bit_length() - 1)
    more_s = seconds(job(algorithm, n)).max() - seconds(job(algorithm, below)).max()
    times, part = (1, BYTES) if algorithm == "recursive-doubling" else (2, BYTES / 2)
    longest_s = times * message_s(part) + COSTS.reduce(part) + message_s(BYTES)
    assert longest_s - LINK.latency_s - LINK.overhead_s - 1e-9 <= more_s <= longest_s + LINK.occupancy_s(BYTES / 2)


def test_hierarchical_on_hosts_of_four_is_a_ring_of_hosts_and_two_trees():
    """The last to know: two sums and copies up, the ring of four hosts, two copies down. Copies take the receiver's core."""
    copy_s = LOCAL.latency_s + LOCAL.overhead_s + LOCAL.occupancy_s(BYTES)
    ring_s = 6 * message_s(BYTES / 4) + 3 * COSTS.reduce(BYTES / 4)
    expected_s = 2 * (copy_s + COSTS.reduce(BYTES)) + ring_s + 2 * copy_s
    assert seconds(job("hierarchical", 16, [Host(count=4, cores=4)])).max() == pytest.approx(expected_s, abs=1e-9)


def test_ranks_that_share_a_port_queue_at_it():
    """Two rings through one port: recursive doubling over two hosts of two sends twice m through each port."""
    apart, together = (
        seconds(job("recursive-doubling", 4, [Host(name=f"h{i}", cores=4 // n) for i in range(n)])).max()
        for n in (4, 2)
    )
    local_s = LOCAL.latency_s + LOCAL.overhead_s + LOCAL.occupancy_s(BYTES)
    assert together == pytest.approx(apart - message_s(BYTES) + local_s + LINK.occupancy_s(BYTES), abs=1e-9)


@pytest.mark.parametrize("algorithm", ["ring", "halving-doubling", "recursive-doubling"])
def test_which_of_equal_ranks_is_slow_does_not_matter(algorithm):
    """Of algorithms in which all ranks do alike: the last to end the first step ends it at one time."""
    ends_s = []
    for slow in (0, 1, 3, 6):
        hosts = _hosts([0.3 if rank == slow else 1 for rank in range(8)])
        ends_s.append(event.trace(job(algorithm, 8, hosts, steps=1, warmup=0)).rows["end_s"].max())
    np.testing.assert_allclose(ends_s, ends_s[0], rtol=0, atol=1e-9)


def _hosts(speeds: list[float]) -> list[Host]:
    return [Host(name=f"h{i}", speed=speed) for i, speed in enumerate(speeds)]


def test_unfused_calls_carry_the_same_bytes_in_more_messages():
    fused, apart = (event.trace(job(workload=workload.read("mlp"), fused=f)).rows for f in (True, False))
    for rows in (fused, apart):
        assert rows[rows["activity"] == "send"]["bytes"].sum() == 4 * 4 * 6 * workload.read("mlp").parameters
    variables = len(workload.read("mlp").variables)
    assert (apart["activity"] == "send").sum() == variables * (fused["activity"] == "send").sum()


def test_within_a_library_the_network_is_the_library_s():
    """MPI's own allreduce does not sleep between looks for messages, as ranks do that exchange them by themselves."""
    for algorithm, uses in (("auto", True), ("recursive-doubling", False)):
        slow = job(algorithm)
        quick = slow.cluster.network.model_copy(update={"latency_s": 0.0})
        with_it = replace(slow, cluster=slow.cluster.model_copy(update={"library": quick}))
        assert (seconds(with_it).mean() < seconds(slow).mean()) == uses


def test_one_worker_is_a_process_alone():
    """No message; the same steps as any protocol's text `alone`."""
    alone = Scenario(
        protocols.make("fmb"), DIVISIBLE, 0, steps=3, warmup=1, batch=10, cluster=job("ring", 1).cluster, test_size=4
    )
    found, expected = (of_trace(event.trace(one)).step_s for one in (job("ring", 1, test_size=4), alone))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_workers_have_the_luck_that_they_have_under_a_master():
    law = stragglers.read("niagara*0.1")
    with_master = Scenario(protocols.make("fmb"), DIVISIBLE, 4, cluster=Cluster(hosts=[Host(count=5)]), stragglers=law)
    without = job(stragglers=law)
    for worker in range(4):
        assert without.worker_number(worker) == with_master.worker_number(worker + 1) == worker + 1
    slept = [event.trace(s).rows.query("activity == 'sleep' and step == 0") for s in (without, with_master)]
    of_worker = [
        dict(zip(rows["rank"] + shift, rows["end_s"] - rows["start_s"], strict=True))
        for rows, shift in zip(slept, (1, 0), strict=True)
    ]
    assert of_worker[0] == pytest.approx(of_worker[1])


def test_a_profile_learns_from_it_that_every_rank_updates():
    """Rank 0 is a worker; no worker takes up parameters."""
    from calibration.profiles import Source, make

    planted = Costs(compute=Line(slope_s=1e-4), reduce=Line(slope_s=1e-9), update=Line(slope_s=4e-9))
    jobs = [job("ring", 3, workload=workload.read("mlp"), costs=planted, batch=b, steps=20) for b in (100, 200)]
    profile = make([Source(str(s.batch), event.trace(s)) for s in jobs], "planted")
    learned, size_bytes = profile.costs["mlp"], workload.read("mlp").message_bytes
    assert learned.update(size_bytes) == pytest.approx(planted.update(size_bytes), rel=0.01)
    assert learned.compute(150) == pytest.approx(planted.compute(150), rel=0.01)
    assert learned.take_up(size_bytes) == 0
