"""Messages that share ports: closed forms, max-min fairness, token buckets."""

import event
import pytest

from sim import protocols
from sim.answers.outcome import of_trace
from sim.base.errors import WrongSetting
from sim.base.files import validated
from sim.job.scenario import Scenario
from sim.model import workload
from sim.model.costs import Costs, Line
from sim.platform.cluster import Cluster, Host, Link
from sim.recording.traces import Trace

MLP = workload.read("mlp")
RATE, SIZE = 1e6, MLP.message_bytes
WHOLE_S = SIZE / RATE
COMPUTE_S = 0.5  # long enough for buckets to fill


def run(protocol: str, *settings: str, workers: int = 3, compute_s=COMPUTE_S, steps=4, hosts=(), **network) -> Trace:
    link = Link(**{"latency_s": 0, "overhead_s": 0, "bandwidth_bytes_per_s": RATE, "fair": True} | network)
    costs = {"mlp": Costs(compute=Line(base_s=compute_s))}
    cluster = Cluster(hosts=hosts or [Host(count=workers + 1)], network=link, costs=costs)
    scenario = Scenario(protocols.make(protocol, list(settings)), MLP, workers, steps=steps, warmup=1, cluster=cluster)
    return event.trace(scenario)


def step_s(*job, **options) -> float:
    return float(of_trace(run(*job, **options)).step_s.mean())


@pytest.mark.parametrize("workers", [2, 3, 5])
def test_a_ring_shares_no_port(workers):
    """2 (n - 1) / n of the bytes through each port (Patarasuk and Yuan, 2009)."""
    found_s = step_s("allreduce", "algorithm=ring", workers=workers)
    assert found_s - COMPUTE_S == pytest.approx(2 * (workers - 1) / workers * WHOLE_S, rel=1e-3)


LATENCY_S = 0.01


@pytest.mark.parametrize(
    ("algorithm", "workers", "wholes", "in_turn"),
    [("ring", 2, 1, 2), ("ring", 4, 1.5, 1.5), ("halving-doubling", 4, 1.5, 3), ("halving-doubling", 3, 3, 4.5)],
)
def test_ranks_that_exchange_messages_take_turns_where_they_must_be_asked_for(algorithm, workers, wholes, in_turn):
    """Both ways between two ranks the word for the second waits behind the bytes of the first; in a ring there is no other way."""
    for eager, expected in (({}, wholes), ({"eager_bytes": 1000}, in_turn)):
        found_s = step_s("allreduce", f"algorithm={algorithm}", workers=workers, **eager)
        assert found_s - COMPUTE_S == pytest.approx(expected * WHOLE_S, rel=2e-3)


def test_of_two_ranks_that_begin_at_once_without_latency_one_goes_first():
    """In a library, which asks before it announces: each would wait for the other for ever."""
    found_s = step_s("allreduce", "algorithm=auto", workers=2, eager_bytes=1000)
    assert found_s - COMPUTE_S == pytest.approx(2 * WHOLE_S, rel=2e-3)


def test_a_receiver_that_is_late_holds_the_bytes_up():
    """Gradients wait until all parameters have left the master; unasked, those of the first worker leave before."""
    late_s, early_s = (step_s("fmb", workers=3, compute_s=0, unfairness=0.5, **e) for e in ({"eager_bytes": 0}, {}))
    assert late_s == pytest.approx(6 * WHOLE_S, rel=1e-3)
    assert early_s < 0.99 * late_s


def test_a_word_waits_behind_what_stands_before_its_senders_port():
    """In a ring with one rank late, the word that asks for its message finds its sender's port busy, in each of 2 (n - 1) rounds."""
    queue, apart = 0.03 * SIZE, [Host(), Host(), Host(speed=COMPUTE_S / (COMPUTE_S + 0.1 * WHOLE_S))]
    for hosts, waits in (([], 0), (apart, 4)):
        ring = {"hosts": hosts, "latency_s": LATENCY_S / 10, "eager_bytes": 0}
        short_s, long_s = (step_s("allreduce", "algorithm=ring", queue_bytes=q, **ring) for q in (0, queue))
        assert long_s - short_s == pytest.approx(waits * queue / RATE, abs=1e-6)


@pytest.mark.parametrize("eager", [{}, {"eager_bytes": 0}])
def test_a_send_ends_when_the_senders_system_has_the_rest(eager):
    """Which is earlier than its last byte's leaving; its receiver has it as late as ever."""
    kept = 0.25 * SIZE
    rows = run("fmb", workers=1, buffer_bytes=kept, **eager).rows
    sends, receives = (rows[rows["activity"] == name].eval("end_s - start_s") for name in ("send", "receive"))
    assert sends.to_numpy() == pytest.approx((SIZE - kept) / RATE, rel=1e-3)
    assert receives.to_numpy() == pytest.approx(WHOLE_S, rel=1e-3)


def test_an_idle_port_s_burst_is_for_nothing():
    """Of each message to and from one worker the bucket's depth passes at once."""
    burst = SIZE / 4
    assert step_s("fmb", workers=1, burst_bytes=burst) - COMPUTE_S == pytest.approx(
        2 * (WHOLE_S - burst / RATE), rel=1e-3
    )


def test_unequal_shares_let_workers_that_wait_for_nobody_drift_apart():
    """In step two workers pull together and push together, 4 messages' time; apart one pulls while the other pushes: 2."""
    in_step_s, apart_s = (step_s("ps-async", workers=2, compute_s=1e-3, unfairness=cv, steps=100) for cv in (0.0, 2.0))
    assert in_step_s == pytest.approx(4 * WHOLE_S, rel=0.02)
    assert 1.95 * WHOLE_S < apart_s < 2.6 * WHOLE_S


@pytest.mark.slow
def test_where_who_came_first_leaves_first_three_asynchronous_workers_share_less():
    """Closer to one after another, by which one pulls while another pushes: no faster than three messages' time either way."""
    job = {"workers": 3, "compute_s": 1e-3, "unfairness": 0.2, "steps": 200}
    alike_s, first_s = (step_s("ps-async", ramp_bytes=ramp, **job) for ramp in (0.0, SIZE / 8))
    assert 3 * WHOLE_S < first_s < 0.9 * alike_s


@pytest.mark.parametrize(
    "wrong",
    [
        *({name: 0.1} for name in ("burst_bytes", "unfairness", "ramp_bytes", "queue_bytes", "buffer_bytes")),
        {"fair": True, "sustained_bytes_per_s": 1e6},
        *({"fair": True, other: given} for other, given in (("tcp", {}), ("store_and_forward", True))),
        {"tcp": {}, "store_and_forward": True},
    ],
)
def test_what_does_not_go_together_is_refused(wrong):
    with pytest.raises(ValueError, match="fair"):
        Link(**wrong)


def test_ports_that_are_shared_have_a_rate():
    """Bytes that take no time share nothing; the simulator divided by 0."""
    with pytest.raises(WrongSetting, match="a finite one with fair"):
        validated(
            Cluster, {"hosts": [{"count": 4}], "network": {"fair": True, "bandwidth_bytes_per_s": float("inf")}}, "c"
        )
