"""Messages of rank 0 to others, to whose ports nobody else sends: each is at its port's end at once, though it may be of a later time.

Events would say the same, since messages of one sender come in order. When a job is such a star is said by sim.engine.arrays.hub.
"""

from __future__ import annotations

from sim.engine.kernel import state
from sim.engine.kernel.compiling import compiled, in_place
from sim.engine.kernel.layout import CLOCK_S, NEVER_S
from sim.engine.kernel.ports import pass_in
from sim.engine.kernel.post import NONE, go_on_later, keep, wanted


@compiled
def deliver(S, m):
    """A message passes its receiver's port, and is taken by who waits for it until then."""
    message = state.message(S, m)
    rank, inbox = state.rank(S, message.receiver), state.inbox(S, message.receiver)
    message.begin_s, end_s = pass_in(S, state.port(S, rank.host), message.bytes, message.reach_s)
    message.end_s, s = end_s, inbox.waiter
    S.events += 1
    if rank.ended == 1:
        return
    if s < 0 or not wanted(S, state.strand(S, s), inbox, message.sender) or comes_late(S, s, message):
        keep(S, inbox, m)
    else:
        inbox.waiter, state.strand(S, s).message = NONE, m
        go_on_later(S, s)


@in_place
def comes_late(S, s, message):
    """Whether a message comes after a strand has ceased to wait for it."""
    strand = state.strand(S, s)
    line = state.instruction(S, strand.pc)
    return message.reach_s > limit_s(S, strand, s, line)


@in_place
def limit_s(S, strand, s, line):
    """Until when a message may come that RECV takes: its deadline, or a moment before now."""
    if line.e == 0:
        return NEVER_S
    until_s = state.register(S, s, line.e - 1).value
    return until_s if until_s > strand.clock_s else max(S.now_s, strand.clock_s - CLOCK_S)
