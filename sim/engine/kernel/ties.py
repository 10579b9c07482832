"""Messages that come to a port within a picosecond pass in the order of their senders, though the heap rounds their times."""

from __future__ import annotations

from sim.engine.kernel import state
from sim.engine.kernel.compiling import compiled, in_place
from sim.engine.kernel.heap import SENDERS, copy, drop, push
from sim.engine.kernel.layout import ARRIVE, CONTENDED, LEAVE, LOCAL, TIE_S

NOWHERE = -1


@compiled
def place_of(S, event):
    """The queue of an event at a port, or NOWHERE; and when it truly comes."""
    if event.kind == ARRIVE or event.kind == LOCAL:
        message = state.message(S, event.a)
        return 2 * state.rank(S, message.receiver).host, message.reach_s
    if event.kind == LEAVE:
        strand = state.strand(S, event.a)
        return 2 * state.rank(S, strand.rank).host + 1, strand.leave_s
    return NOWHERE, 0.0


@in_place
def take_first(S):
    """The first event goes to the ties' first place; if others of its port come within TIE_S, that of the lowest sender does."""
    first, following = state.tie(S, 0), state.event(S, 0)
    copy(first, following)
    drop(S)
    apart_s = following.time_s - first.time_s
    if S.mode != CONTENDED and S.scheduled > 0 and apart_s != 0.0 and apart_s <= 2 * TIE_S:
        place, true_s = place_of(S, first)
        if place != NOWHERE:
            take_lowest(S, first, place, true_s)


@compiled
def take_lowest(S, first, place, true_s):
    """Of the events at a port that come together with the first, put the one of the lowest sender in front."""
    time_s, count, best = first.time_s, 1, 0
    while S.scheduled > 0 and state.event(S, 0).time_s - time_s <= 2 * TIE_S and count < S.tie_count:
        other = state.tie(S, count)
        copy(other, state.event(S, 0))
        drop(S)
        at, at_s = place_of(S, other)
        if at == place and at_s - true_s <= TIE_S and other.key >> SENDERS < state.tie(S, best).key >> SENDERS:
            best = count
        count += 1
    for k in range(count):
        if k != best:
            tie = state.tie(S, k)
            push(S, tie.time_s, tie.key, tie.kind, tie.a, tie.b)
    copy(first, state.tie(S, best))
