"""What ranks do between two agreements is the same whenever they sum the same gradients: all begin together, and no message is under way.

It is noted once, by events, in a run or in one before of the same job (sim.engine.job.Notes); then ranks pass over it.
"""

from __future__ import annotations

from sim.engine.kernel import state
from sim.engine.kernel.compiling import compiled, in_place
from sim.engine.kernel.records import add_steady, is_steady, note_wait

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
    steady = least % S.variables != 0 or is_steady(S)  # all agree once more before the next update
    if n >= 0 and state.decision(S, n).status == KNOWN and may_pass(S, n, at_s, steady):
        pass_over(S, n, at_s, steady)
        if reduced % S.variables == 0:
            sum_samples(S)
    elif n < 0 and S.decisions < S.decision_count:
        n = S.decisions
        S.decisions += 1
        decision = state.decision(S, n)
        decision.first, decision.count = reduced % S.variables, least - reduced
        decision.status, decision.whole = NOTED, 0
        S.decided, S.decided_s, S.noting = n, at_s, S.ranks
        for q in range(S.ranks):
            ending = state.ending(S, n, q)
            state.strand(S, S.ranks + q).notes, ending.last, ending.waited_s = 1, NONE, 0.0


@compiled
def may_pass(S, n, at_s, steady):
    """Whether it is known how long each rank has waited in it: in a ring, all of it together."""
    if state.decision(S, n).whole == 0:
        return True
    for q in range(S.ranks):
        if at_s < state.rank(S, q).idle_s < at_s + state.ending(S, n, q).end_s:  # it computes until then
            return False
    return steady


@compiled
def pass_over(S, n, at_s, steady):
    """Ranks are where it leads them, and have waited as in it."""
    S.events += S.ranks // 4
    for q in range(S.ranks):
        strand, rank, ending = state.strand(S, S.ranks + q), state.rank(S, q), state.ending(S, n, q)
        strand.passes, strand.clock_s, idle_s = 1, at_s + ending.end_s, rank.idle_s - at_s
        if steady and idle_s <= 0.0:
            add_steady(S, rank, ending.waited_s)
        elif idle_s < ending.end_s:
            add_in_part(S, q, at_s, ending.last, idle_s, steady)


@compiled
def add_in_part(S, q, at_s, i, idle_s, steady):
    """A rank has waited from when it was idle on, or before or after the end of a step."""
    waited_s = 0.0
    while i >= 0:
        wait = state.known_wait(S, i)
        from_s, i = max(wait.from_s, idle_s), wait.before
        if steady:
            waited_s += max(0.0, wait.to_s - from_s)
        else:
            note_wait(S, q, at_s + from_s, at_s + wait.to_s)
    add_steady(S, state.rank(S, q), waited_s)


@compiled
def note_known(S, r, from_s, to_s):
    """A rank waits in what is noted; without room for that, it cannot be used."""
    if to_s <= from_s:
        return
    if S.known_waits == S.known_wait_count:
        state.decision(S, S.decided).status = UNUSABLE
        return
    wait, ending = state.known_wait(S, S.known_waits), state.ending(S, S.decided, r)
    wait.from_s, wait.to_s, wait.before = from_s - S.decided_s, to_s - S.decided_s, ending.last
    ending.last, ending.waited_s = S.known_waits, ending.waited_s + (to_s - from_s)
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


@compiled
def sum_samples(S):
    """All ranks have the samples of all."""
    total = 0.0
    for q in range(S.ranks):
        total += state.rank(S, q).samples
    for q in range(S.ranks):
        state.rank(S, q).samples = total
