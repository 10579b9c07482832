"""TCP's windows: the textbook's formula, its limits, and what a simulated run makes of it."""

import math

import event
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim import protocols
from sim.answers.outcome import of_trace
from sim.job.scenario import Scenario
from sim.model import workload
from sim.model.costs import Costs, Line
from sim.platform.cluster import Cluster, Host, Link, Tcp
from sim.platform.slow_start import Connection, transfer_s

RTT, W0, RATE = 0.1, 14_600, 1e12  # bytes themselves take no time
MLP = workload.read("mlp")


@pytest.mark.parametrize("windows", [1, 2, 3, 6, 7, 8, 100, 1000])
def test_slow_start_takes_its_closed_form(windows):
    """log2(d / w0 + 1) round trips, the last of which nobody waits for (Cardwell et al., equation 12, gamma = 2)."""
    seconds, _ = transfer_s(windows * W0, W0, math.inf, RTT, RATE)
    assert seconds == pytest.approx((math.ceil(math.log2(windows + 1)) - 1) * RTT, abs=1e-3)


@pytest.mark.parametrize("most", [4, 16])
@pytest.mark.parametrize("windows", [100, 1000])
def test_then_a_window_a_round_trip(windows, most):
    """log2(wmax / w0) rounds up to the window, wmax a round after (equations 14 to 16)."""
    seconds, window = transfer_s(windows * W0, W0, most * W0, RTT, RATE)
    started = most - 1  # w0 + 2 w0 + ... + wmax / 2
    assert seconds == pytest.approx((math.log2(most) + math.ceil((windows - started) / most) - 1) * RTT, abs=1e-3)
    assert window == most * W0
    more_s = transfer_s(2 * windows * W0, W0, most * W0, RTT, RATE)[0] - seconds
    assert windows * W0 / more_s == pytest.approx(most * W0 / RTT, rel=0.2)  # window / round trip


@given(st.floats(0, 1e9), st.floats(0, 1e9), st.floats(1e4, 1e7), st.floats(0, 0.3), st.floats(1e5, 1e10))
def test_more_bytes_are_never_sooner_and_no_path_is_faster_than_its_rate(size, more, most, round_trip_s, rate):
    window = min(W0, most)
    one_s, both_s = (transfer_s(s, window, most, round_trip_s, rate)[0] for s in (size, size + more))
    assert size / rate * (1 - 1e-9) <= one_s <= both_s * (1 + 1e-9)


def test_a_message_follows_the_one_before_with_its_window():
    """Two halves take as long as the whole, and one after a pause of many timeouts as the first."""
    whole, halves = (Connection(W0, Tcp().window_bytes, RTT, 1e8) for _ in range(2))
    size = 2 * 7 * W0
    first_s, second_s = (halves.send(0.0, size / 2) for _ in range(2))
    assert whole.send(0.0, size) >= second_s > first_s
    assert second_s - first_s < first_s
    assert halves.send(100.0, size / 2) - 100.0 == pytest.approx(first_s)
    kept = halves.send(100.0 + first_s + 0.25, size / 2) - 100.0 - first_s - 0.25
    assert kept == pytest.approx(second_s - first_s)


def step_s(**network) -> float:
    link = Link(**{"latency_s": RTT / 2, "overhead_s": 0, "bandwidth_bytes_per_s": 1e8} | network)
    cluster = Cluster(hosts=[Host(count=2)], network=link, costs={"mlp": Costs(compute=Line(base_s=10.0))})
    scenario = Scenario(protocols.make("fmb"), MLP, 1, steps=2, warmup=1, cluster=cluster)
    return float(of_trace(event.trace(scenario)).step_s.mean())


def test_a_step_waits_for_slow_start_both_ways():
    """Ten seconds of computing close the window again: each way has the round trips of 318,072 bytes, 21.8 windows."""
    assert step_s(tcp=Tcp()) - step_s() == pytest.approx(
        2 * (transfer_s(MLP.message_bytes, W0, 3 * 2**20, RTT, 1e8)[0] - MLP.message_bytes / 1e8), abs=1e-6
    )


def test_large_windows_are_no_windows():
    assert step_s(tcp=Tcp(initial_window_bytes=1e9, window_bytes=1e9)) == pytest.approx(step_s(), abs=1e-9)
    assert step_s(tcp=Tcp(), latency_s=0.0) == pytest.approx(step_s(latency_s=0.0), abs=1e-9)


def test_more_connections_start_together():
    assert step_s() < step_s(tcp=Tcp(connections=8)) < step_s(tcp=Tcp())


def test_a_window_is_no_smaller_than_the_initial_one():
    with pytest.raises(ValueError, match="window"):
        Link(tcp={"window_bytes": 10})
