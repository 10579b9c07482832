"""Messages that share ports, as sim.language.event.flows has it."""

from __future__ import annotations

import math

from sim.language.engine import layout as op
from sim.language.engine.cores import late_since
from sim.language.engine.events import drawn, push, works
from sim.language.engine.layout import KINDS, NONE, State
from sim.language.engine.mail import climb_of, give_back, leave, level_of, port_of
from sim.language.engine.texts import look_again


def send(S: State, message: int) -> float:
    """A message is posted; its handle."""
    sender = S.message_from[message]
    if not S.shares_ports or S.rank_host[sender] == S.rank_host[S.message_to[message]]:
        return leave(S, message)
    S.flow_left[message] = S.message_bytes[message] + S.gap_s * S.bandwidth[0]
    S.flow_weight[message] = drawn(S, op.SHARES, sender, S.rank_flows[sender])
    S.rank_flows[sender] += 1
    S.flow_has_left[message] = 0
    S.flow_asked[message] = math.inf
    if S.message_bytes[message] > S.eager_bytes:
        S.flow_announced[message] = 1
        S.flow_told[message] = S.now
        tell(S, message, sender, S.message_to[message], op.ARRIVES)
    else:
        stream(S, message)
    return -1.0 - (op.MESSAGES + message) - 1.0 * op.GENERATION * S.message_generation[message]


def tell(S: State, message: int, frm: int, to: int, kind: int) -> float:
    """A control message of an announced one leaves, behind bytes on their way there and in queues; when it comes, if that is known."""
    before = NONE
    for k in range(S.flows):
        if S.message_from[S.flowing[k]] == frm and S.message_to[S.flowing[k]] == to:
            before = S.flowing[k]
    if before != NONE:
        follow(S, message, before)
        return math.inf
    there = S.now + (S.latency_s * (2 * climb_of(S, frm, to) - 1) + queued(S, frm, to))
    push(S, there, S.message_key[message], message * KINDS + kind)
    return there


def follow(S: State, message: int, before: int) -> None:
    """What is next of an announced message happens when all of another one is there."""
    S.flow_next[message] = S.flow_first[before]
    S.flow_first[before] = message


def ask(S: State, message: int, found: float) -> None:
    """Ask for a message, once the receiver's own is there, if the sender had asked for that before it found this one."""
    own = NONE
    for one in range(S.message_room):
        if (
            S.message_from[one] == S.message_to[message]
            and S.message_to[one] == S.message_from[message]
            and S.message_text[one] == S.message_text[message]
            and S.flow_announced[one]
            and (own == NONE or S.message_key[one] > S.message_key[own])
        ):
            own = one
    if own != NONE and goes_first(S, own, message, found):
        follow(S, message, own)
    else:
        S.flow_asked[message] = tell(S, message, S.message_to[message], S.message_from[message], op.ASKED)


def goes_first(S: State, own: int, other: int, found: float) -> int:
    """Whether a rank's own message was asked for before the rank asks for the other one, which comes from there."""
    if S.receives_first:
        known = S.flow_told[own] + S.latency_s
        return known < S.flow_told[other] or (
            known == S.flow_told[other] and S.message_from[own] < S.message_from[other]
        )
    return S.flow_asked[own] <= found + op.ROUND_OFF_S


def all_there(S: State, message: int) -> None:
    """All of a message is there: what has waited for that happens."""
    one = S.flow_first[message]
    S.flow_first[message] = NONE
    works(S, S.message_to[message], -S.flow_moves[message])
    S.flow_moves[message] = 0
    while one != NONE:
        push(S, S.now, S.message_key[one], one * KINDS + (op.ASKED if S.message_there[one] == 3 else op.ARRIVES))
        one = S.flow_next[one]


def land(S: State, message: int) -> int:
    """All of an announced message is there; the text that waits for that, or NONE."""
    all_there(S, message)
    if S.flow_taker[message] != NONE and S.message_serial[message]:
        S.text_takes[S.flow_taker[message]] = message
    else:
        give_back(S, message)
    return S.flow_taker[message]


def flows_on(S: State, what: int, message: int) -> None:
    """An event of messages that share ports."""
    if what == op.LOOKS and S.now == S.look_due:
        look(S)
    elif what == op.BEGINS:
        begin(S, message)
    elif what == op.ASKED:
        asked(S, message)
    elif what == op.LEAVES:
        stream(S, message)
    elif what == op.LOST:
        ask(S, message, -math.inf)


