"""Messages that share ports: closed forms, max-min fairness, token buckets."""

import numpy as np
import pytest
import simpy
from hypothesis import given
from hypothesis import strategies as st
from sim.event.machines.cores import TICK_S
from sim.event.machines.flows import Bucket, Flow, Flows, share

from sim import event, protocols
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


def run(
    protocol: str, *settings: str, workers: int = 3, compute_s=COMPUTE_S, steps=4, shared=None, hosts=(), **network
) -> Trace:
    link = Link(**{"latency_s": 0, "overhead_s": 0, "bandwidth_bytes_per_s": RATE, "fair": True} | network)
    costs = {"mlp": Costs(compute=Line(base_s=compute_s))}
    cluster = Cluster(hosts=hosts or [Host(count=workers + 1)], network=link, shared_cores=shared, costs=costs)
    scenario = Scenario(protocols.make(protocol, list(settings)), MLP, workers, steps=steps, warmup=1, cluster=cluster)
    return event.trace(scenario)


def step_s(*job, **options) -> float:
    return float(of_trace(run(*job, **options)).step_s.mean())


@pytest.mark.parametrize(("protocol", "settings"), [("fmb", []), ("ps-sync", ["barrier=true"])])
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_all_parameters_come_at_once_and_late(protocol, settings, workers):
    """Through the master's port n messages down, which end together, and n up; one after another it is n + 1 in all."""
    fair_s, queued_s = (step_s(protocol, *settings, workers=workers, fair=fair) for fair in (True, False))
    assert fair_s - COMPUTE_S == pytest.approx(2 * workers * WHOLE_S, rel=1e-3)
    assert queued_s - COMPUTE_S == pytest.approx((workers + 1) * WHOLE_S, rel=1e-3)


@pytest.mark.parametrize("workers", [2, 3, 5])
def test_a_ring_shares_no_port(workers):
    """2 (n - 1) / n of the bytes through each port (Patarasuk and Yuan, 2009)."""
    found_s = step_s("allreduce", "algorithm=ring", workers=workers)
    assert found_s - COMPUTE_S == pytest.approx(2 * (workers - 1) / workers * WHOLE_S, rel=1e-3)


LATENCY_S = 0.01


def test_a_message_that_must_be_asked_for_takes_a_word_there_and_one_back():
    """Parameters, and the gradient."""
    asked_s, plain_s = (step_s("fmb", workers=1, latency_s=LATENCY_S, **e) for e in ({"eager_bytes": 1000}, {}))
    assert asked_s - plain_s == pytest.approx(2 * 2 * LATENCY_S, rel=1e-6)


def test_a_message_that_is_eager_is_not_asked_for():
    assert step_s("fmb", eager_bytes=SIZE) == step_s("fmb")


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


def test_ranks_that_begin_within_a_words_travel_exchange_at_once():
    """Each has asked before it is asked. Else, in both rounds of a ring, one's bytes go first, and with the last of them the word."""
    asked = {"workers": 2, "latency_s": LATENCY_S, "eager_bytes": 1000}
    words_s = 2 * 3 * LATENCY_S
    together_s = step_s("allreduce", "algorithm=ring", **asked)
    assert together_s - COMPUTE_S == pytest.approx(WHOLE_S + words_s, rel=2e-3)
    apart = [Host(), Host(speed=COMPUTE_S / (COMPUTE_S + 3 * LATENCY_S))]
    apart_s = step_s("allreduce", "algorithm=ring", hosts=apart, **asked)
    assert apart_s - COMPUTE_S - 3 * LATENCY_S == pytest.approx(2 * WHOLE_S + words_s, rel=2e-3)


def test_a_library_asks_for_what_it_knows_before_it_announces_its_own():
    """Rank 1 is late, and slow to ask: of texts rank 0 has asked by then, of a library it sends first."""
    slow = {"workers": 2, "hosts": [Host(speed=2), Host()], "overhead_s": 1e-3}
    slow |= {"latency_s": LATENCY_S, "eager_bytes": 1000}
    library_s, text_s = (step_s("allreduce", f"algorithm={name}", **slow) for name in ("auto", "halving-doubling"))
    assert library_s - text_s > 0.9 * WHOLE_S / 2


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


