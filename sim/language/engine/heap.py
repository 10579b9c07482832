"""Events in order: by time; at one instant by rank, number of the text and count of its requests, which are one key."""

from __future__ import annotations

from sim.language.engine.layout import ARRIVES, GOES_ON, KINDS, REACHES, State


def key_of(S: State, rank: int, number: int, count: int) -> int:
    """The key of a request."""
    return (((rank << S.text_bits) | number) << S.count_bits) | count


def push(S: State, time: float, key: int, what: int) -> None:
    """Add an event."""
    k = S.events
    S.events = k + 1
    while k > 0:
        up = (k - 1) >> 1
        if S.heap_time[up] < time or (S.heap_time[up] == time and S.heap_key[up] <= key):
            break
        S.heap_time[k] = S.heap_time[up]
        S.heap_key[k] = S.heap_key[up]
        S.heap_what[k] = S.heap_what[up]
        k = up
    S.heap_time[k] = time
    S.heap_key[k] = key
    S.heap_what[k] = what


def pop(S: State) -> None:
    """Remove the first event."""
    n = S.events - 1
    k = 0
    low = 1
    time = S.heap_time[n]
    key = S.heap_key[n]
    S.events = n
    while low < n:
        if low + 1 < n and (
            S.heap_time[low + 1] < S.heap_time[low]
            or (S.heap_time[low + 1] == S.heap_time[low] and S.heap_key[low + 1] < S.heap_key[low])
        ):
            low += 1
        if time < S.heap_time[low] or (time == S.heap_time[low] and key <= S.heap_key[low]):
            break
        S.heap_time[k] = S.heap_time[low]
        S.heap_key[k] = S.heap_key[low]
        S.heap_what[k] = S.heap_what[low]
        k = low
        low = 2 * k + 1
    S.heap_time[k] = time
    S.heap_key[k] = key
    S.heap_what[k] = S.heap_what[n]


def is_full(S: State) -> bool:
    """Whether one event might bring more of them than there is room for."""
    messages = S.message_room if S.shares_ports else 0
    return S.events + 4 * S.texts + messages + 8 > S.event_room


def goes_on_at(S: State, t: int, time: float) -> None:
    """Text t goes on at a time; an earlier plan of it is void."""
    S.text_due[t] = time
    S.text_key[t] = key_of(S, S.text_rank[t], S.text_number[t], S.text_count[t])
    push(S, time, S.text_key[t], t * KINDS + GOES_ON)


def reaches_at(S: State, message: int, time: float) -> None:
    """A message reaches the next port of its path."""
    push(S, time, S.message_key[message], message * KINDS + REACHES)


def arrives_at(S: State, message: int, time: float) -> None:
    """A message will be there."""
    push(S, time, S.message_key[message], message * KINDS + ARRIVES)
