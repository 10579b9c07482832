"""Messages on their way: through the ports of a path, each for the seconds that its bytes take there (LogGP).

A rank has a place at each level: its own or its host's port, the uplink of its rack. A path goes out at the levels below the first
that both ends have in common, and in at the same levels downwards. A port's number is even on the way out, and odd on the way in.
"""

from __future__ import annotations

import math

from sim.language.engine import layout as op
from sim.language.engine.heap import arrives_at, push, reaches_at
from sim.language.engine.idle import moves
from sim.language.engine.layout import KINDS, MOVES, NONE, State
from sim.language.engine.plain import compiled, double, integer


@compiled
def climb_of(S: State, frm: integer, to: integer) -> integer:
    """How many levels a path between two hosts goes up, and down again."""
    climb: integer = 1
    while climb < S.levels and S.place[climb * S.ranks + frm] != S.place[climb * S.ranks + to]:
        climb += 1
    return climb


@compiled
def port_of(S: State, frm: integer, to: integer, hop: integer) -> integer:
    """A port of a path."""
    climb: integer = climb_of(S, frm, to)
    if hop < climb:
        return 2 * (hop * S.ranks + S.place[hop * S.ranks + frm])
    hop = 2 * climb - 1 - hop
    return 2 * (hop * S.ranks + S.place[hop * S.ranks + to]) + 1


@compiled
def level_of(S: State, port: integer) -> integer:
    """The level of a port."""
    return port // (2 * S.ranks)


@compiled
def later(x: double, y: double) -> double:
    """The later of two times."""
    return x if x > y else y


@compiled
def comes(S: State, message: integer, begin: double, end: double) -> None:
    """A message passes its last port from `begin` on, and is there at `end`."""
    to: integer = S.message_to[message]
    if begin <= S.now or begin <= S.rank_since[to]:
        moves(S, to, end)
    elif begin < end:
        S.message_passed[message] = end
        push(S, begin, S.message_key[message], message * KINDS + MOVES)
    arrives_at(S, message, end)


@compiled
def local_latency(S: State, rank: integer) -> double:
    """Of a message within a rank's host."""
    device: integer = S.rank_device[rank]
    return 0.0 if S.local_wakes and S.device_busy[device] >= S.device_cores[device] else S.local_latency_s


@compiled
def leave(S: State, message: integer) -> double:
    """A message is posted; when its last byte has left the sender."""
    sender: integer = S.message_from[message]
    if S.rank_host[sender] == S.rank_host[S.message_to[message]]:
        begin = later(S.now, S.local_free[sender])
        S.local_free[sender] = begin + S.message_bytes[message] / S.local_bandwidth
        comes(S, message, begin, S.local_free[sender] + local_latency(S, sender))
        moves(S, sender, S.local_free[sender])
        return S.local_free[sender]
    S.message_hop[message] = 0
    S.message_passed[message] = 0.0
    begin = reach(S, message)
    moves(S, sender, begin)
    return begin


@compiled
def begins_at(S: State, port: integer, level: integer, size: double, now: double) -> double:
    """A message of so many bytes has reached a port: when it begins to pass."""
    seconds: double = S.gap_s + size / S.bandwidth[level]
    begin: double = later(now, S.port_free[port])
    if level == 0 and S.sustained < math.inf:
        S.port_earned[port] += size / S.sustained
        begin = later(begin, S.port_earned[port] - seconds)
    S.port_free[port] = begin + seconds
    return begin


@compiled
def reach(S: State, message: integer) -> double:
    """A message reaches the next port of its path, and takes its turn there; when its last byte has passed."""
    frm: integer = S.message_from[message]
    to: integer = S.message_to[message]
    hop: integer = S.message_hop[message]
    climb: integer = 1 if S.levels == 1 else climb_of(S, frm, to)
    is_out: bool = hop < climb
    level: integer = hop if is_out else 2 * climb - 1 - hop
    port: integer = 2 * (level * S.ranks + S.place[level * S.ranks + (frm if is_out else to)]) + (0 if is_out else 1)
    begin: double = begins_at(S, port, level, S.message_bytes[message], S.now)
    end: double = later(S.message_passed[message], S.port_free[port])
    held: double = 0.0
    if S.window_room > 0:
        if hop == 0:
            S.message_held[message] = later(0.0, windowed(S, message, begin) - end)
        held = S.message_held[message]
    if hop + 1 == 2 * climb:
        comes(S, message, begin, end + held)
    else:
        S.message_passed[message] = end + S.latency_s
        S.message_hop[message] = hop + 1
        reaches_at(S, message, (end if S.whole_messages else begin) + S.latency_s)
    return end + held


@compiled
def windowed(S: State, message: integer, now: double) -> double:
    """When the last byte of a message leaves by its connection's window: sim.platform.slow_start.Connection."""
    k: integer = connection(S, S.message_from[message] * S.ranks + S.message_to[message])
    begin: double = later(now, S.window_free[k])
    timeouts: integer = int((begin - S.window_free[k]) / (op.TIMEOUT_S + S.round_trip_s))
    window: double = later(S.initial_window, S.window_bytes[k] * 0.5 ** (timeouts if timeouts < 99 else 99))
    passed: double = 0.0
    left: double = S.message_bytes[message]
    full: double = S.bandwidth[0] * S.round_trip_s
    rounds: double
    while left > window and window < full and window < S.most_window:
        passed = passed + S.round_trip_s
        left = left - window
        window = 2.0 * window if 2.0 * window < S.most_window else S.most_window
    if left > window and window < full:
        rounds = math.ceil(left / window) - 1.0
        passed = passed + rounds * S.round_trip_s
        left = left - rounds * window
    S.window_bytes[k] = window + left if window + left < S.most_window else S.most_window
    S.window_free[k] = begin + (passed + left / S.bandwidth[0])
    return S.window_free[k]


@compiled
def connection(S: State, pair: integer) -> integer:
    """The place of the window of two ranks, for which there is room, by open addressing."""
    k: integer = pair % S.window_room
    while S.window_pair[k] != pair:
        if S.window_pair[k] == NONE:
            S.window_pair[k] = pair
            S.window_bytes[k] = S.initial_window
            S.window_free[k] = 0.0
            S.windows += 1
        else:
            k = (k + 1) % S.window_room
    return k
