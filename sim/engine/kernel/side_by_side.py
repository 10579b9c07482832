"""Several things that are added or updated at once, each on a core of its own as long as there are free ones: rows of sparse variables."""

from __future__ import annotations

from sim.engine.kernel import state
from sim.engine.kernel.compiling import compiled, in_place
from sim.engine.kernel.cores import work
from sim.engine.kernel.heap import schedule
from sim.engine.kernel.layout import CONTENDED, GO, HOP, NEXT, ROUND_OFF_S, TOGETHER, WAITS


@in_place
def at_once(S, strand, rank, seconds):
    """Parts of an addition or an update, side by side: an event even if they take no time."""
    if S.mode != CONTENDED:
        if seconds > ROUND_OFF_S:
            strand.clock_s += seconds / rank.speed
            rank.applied_s += seconds
        return NEXT
    strand.phase, strand.spend_s, strand.began_s = 1, seconds, strand.clock_s
    if seconds > ROUND_OFF_S:
        return TOGETHER
    schedule(S, S.now_s, GO, strand.number, 0)
    return WAITS


@compiled
def do_sides(S, strand, rank, r, amount, factor, further_s):
    """Do all parts of a gradient of so many minibatches, or of an update: seconds times a factor, and some more for the first."""
    parts = state.sides(S, amount, min(r, S.first))
    if S.mode == CONTENDED:
        return begin_sides(S, strand, rank, r, parts, factor, further_s)
    all_s = longest_s = 0.0
    for i in range(parts.first, parts.stop):
        seconds = state.side_s(S, i).value * factor + (further_s if i == parts.first else 0.0)
        all_s += seconds
        longest_s = max(longest_s, seconds)
    return at_once(S, strand, rank, all_s if rank.cores == 1 else longest_s)


@compiled
def begin_sides(S, strand, rank, r, parts, factor, further_s):
    """The same as events; the strand goes on when all are done."""
    who = S.ranks if parts.stop - parts.first > 1 or S.threaded else r
    strand.phase, strand.pending, strand.began_s = 1, 0, strand.clock_s
    for i in range(parts.first, parts.stop):
        seconds = state.side_s(S, i).value * factor + (further_s if i == parts.first else 0.0)
        if seconds > ROUND_OFF_S:
            strand.pending += 1
            work(S, rank.group, seconds, who, strand.number, HOP)
    if strand.pending == 0:
        schedule(S, S.now_s, GO, strand.number, 0)
    return WAITS
