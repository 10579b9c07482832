"""Messages that share ports, as sim.language.event.flows has it."""

from __future__ import annotations

import math

from sim.language.engine import layout as op
from sim.language.engine.heap import arrives_at, push
from sim.language.engine.layout import BEGINS, GENERATION, KINDS, LOOKS, MESSAGES, NONE, State
from sim.language.engine.plain import compiled, double, inf, integer
from sim.language.engine.ports import climb_of, later, leave, level_of, port_of
from sim.language.engine.texts import look_again


@compiled
def send(S: State, message: integer) -> double:
    """A message is posted; its handle."""
    sender: integer = S.message_from[message]
    behind: double = 0.0
    if not S.shares_ports or S.rank_host[sender] == S.rank_host[S.message_to[message]]:
        return leave(S, message)
    S.flow_left[message] = S.message_bytes[message] + S.gap_s * S.bandwidth[0]
    S.flow_weight[message] = S.sole_weight
    if S.sole_weight < 0.0:
        S.flow_weight[message] = S.weight[sender * op.WEIGHTS + S.rank_flows[sender] % op.WEIGHTS]
    S.rank_flows[sender] += 1
    S.flow_rate[message] = 0.0
    S.flow_age[message] = 0.0
    S.flow_has_left[message] = 0
    if S.flow_left[message] <= S.queue_bytes:
        behind = queued(S, message)
    if behind > 0.0:
        push(S, S.now + behind, S.message_key[message], message * KINDS + BEGINS)
    else:
        begin(S, message)
    return -1.0 - (MESSAGES + message) - 1.0 * GENERATION * S.message_generation[message]


@compiled
def begin(S: State, message: integer) -> None:
    """The bytes of a message begin to pass."""
    advance(S)
    S.flowing[S.flows] = message
    S.flows += 1
    look_at(S, S.now)


@compiled
def look_at(S: State, time: double) -> None:
    """Look at the flows at a time, when all else of that moment has happened, unless that is sooner."""
    if time < S.look_due:
        S.look_due = time
        push(S, time, S.ranks << (S.text_bits + S.count_bits), LOOKS)


@compiled
def advance(S: State) -> None:
    """All flows have gone on until now."""
    k: integer
    m: integer
    seconds: double = S.now - S.flows_since
    S.flows_since = S.now
    for k in range(S.flows):
        m = S.flowing[k]
        S.flow_left[m] = later(0.0, S.flow_left[m] - S.flow_rate[m] * seconds)
        S.flow_age[m] += seconds