def asked(S: State, message: int) -> None:
    """A message is asked for: it leaves when its sender sees that, at its next poll while it polls."""
    sender = S.message_from[message]
    seconds = late_since(S, sender, S.rank_waits_since[sender]) if S.rank_polling[sender] else 0.0
    if seconds > 0.0:
        push(S, S.now + seconds, S.message_key[message], message * KINDS + op.LEAVES)
    else:
        stream(S, message)


def stream(S: State, message: int) -> None:
    """The bytes of a message leave, behind the queues before its ports if it is short."""
    behind = queued(S, S.message_from[message], S.message_to[message]) if S.flow_left[message] <= S.queue_bytes else 0.0
    if behind > 0.0:
        push(S, S.now + behind, S.message_key[message], message * KINDS + op.BEGINS)
    else:
        begin(S, message)


def begin(S: State, message: int) -> None:
    """The bytes of a message begin to pass."""
    works(S, S.message_from[message], 1)
    works(S, S.message_to[message], 1)
    S.flow_moves[message] = 1
    S.flow_rate[message] = 0.0
    S.flow_begun[message] = S.now
    S.flowing[S.flows] = message
    S.flows += 1
    look_at(S, S.now)


def look_at(S: State, time: float) -> None:
    """Look at the flows at a time, when all else of that moment has happened, unless that is sooner."""
    if time < S.look_due:
        S.look_due = time
        push(S, time, S.ranks << (S.text_bits + S.count_bits), op.LOOKS)


def pass_time(S: State) -> None:
    """All flows have gone on until now."""
    seconds = S.now - S.flows_since
    S.flows_since = S.now
    for k in range(S.flows):
        m = S.flowing[k]
        S.flow_left[m] = max(0.0, S.flow_left[m] - S.flow_rate[m] * seconds)


def hops_of(S: State, message: int) -> int:
    """How many ports the path of a message has."""
    return 2 * climb_of(S, S.message_from[message], S.message_to[message])


def port_at(S: State, message: int, hop: int) -> int:
    """One of them."""
    return port_of(S, S.message_from[message], S.message_to[message], hop)


def busy_port(S: State, message: int) -> int:
    """The first port of a path that has no tokens left and passes bytes at its full rate; NONE if there is none."""
    for hop in range(hops_of(S, message)):
        port = port_at(S, message, hop)
        if S.port_level[port] == 0.0 and S.port_rest[port] < S.bandwidth[level_of(S, port)] * (1.0 - op.FULL):
            return port
    return NONE


def queued(S: State, frm: int, to: int) -> float:
    """Seconds until the queues in front of the ports of a path have passed them."""
    seconds = 0.0
    if S.look_due == S.now:
        look(S)
    pass_time(S)
    for hop in range(2 * climb_of(S, frm, to)):
        port = port_of(S, frm, to, hop)
        before = 0.0
        for k in range(S.flows):
            if busy_port(S, S.flowing[k]) == port:
                before += S.flow_left[S.flowing[k]]
        seconds += min(before, S.queue_bytes) / S.bandwidth[level_of(S, port)]
    return seconds


def look(S: State) -> None:
    """Flows that have left or passed are over, and others share what is free."""
    n = S.flows
    pass_time(S)
    pass_tokens(S)
    S.flows = 0
    for k in range(n):
        m = S.flowing[k]
        if S.flow_left[m] < S.buffer_bytes + op.LEAST_BYTES and not S.flow_has_left[m]:
            S.flow_has_left[m] = 1
            S.message_generation[m] += 1
            works(S, S.message_from[m], -1)
            look_again(S, S.message_from[m])
        if S.flow_left[m] < op.LEAST_BYTES:
            there = S.now + S.latency_s * (hops_of(S, m) - 1)
            push(S, there, S.message_key[m], m * KINDS + (op.LANDS if S.flow_announced[m] else op.ARRIVES))
        else:
            S.flowing[S.flows] = m
            S.flows += 1
    share_ports(S)
    S.look_due = math.inf
    look_at(S, S.now + max(soon(S), S.now * op.RESOLUTION))


