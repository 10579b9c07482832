"""The heap of events, the seconds in which ranks are idle, and the numbers that are drawn for them.

Events go by time; at one instant by rank, number of the text and count of its requests, which are one key. A rank is idle while none of
its texts works or sleeps, and no bytes of it move. sim.language.event.ranks says what is charged where a rank has gone cold.
"""

from __future__ import annotations

import math

from sim.language.engine import layout as op
from sim.language.engine.layout import KINDS, NONE, State


def key_of(S: State, t: int) -> int:
    """The key of the last request of text t."""
    return (((S.text_rank[t] << S.text_bits) | S.text_number[t]) << S.count_bits) | S.text_count[t]


def push(S: State, time: float, key: int, what: int) -> None:
    """Add an event: in place of the first, where that has just happened."""
    k = S.events
    if S.hole:
        S.hole = 0
        sink(S, k, time, key, what)
        return
    S.events = k + 1
    while k > 0 and is_sooner(time, key, S.heap_time[(k - 1) >> 1], S.heap_key[(k - 1) >> 1]):
        up = (k - 1) >> 1
        write(S, k, S.heap_time[up], S.heap_key[up], S.heap_what[up])
        k = up
    write(S, k, time, key, what)


def first(S: State) -> int:
    """What the first of all events is, once the last has taken the place of one that has happened; NONE without any."""
    n = S.events - S.hole
    if S.hole:
        S.hole = 0
        S.events = n
        sink(S, n, S.heap_time[n], S.heap_key[n], S.heap_what[n])
    return S.heap_what[0] if n > 0 else NONE


def is_sooner(time: float, key: int, other: float, other_key: int) -> bool:
    """Whether an event comes before another one: by no jump, as nobody guesses it."""
    return (time < other) | ((time == other) & (key < other_key))


def sink(S: State, n: int, time: float, key: int, what: int) -> None:
    """Put an event in place of the first of n."""
    k = 0
    low = 1
    write(S, n, time, key, what)
    while low < n:  # behind the last is the one to be placed
        low += is_sooner(S.heap_time[low + 1], S.heap_key[low + 1], S.heap_time[low], S.heap_key[low])
        if not is_sooner(S.heap_time[low], S.heap_key[low], time, key):
            break
        write(S, k, S.heap_time[low], S.heap_key[low], S.heap_what[low])
        k = low
        low = 2 * k + 1
    write(S, k, time, key, what)


def write(S: State, k: int, time: float, key: int, what: int) -> None:
    """Write an event to a place of the heap."""
    S.heap_time[k] = time
    S.heap_key[k] = key
    S.heap_what[k] = what


def is_full(S: State) -> bool:
    """Whether one event might bring more of them than there is room for."""
    messages = S.message_room if S.shares_ports else 0
    return S.events + 4 * S.texts + messages + 8 > S.event_room


def goes_on_at(S: State, t: int, time: float) -> None:
    """Text t goes on at a time; an earlier plan of it is void."""
    S.text_due[t] = time
    push(S, time, key_of(S, t), t * KINDS + op.GOES_ON)


def arrives_at(S: State, message: int, time: float) -> None:
    """A message will be there."""
    push(S, time, S.message_key[message], message * KINDS + op.ARRIVES)


def without(S: State, first: int, t: int) -> int:
    """The first of a chain of texts that text t is taken out of, if it is in it."""
    one = first
    if first == t:
        return S.text_next[t]
    while one != NONE and S.text_next[one] != t:
        one = S.text_next[one]
    if one != NONE:
        S.text_next[one] = S.text_next[t]
    return first


def ending(S: State, first: int, t: int) -> int:
    """The first of a chain of texts that ends with text t from now on."""
    one = first
    S.text_next[t] = NONE
    if first == NONE:
        return t
    while S.text_next[one] != NONE:
        one = S.text_next[one]
    S.text_next[one] = t
    return first


def moves(S: State, rank: int, until: float) -> None:
    """Bytes of a rank move from now until then. If it has been idle, that is counted: by what is measured now, later by what is then."""
    if not S.rank_busy[rank] and S.rank_since[rank] < S.now:
        if S.rank_counted[rank] <= max(S.measured_from, S.measured_to):
            S.rank_idle[rank] += S.rank_idle_after[rank]
            S.rank_idle_after[rank] = 0.0
        if S.rank_counted[rank] <= S.measured_from:
            S.rank_idle[rank] = 0.0
        begin = max(S.rank_since[rank], S.measured_from)
        middle = max(begin, S.measured_to)
        S.rank_counted[rank] = S.now
        if S.rank_main[rank]:
            S.rank_idle[rank] += middle - begin
            S.rank_idle_after[rank] += S.now - middle
    S.rank_since[rank] = max(S.rank_since[rank], until)


def works(S: State, rank: int, more: int) -> None:
    """So many texts of the rank more, or less, sleep, compute or wait for a core, or so many messages whose bytes move there."""
    moves(S, rank, S.now)
    S.rank_busy[rank] += more


def is_drawn(S: State, of: int, rank: int, k: int) -> bool:
    """Whether the k-th number of a kind is there for a rank."""
    return S.factor_sole[of] >= 0.0 or k < S.factor_room[of * S.ranks + rank]


def drawn(S: State, of: int, rank: int, k: int) -> float:
    """The k-th number of a kind for a rank."""
    if S.factor_sole[of] >= 0.0:
        return S.factor_sole[of]
    return S.factors[S.factor_begin[of * S.ranks + rank] + k * S.factor_far[of]]


def cold(S: State, rank: int, seconds: float) -> float:
    """Seconds more of a rank that takes so many where it is all cold."""
    idle = min(max(S.now - S.rank_warm[rank], S.cold_from_s), S.cold_after_s)
    if seconds == 0.0:
        return 0.0
    return seconds * (math.log(idle / S.cold_from_s) / math.log(S.cold_after_s / S.cold_from_s))
