"""The gradient or sum that a rank of a user's text has at hand (sim.verbs.at_hand): a mistake ends the run, for the event world to name."""

from __future__ import annotations

from sim.engine.kernel import layout, ops, state
from sim.engine.kernel.compiling import compiled
from sim.engine.kernel.layout import ENDS, NEXT, WRONG
from sim.engine.kernel.memory import read

NOTHING, GRADIENT, SUM = range(3)


@compiled
def may_compute(S, rank, s, r, line):
    """A gradient, or a part of one, is about to be computed: whether none is lost."""
    if line.op == ops.PART and not 0 <= read(S, s, r, line.a) < line.b:
        return False
    goes_on = line.op == ops.PART and read(S, s, r, line.a) > 0.0
    if rank.hand != (GRADIENT if goes_on else NOTHING):
        return False
    rank.hand = GRADIENT
    return True


@compiled
def may_add(S, rank, s, r, line):
    """The gradient of a letter is about to be added: whether it is one, and new. What was handed on is not added to."""
    number = int(state.register(S, s, line.a + layout.L_NUMBER).value)
    absent = state.register(S, s, line.a + layout.L_SENDER).value < 0.0
    if absent or state.register(S, s, line.a + layout.L_NOTE).value != 0.0 or number == rank.added:
        return False
    if r >= S.first and rank.hand == NOTHING:
        rank.samples, rank.minibatches = 0.0, 0.0
    rank.hand, rank.added = SUM, number
    return True


@compiled
def begin_sum(S, rank):
    """A gradient is about to be summed with those of all."""
    if S.own and rank.hand == SUM:
        return ENDS + WRONG
    rank.hand = SUM
    return NEXT


@compiled
def may_update(S, rank, r):
    """New parameters are about to be made: whether of something, and, where rank 0's number the steps, one in each."""
    numbered = S.counts_updates == 0 and r == 0
    if rank.samples == 0.0 or (numbered and rank.step != rank.version):
        return False
    rank.hand = NOTHING
    return True