@compiled
def rate_of(S: State, port: integer) -> double:
    """Bytes/s of a port."""
    return S.bandwidth[port // (2 * S.ranks)]


@compiled
def busy_port(S: State, message: integer) -> integer:
    """The first port of a path that has no tokens left and passes bytes at its full rate; NONE if there is none."""
    climb: integer = climb_of(S, message)
    hop: integer
    port: integer
    for hop in range(2 * climb):
        port = port_of(S, message, hop, climb)
        if S.port_level[port] == 0.0 and S.port_through[port] > rate_of(S, port) * op.FULL:
            return port
    return NONE


@compiled
def queued(S: State, message: integer) -> double:
    """Seconds until the queues in front of the ports of a path have passed them."""
    climb: integer = climb_of(S, message)
    hop: integer
    port: integer
    k: integer
    before: double
    seconds: double = 0.0
    if S.look_due == S.now:
        look(S)
    advance(S)
    for hop in range(2 * climb):
        port = port_of(S, message, hop, climb)
        before = 0.0
        for k in range(S.flows):
            if busy_port(S, S.flowing[k]) == port:
                before += S.flow_left[S.flowing[k]]
        seconds += (before if before < S.queue_bytes else S.queue_bytes) / rate_of(S, port)
    return seconds


@compiled
def look(S: State) -> None:
    """Flows that have left or passed are over, and others share what is free."""
    n: integer = S.flows
    k: integer
    m: integer
    advance(S)
    pass_tokens(S)
    S.flows = 0
    for k in range(n):
        m = S.flowing[k]
        if S.flow_left[m] < S.buffer_bytes + op.LEAST_BYTES and not S.flow_has_left[m]:
            S.flow_has_left[m] = 1
            S.message_generation[m] += 1
            look_again(S, S.message_from[m])
        if S.flow_left[m] < op.LEAST_BYTES:
            arrives_at(S, m, S.now + S.latency_s * (2 * climb_of(S, m) - 1))
        else:
            S.flowing[S.flows] = m
            S.flows += 1
    share_ports(S)
    S.look_due = inf
    if S.flows > 0:
        look_at(S, S.now + later(soon(S), S.now * op.RESOLUTION))


@compiled
def pass_tokens(S: State) -> None:
    """Tokens have come and gone; bytes for which there are tokens pass at once."""
    k: integer
    m: integer
    hop: integer
    climb: integer
    port: integer
    at_once: double
    for k in range(S.flows):
        climb = climb_of(S, S.flowing[k])
        for hop in range(2 * climb):
            port = port_of(S, S.flowing[k], hop, climb)
            keep(S, port, S.port_level[port] + (rate_of(S, port) - S.port_through[port]) * (S.now - S.port_since[port]))
            S.port_since[port] = S.now
            S.port_through[port] = 0.0
    for k in range(S.flows):
        m = S.flowing[k]
        climb = climb_of(S, m)
        at_once = S.flow_left[m]
        for hop in range(2 * climb):
            port = port_of(S, m, hop, climb)
            at_once = S.port_level[port] if S.port_level[port] < at_once else at_once
        S.flow_left[m] -= at_once
        for hop in range(2 * climb):
            port = port_of(S, m, hop, climb)
            keep(S, port, S.port_level[port] - at_once)


@compiled
def keep(S: State, port: integer, level: double) -> None:
    """A port has so many tokens, as far as it keeps them."""
    if level < op.LEAST_BYTES:
        level = 0.0
    S.port_level[port] = level if level < S.burst_bytes else S.burst_bytes


@compiled
def doublings(S: State, message: integer) -> integer:
    """How often the window of a flow has doubled."""
    return int(S.flow_age[message] / (S.ramp_bytes / S.bandwidth[0]) + op.ROUND_OFF)


@compiled
def grown(S: State, message: integer) -> double:
    """The window of a flow, as a share of the largest one."""
    times: integer
    if S.ramp_bytes == 0.0:
        return 1.0
    times = doublings(S, message) - op.DOUBLINGS
    return 2.0 ** (times if times < 0 else 0)


@compiled
def soon(S: State) -> double:
    """Seconds until a flow has left, or passed, or its window doubles, or a port has no tokens left."""
    k: integer
    m: integer
    hop: integer
    climb: integer
    port: integer
    drain: double
    seconds: double
    soonest: double = inf
    for k in range(S.flows):
        m = S.flowing[k]
        seconds = (S.flow_left[m] - (0.0 if S.flow_has_left[m] else S.buffer_bytes)) / S.flow_rate[m]
        soonest = seconds if seconds < soonest else soonest
        if grown(S, m) < 1.0:
            seconds = (doublings(S, m) + 1.0) * (S.ramp_bytes / S.bandwidth[0]) - S.flow_age[m]
            soonest = seconds if seconds < soonest else soonest
        climb = climb_of(S, m)
        for hop in range(2 * climb):
            port = port_of(S, m, hop, climb)
            drain = S.port_through[port] - rate_of(S, port)
            if S.port_level[port] > 0.0 and drain > 0.0 and S.port_level[port] / drain < soonest:
                soonest = S.port_level[port] / drain
    return soonest


@compiled
def share_ports(S: State) -> None:
    """Set the rates: max-min fair, by weight, through the ports that have no tokens left; of one sender's by their windows too."""
    k: integer
    m: integer
    hop: integer
    climb: integer
    port: integer
    tightest: integer
    each: double = 0.0
    for k in range(S.flows):
        climb = climb_of(S, S.flowing[k])
        for hop in range(2 * climb):
            port = port_of(S, S.flowing[k], hop, climb)
            S.port_rest[port] = rate_of(S, port)
            S.port_largest[port] = 0.0
    for k in range(S.flows):
        m = S.flowing[k]
        port = port_of(S, m, 0, climb_of(S, m))
        S.port_largest[port] = later(S.port_largest[port], grown(S, m))
    for k in range(S.flows):
        m = S.flowing[k]
        S.flow_share[m] = (
            S.flow_weight[m] * grown(S, m) / S.port_largest[port_of(S, m, 0, climb_of(S, m))]
        )
        S.flow_rate[m] = -1.0
    while True:
        tightest = find_tightest(S)
        if tightest == NONE:
            break
        each = later(op.LEAST_BYTES, S.port_rest[tightest] / S.port_shares[tightest])
        for k in range(S.flows):
            m = S.flowing[k]
            if S.flow_rate[m] < 0.0 and passes(S, m, tightest):
                S.flow_rate[m] = each * S.flow_share[m]
                climb = climb_of(S, m)
                for hop in range(2 * climb):
                    S.port_rest[port_of(S, m, hop, climb)] -= S.flow_rate[m]
    for k in range(S.flows):
        climb = climb_of(S, S.flowing[k])
        for hop in range(2 * climb):
            S.port_through[port_of(S, S.flowing[k], hop, climb)] += S.flow_rate[S.flowing[k]]


@compiled
def passes(S: State, message: integer, port: integer) -> bool:
    """Whether a port is on a message's path."""
    climb: integer = climb_of(S, message)
    hop: integer
    for hop in range(2 * climb):
        if port_of(S, message, hop, climb) == port:
            return True
    return False


@compiled
def find_tightest(S: State) -> integer:
    """The port without tokens that leaves least for each of its flows that have no rate yet; NONE if all have one."""
    k: integer
    hop: integer
    climb: integer
    port: integer
    tightest: integer = NONE
    least: double = inf
    for k in range(S.flows):
        climb = climb_of(S, S.flowing[k])
        for hop in range(2 * climb):
            S.port_shares[port_of(S, S.flowing[k], hop, climb)] = 0.0
    for k in range(S.flows):
        climb = climb_of(S, S.flowing[k])
        if S.flow_rate[S.flowing[k]] < 0.0:
            for hop in range(2 * climb):
                S.port_shares[port_of(S, S.flowing[k], hop, climb)] += S.flow_share[S.flowing[k]]
    for k in range(S.flows):
        climb = climb_of(S, S.flowing[k])
        for hop in range(2 * climb):
            port = port_of(S, S.flowing[k], hop, climb)
            if S.port_level[port] == 0.0 and S.port_shares[port] > 0.0:
                if S.port_rest[port] / S.port_shares[port] < least:
                    tightest = port
                    least = S.port_rest[port] / S.port_shares[port]
    return tightest
