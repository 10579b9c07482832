"""What Horovod's ranks do between two agreements is the same whenever they sum the same gradients by messages: all begin together.

It is noted once in a run, by events; then ranks pass over it.
"""

from __future__ import annotations

from sim.engine.kernel import state
from sim.engine.kernel.compiling import compiled
from sim.engine.kernel.heap import schedule
from sim.engine.kernel.layout import GO
from sim.engine.kernel.records import add_steady, is_steady, note_wait

NONE = -1


@compiled
def pass_or_note(S, at_s, reduced, least):
    """All ranks agree to sum the gradients between two numbers: they pass over what follows, or it is noted."""
    first, n = reduced % S.variables, 0
    while n < S.decisions and (state.decision(S, n).first != first or state.decision(S, n).count != least - reduced):
        n += 1
    if n < S.decisions and state.decision(S, n).is_known:
        pass_over(S, n, at_s, least % S.variables != 0 or is_steady(S))
        if first == 0:
            sum_samples(S)
    elif n == S.decisions < S.decision_count:
        S.decisions, S.decided_s, S.noting, decision = n + 1, at_s, S.ranks, state.decision(S, n)
        decision.first, decision.count = first, least - reduced
        for q in range(S.ranks):
            ending = state.ending(S, n, q)
            state.strand(S, S.ranks + q).notes, ending.last, ending.waited_s = 1, NONE, 0.0


@compiled
def pass_over(S, n, at_s, steady):
    """Each rank goes on where it leads it, and has waited as in it, unless it computes."""
    for q in range(S.ranks):
        rank, ending = state.rank(S, q), state.ending(S, n, q)
        state.strand(S, S.ranks + q).passes, i = 1, ending.last
        schedule(S, at_s + ending.end_s, GO, S.ranks + q, 0)
        if steady and rank.idle_s <= at_s:
            add_steady(S, rank, ending.waited_s)
            continue
        while i >= 0:
            wait = state.known_wait(S, i)
            note_wait(S, q, max(at_s + wait.from_s, rank.idle_s), at_s + wait.to_s)
            i = wait.before


@compiled
def note_known(S, r, from_s, to_s):
    """A rank waits in what is noted, if there is room for that."""
    if to_s > from_s and S.known_waits < S.known_wait_count:
        wait, ending = state.known_wait(S, S.known_waits), state.ending(S, S.decisions - 1, r)
        wait.from_s, wait.to_s, wait.before = from_s - S.decided_s, to_s - S.decided_s, ending.last
        ending.last, ending.waited_s = S.known_waits, ending.waited_s + (to_s - from_s)
        S.known_waits += 1


@compiled
def end_noting(S, strand):
    """A rank has summed what was agreed on; when all have, it is known, unless there was no room for its waits."""
    if strand.notes == 1:
        strand.notes = 0
        state.ending(S, S.decisions - 1, strand.rank).end_s = strand.clock_s - S.decided_s
        S.noting -= 1
        state.decision(S, S.decisions - 1).is_known = S.noting == 0 and S.known_waits < S.known_wait_count


@compiled
def sum_samples(S):
    """All ranks have the samples of all."""
    total = 0.0
    for q in range(S.ranks):
        total += state.rank(S, q).samples
    for q in range(S.ranks):
        state.rank(S, q).samples = total
