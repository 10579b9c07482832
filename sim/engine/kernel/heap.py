"""The heap of events: earlier ones first; those of one moment in the order in which they were scheduled, as SimPy's are.

Those of the moment that it is now are in a queue: they come after those of the heap, which were scheduled before.
"""

from __future__ import annotations

from sim.engine.kernel import state
from sim.engine.kernel.compiling import compiled, in_place
from sim.engine.kernel.layout import A_BITS, KINDS_BITS

MOST = 2**62  # behind all numbers of events


@in_place
def schedule(S, time_s, kind, a, b):
    """An event that comes after all that were scheduled before it for the same moment."""
    what = kind | (a << KINDS_BITS) | (b << (KINDS_BITS + A_BITS))
    if time_s == S.now_s:
        state.soon(S, place_of(S, S.due)).value = what
        S.due += 1
    else:
        push(S, time_s, next_number(S), what)


@in_place
def next_number(S):
    """The number of an event that is scheduled now."""
    S.sequence += 1
    return S.sequence


@compiled
def push(S, time_s, number, what):
    """Put an event into the heap."""
    i = S.scheduled
    S.scheduled = i + 1
    while i > 0:
        above = state.event(S, (i - 1) >> 2)
        if time_s > above.time_s or (time_s == above.time_s and number > above.number):
            break
        copy(state.event(S, i), above)
        i = (i - 1) >> 2
    event = state.event(S, i)
    event.time_s, event.number, event.what = time_s, number, what


@in_place
def place_of(S, k):
    """Where the k-th event of now is in its queue, which goes round."""
    at = S.due_first + k
    return at - S.soon_count if at >= S.soon_count else at


@in_place
def next_event(S):
    """Take the next event: what happens, and to which two numbers."""
    if S.due > 0 and (S.scheduled == 0 or state.event(S, 0).time_s > S.now_s):
        what = state.soon(S, S.due_first).value
        S.number, S.due_first, S.due = MOST, place_of(S, 1), S.due - 1
    else:
        event = state.event(S, 0)
        S.now_s, S.number, what = event.time_s, event.number, event.what
        drop(S)
    return what & (2**KINDS_BITS - 1), (what >> KINDS_BITS) & (2**A_BITS - 1), what >> (KINDS_BITS + A_BITS)


@compiled
def drop(S):
    """Remove the first event.

    The last one takes its place. It mostly belongs at the bottom again: those on the way there come up first, and then it goes up.
    """
    S.scheduled -= 1
    moved, i, below = state.event(S, S.scheduled), 0, 1
    while below < S.scheduled:
        if below + 3 < S.scheduled:
            best, other = first_of(S, below, below + 1), first_of(S, below + 2, below + 3)
            best = first_of(S, best, other)
        else:
            best = below
            for k in range(below + 1, S.scheduled):
                best = first_of(S, best, k)
        copy(state.event(S, i), state.event(S, best))
        i, below = best, 4 * best + 1
    while i > 0 and comes_first(moved, state.event(S, (i - 1) >> 2)):
        copy(state.event(S, i), state.event(S, (i - 1) >> 2))
        i = (i - 1) >> 2
    copy(state.event(S, i), moved)


@in_place
def first_of(S, i, k):
    """Which of two events comes first, without a branch, which would be as likely as not."""
    return i + (k - i) * comes_first(state.event(S, k), state.event(S, i))


@in_place
def comes_first(event, other):
    """Whether an event comes before another one."""
    return (event.time_s < other.time_s) | ((event.time_s == other.time_s) & (event.number < other.number))


@in_place
def copy(event, other):
    """Make an event what another one is."""
    event.time_s, event.number, event.what = other.time_s, other.number, other.what
