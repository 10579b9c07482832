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


def climb_of(S: State, frm: int, to: int) -> int:
    """How many levels a path between two hosts goes up, and down again."""
    climb = 1
    while climb < S.levels and S.place[climb * S.ranks + frm] != S.place[climb * S.ranks + to]:
        climb += 1
    return climb


def port_of(S: State, frm: int, to: int, hop: int) -> int:
    """A port of a path."""
    climb = climb_of(S, frm, to)
    if hop < climb:
        return 2 * (hop * S.ranks + S.place[hop * S.ranks + frm])
    hop = 2 * climb - 1 - hop
    return 2 * (hop * S.ranks + S.place[hop * S.ranks + to]) + 1


def level_of(S: State, port: int) -> int:
    """The level of a port."""
    return port // (2 * S.ranks)


def later(x: float, y: float) -> float:
    """The later of two times."""
    return x if x > y else y


def comes(S: State, message: int, begin: float, end: float) -> None:
    """A message passes its last port from `begin` on, and is there at `end`."""
    to = S.message_to[message]
    if begin <= S.now or begin <= S.rank_since[to]:
        moves(S, to, end)
    elif begin < end:
        S.message_passed[message] = end
        push(S, begin, S.message_key[message], message * KINDS + MOVES)
    arrives_at(S, message, end)


def local_latency(S: State, rank: int) -> float:
    """Of a message within a rank's host."""
    device = S.rank_device[rank]
    return 0.0 if S.local_wakes and S.device_busy[device] >= S.device_cores[device] else S.local_latency_s


def leave(S: State, message: int) -> float:
    """A message is posted; when its last byte has left the sender."""
    sender = S.message_from[message]
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


def begins_at(S: State, port: int, level: int, size: float, now: float) -> float:
    """A message of so many bytes has reached a port: when it begins to pass."""
    seconds = S.gap_s + size / S.bandwidth[level]
    begin = later(now, S.port_free[port])
    if level == 0 and S.sustained < math.inf:
        S.port_earned[port] += size / S.sustained
        begin = later(begin, S.port_earned[port] - seconds)
    S.port_free[port] = begin + seconds
    return begin


def reach(S: State, message: int) -> float:
    """A message reaches the next port of its path, and takes its turn there; when its last byte has passed."""
    frm = S.message_from[message]
    to = S.message_to[message]
    hop = S.message_hop[message]
    climb = 1 if S.levels == 1 else climb_of(S, frm, to)
    is_out: bool = hop < climb
    level = hop if is_out else 2 * climb - 1 - hop
    port = 2 * (level * S.ranks + S.place[level * S.ranks + (frm if is_out else to)]) + (0 if is_out else 1)
    begin = begins_at(S, port, level, S.message_bytes[message], S.now)
    end = later(S.message_passed[message], S.port_free[port])
    held = 0.0
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


def windowed(S: State, message: int, now: float) -> float:
    """When the last byte of a message leaves by its connection's window: sim.platform.slow_start.Connection."""
    k = connection(S, S.message_from[message] * S.ranks + S.message_to[message])
    begin = later(now, S.window_free[k])
    timeouts = int((begin - S.window_free[k]) / (op.TIMEOUT_S + S.round_trip_s))
    window = later(S.initial_window, S.window_bytes[k] * 0.5 ** (timeouts if timeouts < 99 else 99))
    passed = 0.0
    left = S.message_bytes[message]
    full = S.bandwidth[0] * S.round_trip_s
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


def connection(S: State, pair: int) -> int:
    """The place of the window of two ranks, for which there is room, by open addressing."""
    k = pair % S.window_room
    while S.window_pair[k] != pair:
        if S.window_pair[k] == NONE:
            S.window_pair[k] = pair
            S.window_bytes[k] = S.initial_window
            S.window_free[k] = 0.0
            S.windows += 1
        else:
            k = (k + 1) % S.window_room
    return k
