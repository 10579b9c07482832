"""Parameter servers: closed forms, laws, and that every run ends."""

from collections import Counter

import event
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim import protocols, stragglers
from sim.answers.outcome import of_trace
from sim.base.errors import WrongSetting
from sim.job.scenario import Scenario
from sim.model import workload
from sim.model.costs import Costs, Line
from sim.model.workload import HEADER_BYTES
from sim.platform.cluster import Cluster, Host, Link
from sim.simulation import simulate

MLP = workload.read("mlp")
FREE = Link(latency_s=0, overhead_s=0, bandwidth_bytes_per_s=float("inf"))
SERVED = [  # of those whose transfers overlap, see test_layers.py; of the hybrid, test_hybrid.py
    name
    for name, protocol in protocols.PROTOCOLS.items()
    if protocol().has_servers and not protocol().overlaps and name != "hybrid"
]


def job(name: str, *assignments: str, speeds=None, link=FREE, update_s=0.0, **options) -> Scenario:
    """A sample takes 1 ms, a minibatch 10 ms; nothing else takes time but what is given."""
    options = {"workers": 4, "batch": 10, "steps": 20, "warmup": 5, **options}
    ranks = options.get("servers", 1) + options["workers"]
    speeds = [1.0] * (ranks - len(speeds or [])) + list(speeds or [])
    costs = Costs(compute=Line(slope_s=1e-3), update=Line(base_s=update_s))
    hosts = [Host(name=f"h{i}", speed=speed) for i, speed in enumerate(speeds)]
    cluster = Cluster(hosts=hosts, network=link, costs={"mlp": costs})
    return Scenario(protocols.make(name, list(assignments)), MLP, cluster=cluster, **options)


def step_s(scenario: Scenario) -> np.ndarray:
    return of_trace(event.trace(scenario)).step_s[0]


def gradients(trace) -> Counter:
    """How many gradients of each worker were added up by the first server."""
    rows = trace.rows
    return Counter(rows[(rows["rank"] == 0) & (rows["activity"] == "reduce")]["peer"])


@pytest.mark.parametrize("name", SERVED)
def test_one_worker_goes_round_through_every_cost(name):
    """Request, parameters, gradient, update, acknowledgement; whatever the protocol. Tokens let it run one step ahead."""
    link = Link(latency_s=1e-3, overhead_s=1e-4, bandwidth_bytes_per_s=1e8)
    ports_s = 2 * (MLP.message_bytes + HEADER_BYTES) / 1e8
    assignments = ["backup=0"] if name == "ps-backup" else []
    if name in ("ps-sync", "ps-backup"):
        assignments.append("barrier=true")
    expected_s = 0.01 + ports_s + 4 * (1e-3 + 2e-4) + 3e-3
    np.testing.assert_allclose(
        step_s(job(name, *assignments, workers=1, link=link, update_s=3e-3)), expected_s, atol=1e-9
    )


def test_staleness_0_is_synchronous_and_infinite_is_asynchronous():
    """Ho et al. 2013, section 2."""
    luck = {"stragglers": stragglers.read("niagara*0.01"), "steps": 20}
    synchronous = step_s(job("ps-sync", "barrier=true", **luck))
    bounded_0 = step_s(job("ps-ssp", "staleness=0", **luck))
    np.testing.assert_allclose(synchronous, bounded_0, atol=1e-9)
    asynchronous, unbounded = (
        event.trace(job(*of, **luck)).rows for of in (("ps-async",), ("ps-ssp", "staleness=inf"))
    )
    assert asynchronous.equals(unbounded)


@pytest.mark.parametrize("staleness", [0, 2, 5])
def test_nobody_is_further_ahead_than_the_bound(staleness):
    """Seen by the server: when a gradient comes, its worker has done at most the bound and one more than the slowest."""
    trace = event.trace(job("ps-ssp", f"staleness={staleness}", speeds=[0.2], steps=30))
    done, ahead = dict.fromkeys(range(1, 5), 0), []
    for peer in trace.rows[(trace.rows["rank"] == 0) & (trace.rows["activity"] == "reduce")]["peer"]:
        done[peer] += 1
        ahead.append(done[peer] - min(done.values()))
    assert max(ahead) == staleness + 1


@pytest.mark.parametrize("backup", [0, 1, 3])
def test_the_first_update_comes_at_the_order_statistic(backup):
    """Chen et al. 2016: with b of n workers as backup, an update comes with the (n - b)-th gradient."""
    for seed in range(5):
        scenario = job(
            "ps-backup",
            f"backup={backup}",
            "barrier=true",
            stragglers=stragglers.read("niagara"),
            seed=seed,
            steps=1,
            warmup=0,
        )
        first_s = step_s(scenario)[0]
        sleeps = sorted(scenario.draws.sleeps(0, worker)[0] for worker in range(1, 5))
        assert first_s == pytest.approx(sleeps[3 - backup] + 0.01)