def pass_tokens(S: State) -> None:
    """Tokens have come and gone; bytes for which there are tokens pass at once. Ports are ready for new rates."""
    for k in range(S.flows):
        for hop in range(hops_of(S, S.flowing[k])):
            port = port_at(S, S.flowing[k], hop)
            keep(S, port, S.port_level[port] + S.port_rest[port] * (S.now - S.port_since[port]))
            S.port_since[port] = S.now
            S.port_rest[port] = S.bandwidth[level_of(S, port)]
            S.port_largest[port] = 0
    for k in range(S.flows):
        m = S.flowing[k]
        at_once = S.flow_left[m]
        for hop in range(hops_of(S, m)):
            at_once = min(at_once, S.port_level[port_at(S, m, hop)])
        S.flow_left[m] -= at_once
        for hop in range(hops_of(S, m)):
            port = port_at(S, m, hop)
            keep(S, port, S.port_level[port] - at_once)


def keep(S: State, port: int, level: float) -> None:
    """A port has so many tokens, as far as it keeps them."""
    S.port_level[port] = 0.0 if level < op.LEAST_BYTES else min(level, S.burst_bytes)


def doublings(S: State, message: int) -> int:
    """How often the window of a flow has doubled; it does so DOUBLINGS times, until it is the largest."""
    if S.ramp_bytes == 0.0:
        return op.DOUBLINGS
    age = S.now - S.flow_begun[message]
    return min(op.DOUBLINGS, int(age / (S.ramp_bytes / S.bandwidth[0]) + op.OF_DOUBLING))


def soon(S: State) -> float:
    """Seconds until a flow has left, or passed, or its window doubles, or a port has no tokens left."""
    soonest = math.inf
    for k in range(S.flows):
        m = S.flowing[k]
        soonest = min(soonest, (S.flow_left[m] - (0.0 if S.flow_has_left[m] else S.buffer_bytes)) / S.flow_rate[m])
        if doublings(S, m) < op.DOUBLINGS:
            next_one = S.flow_begun[m] + (doublings(S, m) + 1.0) * (S.ramp_bytes / S.bandwidth[0])
            soonest = min(soonest, next_one - S.now)
        for hop in range(hops_of(S, m)):
            port = port_at(S, m, hop)
            if S.port_level[port] > 0.0 and S.port_rest[port] < 0.0:
                soonest = min(soonest, S.port_level[port] / -S.port_rest[port])
    return soonest


def share_ports(S: State) -> None:
    """Set the rates: max-min fair, by weight, through the ports that have no tokens left; of one sender's by their windows too."""
    for k in range(S.flows):
        port = port_at(S, S.flowing[k], 0)
        S.port_largest[port] = max(S.port_largest[port], doublings(S, S.flowing[k]))
    for k in range(S.flows):
        m = S.flowing[k]
        S.flow_share[m] = S.flow_weight[m] * 2.0 ** (doublings(S, m) - S.port_largest[port_at(S, m, 0)])
        S.flow_rate[m] = 0.0
    tightest = find_tightest(S)
    while tightest != NONE:
        each = max(op.LEAST_BYTES, S.port_rest[tightest] / S.port_shares[tightest])
        for k in range(S.flows):
            m = S.flowing[k]
            if S.flow_rate[m] == 0.0:
                for hop in range(hops_of(S, m)):
                    if port_at(S, m, hop) == tightest:
                        S.flow_rate[m] = each * S.flow_share[m]
                for hop in range(hops_of(S, m)):
                    S.port_rest[port_at(S, m, hop)] -= S.flow_rate[m]
        tightest = find_tightest(S)


def find_tightest(S: State) -> int:
    """The port without tokens that leaves least for each of its flows that have no rate yet; NONE if all have one."""
    tightest = NONE
    least = math.inf
    for k in range(S.flows):
        for hop in range(hops_of(S, S.flowing[k])):
            S.port_shares[port_at(S, S.flowing[k], hop)] = 0.0
    for k in range(S.flows):
        if S.flow_rate[S.flowing[k]] == 0.0:
            for hop in range(hops_of(S, S.flowing[k])):
                S.port_shares[port_at(S, S.flowing[k], hop)] += S.flow_share[S.flowing[k]]
    for k in range(S.flows):
        for hop in range(hops_of(S, S.flowing[k])):
            port = port_at(S, S.flowing[k], hop)
            each = S.port_rest[port] / S.port_shares[port] if S.port_shares[port] > 0.0 else math.inf
            if S.port_level[port] == 0.0 and each < least:
                tightest = port
                least = each
    return tightest
