"""Messages that share ports as TCP's flows do: what sim.event.machines.flows does, on arrays.

A port is a token bucket. Ports without tokens are shared by max-min fairness, by the weights of flows. Port 2 h is that out of host h,
and port 2 h + 1 that into it.
"""

from __future__ import annotations

import math

from sim.engine.kernel import state
from sim.engine.kernel.compiling import compiled
from sim.engine.kernel.heap import schedule
from sim.engine.kernel.layout import FLOW_BEGINS, FLOW_DONE, HANDED, LOOK

LEAST_BYTES, ROUND_OFF, DOUBLINGS = 1e-3, 1e-6, 4
EPSILON = 2.220446049250313e-16
FULL = 1 - 1e-9  # a share of a rate that is all of it
TIMERS = 0xFFFFFF  # the timer's number, as events have it
NONE = -1


@compiled
def port(flow, side):
    """The number of a flow's port: 0 out, 1 in."""
    return flow.into if side else flow.out


@compiled
def window(flow, rate):
    """A flow's window as a share of the largest, and seconds until it doubles."""
    if flow.ramp == 0.0:
        return 1.0, math.inf
    doubling_s = flow.ramp / rate
    times = int(flow.age_s / doubling_s + ROUND_OFF)
    share = 2.0 ** min(0, times - DOUBLINGS)
    return share, (times + 1) * doubling_s - flow.age_s if share < 1.0 else math.inf


@compiled
def is_busy(bucket):
    """Whether a port has no tokens left and passes bytes at its full rate."""
    return bucket.level == 0.0 and bucket.through > bucket.rate * FULL


@compiled
def advance_flows(S):
    """Advance all flows to now."""
    seconds = S.now_s - S.flows_s
    S.flows_s = S.now_s
    for i in range(S.flows):
        flow = state.flow(S, state.active(S, i).value)
        flow.left = max(0.0, flow.left - flow.rate * seconds)
        flow.age_s += seconds


@compiled
def backlog_s(S, out, into):
    """Seconds until the queues in front of two ports have passed them."""
    advance_flows(S)
    before, after = 0.0, 0.0
    source, target = state.bucket(S, out), state.bucket(S, into)
    out_busy, in_busy = is_busy(source), is_busy(target)
    for i in range(S.flows):
        flow = state.flow(S, state.active(S, i).value)
        if out_busy and flow.out == out:
            before += flow.left
        if in_busy and flow.into == into and not is_busy(state.bucket(S, flow.out)):
            after += flow.left
    return min(source.queue, before) / source.rate + min(target.queue, after) / target.rate


@compiled
def begin_sharing(S):
    """No flow has a rate yet: the windows of flows as shares of the largest at their port, and which ports limit rates."""
    count = S.flows
    for i in range(count):
        for side in range(2):
            bucket = state.bucket(S, port(state.flow(S, state.active(S, i).value), side))
            bucket.limits = bucket.level == 0.0
            bucket.largest, bucket.free = 0.0, bucket.rate if bucket.level == 0.0 else -1.0
    for i in range(count):
        flow = state.flow(S, state.active(S, i).value)
        bucket = state.bucket(S, flow.out)
        flow.share, flow.open = window(flow, bucket.rate)[0], 1
        bucket.largest = max(bucket.largest, flow.share)
    for i in range(count):
        flow = state.flow(S, state.active(S, i).value)
        flow.share = flow.weight * flow.share / state.bucket(S, flow.out).largest


@compiled
def open_shares(S, b):
    """The sum of the shares of flows through a port that have no rate yet."""
    total = 0.0
    for i in range(S.flows):
        flow = state.flow(S, state.active(S, i).value)
        if flow.open and (flow.out == b or flow.into == b):
            total += flow.share
    return total


@compiled
def tightest(S):
    """The port that gives least to a share, and how much; -1 if no flow is without a rate there."""
    tight, best = NONE, math.inf
    for i in range(S.flows):
        for side in range(2):
            b = port(state.flow(S, state.active(S, i).value), side)
            if state.bucket(S, b).limits:
                total = open_shares(S, b)
                if total > 0.0 and state.bucket(S, b).free / total < best:
                    tight, best = b, state.bucket(S, b).free / total
    return tight, best


@compiled
def give_rates(S, b, level):
    """Flows through a port get their rates, which is less for others at their other port."""
    for i in range(S.flows):
        flow = state.flow(S, state.active(S, i).value)
        if flow.open and (flow.out == b or flow.into == b):
            flow.rate, flow.open = level * flow.share, 0
            for side in range(2):
                bucket = state.bucket(S, port(flow, side))
                if bucket.limits:
                    bucket.free -= flow.rate


@compiled
def share_ports(S):
    """Max-min fair rates, by weight, through the ports that have no tokens left."""
    begin_sharing(S)
    while True:
        tight, level = tightest(S)
        if tight < 0:
            return
        give_rates(S, tight, max(0.0, level))