REAL_STEP_S = (0.034, 0.054, 0.074)  # sleeps of 20, 40, 60 ms and what the rest of a synchronous step took
REAL_LOCAL_STEPS = (397, 302, 202)  # of three workers, for 300 updates with one backup worker


def real_job(name: str, *assignments: str, steps: int = 290) -> Scenario:
    """What SyncReplicasOptimizer of TensorFlow 2.21 was run with: three workers that sleep 20, 40 and 60 ms a step."""
    return job(name, *assignments, workers=3, speeds=[0.01 / s for s in REAL_STEP_S], steps=steps, warmup=10)


def test_tokens_do_not_ask_for_distinct_workers():
    """A slow worker's tokens go to fast ones, as in the real run: local steps within 2 %, 74 and 51 ms a step within 6 %."""
    trace = event.trace(real_job("ps-backup"))
    rows = trace.rows[trace.rows["activity"] == "compute"]
    local_steps = rows.groupby("rank").size().to_numpy()
    np.testing.assert_allclose(local_steps, REAL_LOCAL_STEPS, rtol=0.02)
    assert of_trace(trace).step_s.mean() == pytest.approx(0.051, rel=0.06)
    assert step_s(real_job("ps-sync", steps=30)).mean() == pytest.approx(0.074, rel=0.01)


def test_the_barrier_takes_one_gradient_of_each():
    assert set(gradients(event.trace(real_job("ps-sync", "barrier=true", steps=30))).values()) == {40}
    barrier = gradients(event.trace(real_job("ps-backup", "barrier=true", steps=30)))
    assert set(barrier) == {1, 2}  # the slowest is always late


AGREEING = [("ps-sync", []), ("ps-backup", []), ("ps-backup", ["barrier=true"])]


@pytest.mark.parametrize(("name", "assignments"), AGREEING)
@pytest.mark.parametrize(("workers", "servers"), [(2, 3), (4, 2)])
@pytest.mark.parametrize("seed", [0, *(pytest.param(one, marks=pytest.mark.slow) for one in (1, 2))])
def test_several_servers_make_the_same_updates_of_as_many_gradients(name, assignments, workers, servers, seed):
    """Though the last of them is slow, each adds gradients of its newest parameters only, and as many as an update needs."""
    link = Link(latency_s=1e-3, overhead_s=1e-4, bandwidth_bytes_per_s=2e7)
    luck = {"stragglers": stragglers.read("niagara*0.01"), "seed": seed, "link": link}
    speeds = [1.0] * (servers - 1) + [0.01] + [1.0] * workers
    scenario = job(name, *assignments, workers=workers, servers=servers, steps=10, speeds=speeds, update_s=1e-3, **luck)
    rows = event.trace(scenario).rows
    for server in range(servers):
        of_server = rows[rows["rank"] == server].sort_values(["end_s", "start_s"], kind="stable")
        assert (of_server["activity"] == "update").sum() == scenario.rounds * scenario.updates_per_step
        made = (of_server["activity"] == "update").cumsum()
        added = of_server["activity"] == "reduce"
        assert (made == of_server["version"])[added].all()
        each = made[added].value_counts().loc[: scenario.rounds * scenario.updates_per_step - 1]
        assert set(each) == {scenario.protocol.gradients_per_update(workers)}


def test_tokens_of_several_servers_are_those_of_one():
    """Where messages take no time, the queue is one, however many servers hold the parameters."""
    one, three = (
        event.trace(job("ps-backup", workers=3, servers=s, variable_partitions=s, speeds=[0.31, 0.19, 0.137])).rows
        for s in (1, 3)
    )
    until_s = one[one["activity"] == "update"]["end_s"].max()
    computed = [rows[rows["activity"] == "compute"]["end_s"].to_numpy() for rows in (one, three)]
    np.testing.assert_allclose(*(end_s[end_s <= until_s + 1e-9] for end_s in computed), atol=1e-9)


def test_a_read_waits_for_the_token_and_then_for_all_servers():
    """Gradients up, both updates, a note between servers; then a token, a request, and parameters: five latencies."""
    link = Link(latency_s=1e-2, overhead_s=0, bandwidth_bytes_per_s=float("inf"))
    luck = {"workers": 2, "servers": 2, "steps": 40, "link": link, "speeds": [1.0, 0.01]}
    step = step_s(job("ps-sync", **luck))[-20:]
    np.testing.assert_allclose(step, 1.0 + 0.05, atol=1e-9)


