"""Ports of hosts: queues that pass one message after another, with a credit of bytes, TCP's windows, or whole messages alone."""

from __future__ import annotations

import math

from sim.engine.kernel import state
from sim.engine.kernel.compiling import compiled, in_place


@in_place
def occupancy_s(S, size_bytes):
    """Seconds for which a message takes a port."""
    return S.gap_s + size_bytes / S.bandwidth


@in_place
def pass_out(S, port, size_bytes, called_s):
    """A message passes the port out of a host: when its first byte leaves, and its last."""
    takes_s = occupancy_s(S, size_bytes)
    port.out_busy_s += takes_s
    port.out_credit_s += size_bytes * S.credit
    begin_s = max(called_s, port.out_s, port.out_credit_s - takes_s)
    port.out_s = begin_s + takes_s
    return begin_s, port.out_s


@in_place
def pass_in(S, port, size_bytes, reach_s):
    """A message passes the port into a host: when its first byte comes, and its last."""
    takes_s = occupancy_s(S, size_bytes)
    port.in_busy_s += takes_s
    port.in_credit_s += size_bytes * S.credit
    begin_s = max(reach_s, port.in_s, port.in_credit_s - takes_s)
    port.in_s = begin_s + takes_s
    return begin_s, port.in_s


@in_place
def taken_s(port):
    """Seconds for which messages took the busier direction of a port, or in which it earned their credit."""
    return max(port.out_busy_s, port.in_busy_s, port.out_credit_s, port.in_credit_s)


@in_place
def held_s(S, pair, begin_s, size_bytes, leave_s):
    """Seconds for which a connection's window holds a message's last byte back."""
    if S.tcp == 0:
        return 0.0
    return max(0.0, windowed(S, state.window(S, pair), begin_s, size_bytes) - leave_s)


@compiled
def windowed(S, window, called_s, left):
    """When the last byte of a message leaves by a connection, whose window grows: sim/platform/tcp.py."""
    trip_s, rate, most = S.trip_s, S.bandwidth, S.most_window_bytes
    begin_s = max(called_s, window.free_s)
    idle_trips = int((begin_s - window.free_s) / (0.2 + trip_s))
    size = max(S.window_bytes, max(S.window_bytes, window.bytes) * 0.5 ** min(idle_trips, 99))
    elapsed_s, full = 0.0, rate * trip_s
    while left > size and size < min(full, most):
        elapsed_s, left, size = elapsed_s + trip_s, left - size, min(2 * size, most)
    if left > size and size < full:
        rounds = math.ceil(left / size) - 1
        elapsed_s, left = elapsed_s + rounds * trip_s, left - rounds * size
    window.bytes = min(most, size + left)
    window.free_s = begin_s + (elapsed_s + left / rate)
    return window.free_s
