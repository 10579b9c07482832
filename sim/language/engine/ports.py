"""Messages on their way: through the ports of a path, each for the seconds that its bytes take there (LogGP).

A rank has a place at each level: its own or its host's port, the uplink of its rack. A path goes out at the levels below the first
that both ends have in common, and in at the same levels downwards.
"""

from __future__ import annotations

from sim.language.engine.heap import arrives_at, push, reaches_at
from sim.language.engine.idle import moves
from sim.language.engine.layout import KINDS, MOVES, State
from sim.language.engine.plain import compiled, double, integer


@compiled
def climb_of(S: State, sender: integer, to: integer) -> integer:
    """How many levels a path between two hosts goes up."""
    climb: integer = 1
    while climb < S.levels and S.place[climb * S.ranks + sender] != S.place[climb * S.ranks + to]:
        climb += 1
    return climb


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
def leave(S: State, message: integer) -> double:
    """A message is posted; when its last byte has left the sender."""
    sender: integer = S.message_from[message]
    port: integer
    begin: double
    if S.rank_host[sender] == S.rank_host[S.message_to[message]]:
        begin = later(S.now, S.local_free[sender])
        S.local_free[sender] = begin + (S.gap_s + S.message_bytes[message] / S.local_bandwidth)
        comes(S, message, begin, S.local_free[sender] + S.local_latency_s)
        moves(S, sender, S.local_free[sender])
        return S.local_free[sender]
    port = S.place[sender]
    begin = later(S.now, S.out_free[port])
    S.out_free[port] = begin + (S.gap_s + S.message_bytes[message] / S.bandwidth[0])
    S.message_passed[message] = S.out_free[port] + S.latency_s
    S.message_hop[message] = 1
    reaches_at(S, message, begin + S.latency_s)
    moves(S, sender, S.out_free[port])
    return S.out_free[port]


@compiled
def reach(S: State, message: integer) -> None:
    """A message reaches the next port of its path, and takes its turn there."""
    sender: integer = S.message_from[message]
    to: integer = S.message_to[message]
    hop: integer = S.message_hop[message]
    climb: integer = climb_of(S, sender, to) if S.levels > 1 else 1
    level: integer = hop if hop < climb else 2 * climb - 1 - hop
    port: integer = level * S.ranks + S.place[level * S.ranks + (sender if hop < climb else to)]
    begin: double = later(S.now, S.out_free[port] if hop < climb else S.in_free[port])
    free: double = begin + (S.gap_s + S.message_bytes[message] / S.bandwidth[level])
    end: double = later(S.message_passed[message], free)
    if hop < climb:
        S.out_free[port] = free
    else:
        S.in_free[port] = free
    if hop == 2 * climb - 1:
        comes(S, message, begin, end)
    else:
        S.message_passed[message] = end + S.latency_s
        S.message_hop[message] = hop + 1
        reaches_at(S, message, begin + S.latency_s)