def test_what_stands_before_a_busy_port():
    """At the sender's, if it is that which holds a message up, no more than is left; else at the receiver's; none beside tokens."""
    queue, env = 0.2 * RATE, simpy.Environment()
    flows, (out, slow, other, into, elsewhere) = Flows(env), (Bucket(RATE, queue=queue) for _ in range(5))
    with_tokens = Bucket(RATE, RATE, queue)
    flows.start(out, into, RATE)
    assert flows.backlog_s(out, elsewhere) == pytest.approx(0.2)
    assert flows.backlog_s(other, into) == 0
    env.run(0.9)
    assert flows.backlog_s(out, elsewhere) == pytest.approx(0.1)
    env.run(2.0)
    assert flows.backlog_s(out, elsewhere) == 0
    for egress in (out, slow):
        flows.start(egress, into, RATE)
    assert [flows.backlog_s(*ports) for ports in ((other, into), (out, elsewhere))] == pytest.approx([0.2, 0])
    flows.start(with_tokens, elsewhere, 0.5 * RATE)
    assert flows.backlog_s(with_tokens, other) == 0


def test_a_short_message_waits_in_the_queue_and_a_long_one_shares():
    """Half a second of bytes and a tenth's, beside a second's: the long one from the start on, the short one 0.2 s later."""
    for seconds, queue, ended_s in ((0.1, 0.2, 0.2 + 0.2), (0.5, 0.2, 1.0)):
        env = simpy.Environment()
        flows, egress = Flows(env), Bucket(RATE, queue=queue * RATE)
        flows.start(egress, Bucket(RATE), RATE)
        env.run(flows.start(egress, Bucket(RATE), seconds * RATE).done)
        assert env.now == pytest.approx(ended_s)


@pytest.mark.parametrize("eager", [{}, {"eager_bytes": 0}])
def test_a_send_ends_when_the_senders_system_has_the_rest(eager):
    """Which is earlier than its last byte's leaving; its receiver has it as late as ever."""
    kept = 0.25 * SIZE
    rows = run("fmb", workers=1, buffer_bytes=kept, **eager).rows
    sends, receives = (rows[rows["activity"] == name].eval("end_s - start_s") for name in ("send", "receive"))
    assert sends.to_numpy() == pytest.approx((SIZE - kept) / RATE, rel=1e-3)
    assert receives.to_numpy() == pytest.approx(WHOLE_S, rel=1e-3)


def test_hosts_that_are_containers_of_one_machine_share_its_cores():
    """Three workers on two cores: one has a core to itself, two take turns until it has been idle for a while."""
    rows = run("fmb", workers=3, shared=2).rows
    computes = rows[rows["activity"] == "compute"]
    sorted_s = np.sort((computes["end_s"] - computes["start_s"]).to_numpy()).reshape(3, -1)
    assert sorted_s[0].mean() == pytest.approx(COMPUTE_S, rel=1e-3)
    assert sorted_s[1:].mean() == pytest.approx(COMPUTE_S * 1.5 + TICK_S / 2, rel=1e-3)


def test_an_idle_port_s_burst_is_for_nothing():
    """Of each message to and from one worker the bucket's depth passes at once."""
    burst = SIZE / 4
    assert step_s("fmb", workers=1, burst_bytes=burst) - COMPUTE_S == pytest.approx(
        2 * (WHOLE_S - burst / RATE), rel=1e-3
    )


def test_a_bucket_fills_at_its_rate():
    """A message that comes when half of the depth has come again has half of it for nothing."""
    env = simpy.Environment()
    flows, one, other, ended_s = Flows(env), Bucket(RATE, RATE), Bucket(RATE, RATE), []

    def send():
        for wait_s in (0.0, 0.5):
            yield env.timeout(wait_s)
            yield flows.start(one, other, 3 * RATE).done
            ended_s.append(env.now)

    env.process(send())
    env.run()
    assert ended_s == pytest.approx([2.0, 2.0 + 0.5 + 2.5])