@compiled
def fill_buckets(S):
    """Tokens come with time. Those that there are pass bytes at once."""
    count = S.flows
    for i in range(count):
        for side in range(2):
            bucket = state.bucket(S, port(state.flow(S, state.active(S, i).value), side))
            level = bucket.level + (bucket.rate - bucket.through) * (S.now_s - bucket.updated_s)
            bucket.level = 0.0 if level < LEAST_BYTES else min(bucket.depth, level)
            bucket.updated_s, bucket.through = S.now_s, 0.0
    for i in range(count):
        flow = state.flow(S, state.active(S, i).value)
        at_once = min(flow.left, state.bucket(S, flow.out).level, state.bucket(S, flow.into).level)
        flow.left -= at_once
        for side in range(2):
            bucket = state.bucket(S, port(flow, side))
            bucket.level = 0.0 if bucket.level - at_once < LEAST_BYTES else bucket.level - at_once


@compiled
def drained_s(S, flow, soon_s):
    """Seconds until a port of a flow has no tokens left, or `soon_s` if that is less."""
    for side in range(2):
        bucket = state.bucket(S, port(flow, side))
        drain = bucket.through - bucket.rate
        if bucket.level > 0.0 and drain > 0.0:
            soon_s = min(soon_s, bucket.level / drain)
    return soon_s


@compiled
def let_go(S):
    """Flows that are handed over, or at their end."""
    kept = 0
    for i in range(S.flows):
        f = state.active(S, i).value
        flow = state.flow(S, f)
        if flow.left < flow.kept + LEAST_BYTES and flow.handed == 0:
            flow.handed = 1
            schedule(S, S.now_s, HANDED, f, 0)
        if flow.left < LEAST_BYTES:
            schedule(S, S.now_s, FLOW_DONE, f, 0)
        else:
            state.active(S, kept).value = f
            kept += 1
    S.flows = kept


@compiled
def go_on(S):
    """Pass bytes for which there are tokens, share the rest, and look again when that changes."""
    fill_buckets(S)
    let_go(S)
    share_ports(S)
    soon_s = math.inf
    for i in range(S.flows):
        flow = state.flow(S, state.active(S, i).value)
        state.bucket(S, flow.out).through += flow.rate
        state.bucket(S, flow.into).through += flow.rate
    S.timer += 1
    for i in range(S.flows):
        flow = state.flow(S, state.active(S, i).value)
        to_go = flow.left - flow.kept * (flow.handed == 0)
        soon_s = min(soon_s, min(to_go / flow.rate, window(flow, state.bucket(S, flow.out).rate)[1]))
        soon_s = drained_s(S, flow, soon_s)
    if S.flows:
        schedule(S, S.now_s + max(soon_s, S.now_s * EPSILON), LOOK, S.timer & TIMERS, 0)


@compiled
def look(S, timer):
    """Time has passed in which no flow began."""
    if timer == S.timer & TIMERS:
        advance_flows(S)
        go_on(S)


@compiled
def begin_flow(S, f):
    """A flow takes its share."""
    advance_flows(S)
    state.active(S, S.flows).value = f
    S.flows += 1
    go_on(S)


@compiled
def stream(S, message, m, hosts, weight):
    """The bytes of a message begin to pass the ports of two hosts, behind queues if it is short."""
    S.free_flows -= 1
    f = state.free_flow(S, S.free_flows).value
    flow = state.flow(S, f)
    message.begin_s = S.now_s + S.latency_s
    size = message.bytes + S.gap_s * S.bandwidth
    state.port(S, hosts[0]).out_busy_s += size / S.bandwidth
    state.port(S, hosts[1]).in_busy_s += size / S.bandwidth
    flow.out, flow.into, flow.message, flow.handed = 2 * hosts[0], 2 * hosts[1] + 1, m, 0
    flow.departure, flow.asked, flow.calls, flow.last_call = message.departure, message.asks, NONE, NONE
    flow.source, flow.to = message.sender, message.receiver
    flow.left, flow.kept, flow.ramp, flow.rate, flow.age_s = size, S.buffer_bytes, S.ramp_bytes, 0.0, 0.0
    flow.weight = weight
    short = size <= state.bucket(S, flow.out).queue
    behind_s = backlog_s(S, flow.out, flow.into) if short else 0.0
    state.stream(S, message.sender, message.receiver).value = f
    if behind_s > 0.0:
        schedule(S, S.now_s + behind_s, FLOW_BEGINS, f, 0)
    else:
        begin_flow(S, f)


@compiled
def control(S, peers, hosts, kind, m):
    """Schedule what a control message does, behind the bytes on their way there and the queues of busy ports; when that is."""
    f = state.stream(S, peers[0], peers[1]).value
    if f >= 0:
        flow = state.flow(S, f)
        S.callbacks += 1
        c = S.callbacks % S.callback_count
        call = state.callback(S, c)
        call.kind, call.message, call.next = kind, m, NONE
        if flow.last_call >= 0:
            state.callback(S, flow.last_call).next = c
        else:
            flow.calls = c
        flow.last_call = c
        return math.inf
    after_s = S.latency_s + backlog_s(S, 2 * hosts[0], 2 * hosts[1] + 1)
    schedule(S, S.now_s + after_s, kind, m, 0)
    return S.now_s + after_s
