"""The heap of events: earlier ones first, then those of lower keys.

Where ranks take time by arithmetic (modes FREE and SHARED), an event at a port has the sender in its key: messages that come together
pass in the order of senders. Where cores are shared the key is a sequence number: events of one moment happen in the order in which
they were scheduled, as those of SimPy do.
"""

from __future__ import annotations

import math

from sim.engine.kernel import state
from sim.engine.kernel.compiling import compiled, in_place

QUANTA = 2.0**40  # of a second, to which arrivals are rounded, so that those within a picosecond are mostly equal
AFTER_MESSAGES = 1 << 61
SENDERS = 40  # bits of a key below the sender's number
EXACT_BELOW_S = 4096.0  # beyond, a double has fewer digits than the quanta


@compiled
def push(S, time_s, key, kind, a, b):
    """Add an event."""
    i = S.scheduled
    S.scheduled = i + 1
    while i > 0:
        above = (i - 1) >> 1
        if not comes_before(time_s, key, state.event(S, above)):
            break
        copy(state.event(S, i), state.event(S, above))
        i = above
    event = state.event(S, i)
    event.time_s, event.key, event.kind, event.a, event.b = time_s, key, kind, a, b


@compiled
def drop(S):
    """Remove the first event.

    The last one takes its place. It mostly belongs at the bottom again: those on the way there come up first, and then it goes up.
    """
    S.scheduled -= 1
    moved, i, below = state.event(S, S.scheduled), 0, 1
    while below < S.scheduled:
        if below + 1 < S.scheduled:
            below += comes_first(state.event(S, below + 1), state.event(S, below))
        copy(state.event(S, i), state.event(S, below))
        i, below = below, 2 * below + 1
    while i > 0 and comes_before(moved.time_s, moved.key, state.event(S, (i - 1) >> 1)):
        copy(state.event(S, i), state.event(S, (i - 1) >> 1))
        i = (i - 1) >> 1
    copy(state.event(S, i), moved)


@in_place
def comes_before(time_s, key, event):
    """Whether an event of that time and key comes before another one."""
    return time_s < event.time_s or (time_s == event.time_s and key < event.key)


@in_place
def comes_first(event, other):
    """Whether an event comes before another one, without a branch, which would be as likely as not."""
    return (event.time_s < other.time_s) | ((event.time_s == other.time_s) & (event.key < other.key))


@in_place
def copy(event, other):
    """Make an event what another one is."""
    event.time_s, event.key, event.kind, event.a, event.b = other.time_s, other.key, other.kind, other.a, other.b


@compiled
def schedule(S, time_s, kind, a, b):
    """An event that comes after all that were scheduled before it for the same moment."""
    S.sequence += 1
    push(S, time_s, S.sequence, kind, a, b)


@compiled
def schedule_after_messages(S, time_s, kind, a, b):
    """An event that comes after messages of the same moment."""
    S.sequence += 1
    push(S, time_s, AFTER_MESSAGES + S.sequence, kind, a, b)


@in_place
def in_turn_s(time_s):
    """A time of which others within a picosecond are mostly equal."""
    return math.floor(time_s * QUANTA + 0.5) / QUANTA if time_s < EXACT_BELOW_S else time_s


@compiled
def schedule_in_turn(S, time_s, sender, kind, a):
    """An event at a port: those that come together go in the order of their senders."""
    S.sequence += 1
    push(S, in_turn_s(time_s), (sender << SENDERS) + S.sequence, kind, a, 0)