def test_the_deeper_bucket_s_tokens_outlast_an_incast():
    """Two senders without tokens into a port with some: at twice its rate until these are gone, at its rate after."""
    env = simpy.Environment()
    flows, into = Flows(env), Bucket(RATE, RATE)
    done = [flows.start(Bucket(RATE), into, 3 * RATE).done for _ in range(2)]
    env.run(simpy.AllOf(env, done))
    assert env.now == pytest.approx(1.0 + (6 - 2) * 1.0)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=12), st.data())
def test_rates_are_max_min_fair(pairs, data):
    """No port passes more than its rate, and every flow has a full port where no other has more for its weight."""
    out, into = ([Bucket(data.draw(st.floats(1, 100))) for _ in range(5)] for _ in range(2))
    env = simpy.Environment()
    flows = [
        Flow((out[a], into[b]), 1.0, env.event(), env.event(), weight=data.draw(st.floats(0.1, 10))) for a, b in pairs
    ]
    share(flows)
    through = {port: sum(f.rate for f in flows if port in f.ports) for flow in flows for port in flow.ports}
    most = {port: max(f.rate / f.weight for f in flows if port in f.ports) for port in through}
    assert all(used <= port.rate * (1 + 1e-9) for port, used in through.items())
    for flow in flows:
        full = [port for port in flow.ports if through[port] >= port.rate * (1 - 1e-9)]
        assert any(flow.rate / flow.weight >= most[port] * (1 - 1e-9) for port in full)


def test_unequal_shares_end_as_late_but_not_at_once():
    """Weights 3 to 1: the first ends after 4/3 of a message's time, and then the other has the port alone."""
    env = simpy.Environment()
    flows, egress, ended_s = Flows(env), Bucket(RATE), []
    for weight in (3.0, 1.0):
        flows.start(egress, Bucket(RATE), RATE, weight=weight).done.callbacks.append(lambda _: ended_s.append(env.now))
    env.run()
    assert ended_s == pytest.approx([4 / 3, 2.0])


@pytest.mark.parametrize(
    ("one_sender", "late_s", "first_s"), [(True, 0, 4.0), (True, 1, 2 + 269 / 765), (False, 1, 3.0)]
)
def test_who_came_first_keeps_most_of_its_senders_port(one_sender, late_s, first_s):
    """Messages of 2 s, windows that double each 1/4 s: of 1 + w bytes w are the second's, 1/16, then 1/8 and so on."""
    env = simpy.Environment()
    flows, ended_s = Flows(env), []
    egress, ingress = (Bucket(RATE), None) if one_sender else (None, Bucket(RATE))
    for begin_s in (0, late_s):
        if begin_s:
            env.run(begin_s)
        flow = flows.start(egress or Bucket(RATE), ingress or Bucket(RATE), 2 * RATE, ramp=RATE / 4)
        flow.done.callbacks.append(lambda _: ended_s.append(env.now))
    env.run()
    assert ended_s == pytest.approx([first_s, 4.0])


@pytest.mark.parametrize("ramp", [0.0, 1e-9])
def test_what_takes_less_than_the_clock_can_tell_ends(ramp):
    env = simpy.Environment(initial_time=1e6)
    ended = Flows(env).start(Bucket(1e11), Bucket(1e11), 1.5, ramp=ramp).done
    for _ in range(100):
        if not ended.triggered:
            env.step()
    assert ended.triggered


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
    ],
)
def test_what_does_not_go_together_is_refused(wrong):
    with pytest.raises(ValueError, match="fair"):
        Link(**wrong)


def test_variables_that_travel_one_by_one_share_ports_too():
    """Two servers' worth of traffic through one port takes as long, whatever the discipline, if all of it must come."""
    times_s = [step_s("ps-layers", "barrier=true", workers=2, fair=fair, compute_s=1e-3) for fair in (True, False)]
    assert times_s[0] > 2 * WHOLE_S
    assert times_s[0] == pytest.approx(times_s[1], rel=0.5)


def test_ports_that_are_shared_have_a_rate():
    """Bytes that take no time share nothing; the simulator divided by 0."""
    with pytest.raises(WrongSetting, match="a finite one with fair"):
        validated(
            Cluster, {"hosts": [{"count": 4}], "network": {"fair": True, "bandwidth_bytes_per_s": float("inf")}}, "c"
        )
