"""Messages that are delayed on purpose where they are received (sim.verbs.delays): of each rank those that are not due, in order."""

from __future__ import annotations

import math

from sim.engine.kernel import ops, state
from sim.engine.kernel.compiling import compiled
from sim.engine.kernel.layout import DRAWS, ENDS, LETTER, NEXT, SPACE
from sim.engine.kernel.post import NONE


@compiled
def use_delays(S, strand, rank, s, r, line):
    """An instruction about delayed letters."""
    first = rank.delayed
    if line.op == ops.DELAY:
        return delay(S, strand, rank, s, r, line.a)
    if line.op == ops.DUE:
        state.register(S, s, line.a).value = state.delayed(S, first).due_s if first >= 0 else math.inf
        return NEXT
    for i in range(LETTER):
        state.register(S, s, line.a + i).value = state.letter(S, first, i).value
    rank.delayed = state.delayed(S, first).next
    state.free_delayed(S, S.delays_left).value = first
    S.delays_left += 1
    return NEXT


@compiled
def delay(S, strand, rank, s, r, letter):
    """A letter joins those of its rank, behind all that are due before it or at the same time."""
    if rank.came >= S.delay_width:
        return ENDS + DRAWS
    if S.delays_left == 0:
        return ENDS + SPACE
    S.delays_left -= 1
    d = state.free_delayed(S, S.delays_left).value
    due_s = strand.clock_s + state.delay(S, r, rank.came).value
    rank.came += 1
    for i in range(LETTER):
        state.letter(S, d, i).value = state.register(S, s, letter + i).value
    before, after = NONE, rank.delayed
    while after >= 0 and state.delayed(S, after).due_s <= due_s:
        before, after = after, state.delayed(S, after).next
    found = state.delayed(S, d)
    found.due_s, found.next = due_s, after
    if before < 0:
        rank.delayed = d
    else:
        state.delayed(S, before).next = d
    return NEXT