@pytest.mark.parametrize("update_s", [1e-3, 5e-3])
def test_a_server_saturates_at_its_closed_form_throughput(update_s):
    """Many workers: the slower of applying gradients one by one and of the port out."""
    link = Link(latency_s=1e-4, overhead_s=0, bandwidth_bytes_per_s=1e8)
    out_s = MLP.message_bytes / 1e8
    scenario = job("ps-async", workers=20, link=link, update_s=update_s, steps=10)
    assert of_trace(event.trace(scenario)).throughput()[0] == pytest.approx(10 / max(update_s, out_s), rel=0.01)


def test_littles_law_at_the_server():
    """Little 1961: workers are computing or at the server; 8 = rate x (seconds computing + seconds at the server)."""
    link = Link(latency_s=1e-3, overhead_s=0, bandwidth_bytes_per_s=1e8)
    trace = event.trace(
        job("ps-async", workers=8, link=link, update_s=2e-3, stragglers=stragglers.read("cedar*0.1"), steps=80)
    )
    rows = trace.rows[trace.rows["rank"] > 0]
    computed = rows[rows["activity"] == "compute"].sort_values(["rank", "end_s"])
    apart_s = computed.groupby("rank")["end_s"].diff().dropna()
    rate = of_trace(trace).throughput()[0] / 10
    assert rate * apart_s.mean() == pytest.approx(8, rel=0.01)


@settings(max_examples=12, deadline=None)
@given(
    st.sampled_from(SERVED),
    st.integers(1, 5),
    st.integers(1, 3),
    st.booleans(),
    st.integers(0, 10**6),
    st.sampled_from(["none", "niagara*0.02"]),
)
def test_every_run_ends_with_all_its_updates(name, workers, servers, barrier, seed, law):
    assignments = [f"barrier={barrier}"] if name in ("ps-sync", "ps-backup") else []
    if name == "ps-backup":
        assignments.append(f"backup={seed % workers}")
    about = {"workers": workers, "servers": servers, "seed": seed, "steps": 4, "warmup": 1}
    scenario = job(name, *assignments, stragglers=stragglers.read(law), **about)
    trace = event.trace(scenario)
    updates = trace.rows[(trace.rows["activity"] == "update") & (trace.rows["rank"] == 0)]
    assert len(updates) == scenario.rounds * scenario.updates_per_step
    protocol = scenario.protocol
    each = 1 if protocol.way == "asynchronous" else protocol.gradients_per_update(workers)  # gradients of an update
    assert of_trace(trace).samples.sum() == 4 * scenario.updates_per_step * 10 * each
    assert set(trace.rows["rank"]) == set(range(scenario.ranks))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: job("ps-backup", "backup=4"), "backup"),
        (lambda: job("ps-backup", "backup=-1"), "backup"),
        (lambda: job("ps-ssp", "staleness=-1"), "staleness"),
        (lambda: job("ps-sync", "barrier=perhaps"), "true or false"),
        (lambda: job("ps-async", servers=9), "at most 4"),
        (lambda: job("ps-async", placement="best"), "round-robin"),
        (lambda: job("ps-async", workers=0), "--workers"),
    ],
)
def test_wrong_settings(make, said):
    with pytest.raises(WrongSetting, match=said):
        make()


def test_a_gradient_counts_as_of_its_token_not_of_what_was_pulled():
    """TensorFlow's local_step: who sleeps on a token while others update pulls new parameters, and works in vain all the same."""
    rows = event.trace(job("ps-backup", stragglers=stragglers.read("niagara*0.1"), steps=100)).rows
    keys = ["rank", "step"]
    pulled = rows[rows["activity"] == "compute"].set_index(keys)["version"]
    sent = rows[(rows["activity"] == "send") & (rows["rank"] > 0)].set_index(keys)["version"]
    behind = (pulled.loc[sent.index] - sent).to_numpy()
    assert behind.min() == 0
    assert (behind > 0).mean() > 0.03
    added = rows[(rows["rank"] == 0) & (rows["activity"] == "reduce")]
    assert len(added) < (behind == 0).sum() + 3


def test_no_server_of_several_evaluates():
    with pytest.raises(WrongSetting, match="none holds all parameters"):
        event.trace(job("ps-async", servers=2, test_size=5))
    event.trace(job("ps-async", servers=1, test_size=5))
    with pytest.raises(WrongSetting, match="none holds all parameters"):
        simulate(job("ps-sync", "barrier=true", servers=2, test_size=5), replications=1)
