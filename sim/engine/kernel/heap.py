"""The heap of events: earlier ones first; those of one moment in the order in which they were scheduled, as SimPy's are."""

from __future__ import annotations

from sim.engine.kernel import state
from sim.engine.kernel.compiling import compiled, in_place


@compiled
def schedule(S, time_s, kind, a, b):
    """An event that comes after all that were scheduled before it for the same moment."""
    S.sequence += 1
    i = S.scheduled
    S.scheduled = i + 1
    while i > 0:
        above = (i - 1) >> 1
        if time_s >= state.event(S, above).time_s:
            break
        copy(state.event(S, i), state.event(S, above))
        i = above
    event = state.event(S, i)
    event.time_s, event.number, event.kind, event.a, event.b = time_s, S.sequence, kind, a, b


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
    while i > 0 and comes_first(moved, state.event(S, (i - 1) >> 1)):
        copy(state.event(S, i), state.event(S, (i - 1) >> 1))
        i = (i - 1) >> 1
    copy(state.event(S, i), moved)


@in_place
def comes_first(event, other):
    """Whether an event comes before another one, without a branch, which would be as likely as not."""
    return (event.time_s < other.time_s) | ((event.time_s == other.time_s) & (event.number < other.number))


@in_place
def copy(event, other):
    """Make an event what another one is."""
    event.time_s, event.number, event.kind, event.a, event.b = other.time_s, other.number, other.kind, other.a, other.b
