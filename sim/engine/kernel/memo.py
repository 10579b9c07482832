"""What ranks do between two agreements is the same whenever they sum the same gradients: all begin together, and no message is under way.

It is noted once in a run, by events; then ranks pass over it.
"""

from __future__ import annotations

from sim.engine.kernel import state
from sim.engine.kernel.compiling import compiled, in_place
from sim.engine.kernel.records import note_wait
from sim.engine.kernel.ring import sum_samples

NONE = -1
NOTED, KNOWN, UNUSABLE = range(3)


@compiled
def find(S, first, count):
    """The number of what follows the decision to sum so many gradients from that one on; -1 if it has never been played."""
    for n in range(S.decisions):
        decision = state.decision(S, n)
        if decision.first == first and decision.count == count:
            return n
    return NONE


@compiled
def pass_or_note(S, at_s, reduced, least):
    """All ranks agree to sum some gradients: they pass over what follows, or it is noted."""
    n = find(S, reduced % S.variables, least - reduced)
    if n >= 0 and state.decision(S, n).status == KNOWN:
        pass_over(S, n, at_s)
        if reduced % S.variables == 0:
            sum_samples(S)
    elif n < 0 and S.decisions < S.decision_count:
        n = S.decisions
        S.decisions += 1
        decision = state.decision(S, n)
        decision.first, decision.count, decision.status = reduced % S.variables, least - reduced, NOTED
        S.decided, S.decided_s, S.noting = n, at_s, S.ranks
        for q in range(S.ranks):
            state.strand(S, S.ranks + q).notes, state.ending(S, n, q).last = 1, NONE


@compiled
def pass_over(S, n, at_s):
    """Ranks are where it leads them, and have waited as in it."""
    S.events += S.ranks // 4
    for q in range(S.ranks):
        strand, ending = state.strand(S, S.ranks + q), state.ending(S, n, q)
        strand.passes, strand.clock_s, i = 1, at_s + ending.end_s, ending.last
        while i >= 0:
            wait = state.known_wait(S, i)
            note_wait(S, q, max(at_s + wait.from_s, state.rank(S, q).idle_s), at_s + wait.to_s)
            i = wait.before


@in_place
def note_known(S, strand, r, from_s, to_s):
    """A rank waits in what is noted."""
    if strand.notes == 1 and to_s > from_s:
        add_known(S, state.ending(S, S.decided, r), from_s - S.decided_s, to_s - S.decided_s)


@compiled
def add_known(S, ending, from_s, to_s):
    """Note a wait; without room what is noted cannot be used."""
    if S.known_waits == S.known_wait_count:
        state.decision(S, S.decided).status = UNUSABLE
        return
    wait = state.known_wait(S, S.known_waits)
    wait.from_s, wait.to_s, wait.before = from_s, to_s, ending.last
    ending.last = S.known_waits
    S.known_waits += 1


@in_place
def end_noting(S, strand, r):
    """A rank has summed what was agreed on."""
    if strand.notes == 1:
        strand.notes = 0
        state.ending(S, S.decided, r).end_s = strand.clock_s - S.decided_s
        S.noting -= 1
        if S.noting == 0 and state.decision(S, S.decided).status == NOTED:
            state.decision(S, S.decided).status = KNOWN
