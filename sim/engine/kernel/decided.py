"""What all ranks do once rank 0 knows which gradients all have: it tells them, and they sum these gradients.

Each rank has a host of its own, whose port passes one message after another, and rank 0 has heard from all: nothing of before is under
way. So what follows is the same for the same gradients, in seconds after that moment. It is played once by events and noted. From then
on ranks pass over it: their instructions run, and take no time until a cycle begins or the step ends, where their clocks are set.

A rank that is done before others may ask for the next cycle, up the tree. Its message may come to a port between the last ones of what
was decided, which are noted for that. Where it makes one of them later, what was noted is not used; where it would have, the run is
begun anew, and ranks no longer pass over what may clash.
"""

from __future__ import annotations

from sim.engine.kernel import state
from sim.engine.kernel.compiling import compiled, in_place
from sim.engine.kernel.layout import CLOCK_S, NEVER_S, ROUND_OFF_S
from sim.engine.kernel.phases import NOTES, OVER, PASSES, PLAYS
from sim.engine.kernel.ports import occupancy_s
from sim.engine.kernel.post import NONE, go_on_later
from sim.engine.kernel.records import note_wait
from sim.engine.kernel.ring import sum_samples

ARRIVALS = 16  # of the last messages at each port
NOTED, KNOWN, CLOSE, UNKNOWN = range(4)  # what follows is being noted; can be used; if nothing comes between; cannot


@compiled
def decide(S, strand, rank):
    """Rank 0 knows what is to be summed. The number of what follows, if ranks can pass over it; else -1."""
    first, count = rank.reduced % S.variables, strand.least - rank.reduced
    for n in range(S.decisions):
        decision = state.decision(S, n)
        if decision.first == first and decision.count == count:
            if NOTED < decision.status < UNKNOWN:
                return n
            forget(S, strand.clock_s)
            return NONE
    forget(S, strand.clock_s)
    if S.decisions < S.decision_count and S.known_waits + S.ranks < S.known_wait_count:
        begin_noting(S, strand, first, count)
    return NONE


@compiled
def forget(S, decided_s):
    """What follows is played by events: no port knows what comes."""
    for r in range(S.ranks):
        rank = state.rank(S, r)
        rank.known, rank.reach_s, rank.met_s = NONE, decided_s, decided_s


@compiled
def begin_noting(S, strand, first, count):
    """Note what all ranks do from now on."""
    decision = state.decision(S, S.decisions)
    decision.first, decision.count, decision.status, decision.sums, decision.table = (
        first,
        count,
        NOTED,
        0,
        strand.table,
    )
    S.decided, S.decided_s, S.noting = S.decisions, strand.clock_s, S.ranks
    S.decisions += 1
    for r in range(S.ranks):
        state.strand(S, S.ranks + r).notes = NOTES
        ending = state.ending(S, S.decided, r)
        ending.told_s, ending.waited_s = -1.0 if r > 0 else 0.0, 0.0
        ending.wait, ending.late, ending.arrivals = NONE, NONE, 0


@in_place
def note_arrival(S, message, rank, r, reach_s):
    """A message has come to a port: one of what was decided, or another one, which must not make one of those later."""
    if message.notes != NOTES:
        rank.met_s = message.end_s
        if rank.known < 0:
            rank.reach_s = reach_s
        return
    rank.reach_s = reach_s
    if S.noting == 0:
        return
    if reach_s < rank.met_s:
        state.decision(S, S.decided).status = UNKNOWN
    ending = state.ending(S, S.decided, r)
    arrival = state.known_arrival(S, S.decided, r * ARRIVALS + ending.arrivals % ARRIVALS)
    arrival.reach_s, arrival.end_s = reach_s - S.decided_s, message.end_s - S.decided_s
    ending.arrivals += 1


@in_place
def comes_between(message, rank, reach_s):
    """Whether a message comes to a port before the last one of what its rank passes over."""
    return message.notes == PLAYS and rank.known >= 0 and reach_s <= rank.reach_s


@compiled
def pass_between(S, rank, r, reach_s, size_bytes):
    """Pass the port into a host between messages of what was decided; when the first byte comes."""
    if rank.known < 0:
        give_up_close_ones(S)
        return reach_s
    n, i = rank.known, state.ending(S, rank.known, r).arrivals - 1
    least, next_s = max(0, i + 1 - ARRIVALS), NEVER_S
    while i >= least and rank.known_s + state.known_arrival(S, n, r * ARRIVALS + i % ARRIVALS).reach_s > reach_s:
        next_s = rank.known_s + state.known_arrival(S, n, r * ARRIVALS + i % ARRIVALS).reach_s
        i -= 1
    before_s = rank.known_s + state.known_arrival(S, n, r * ARRIVALS + i % ARRIVALS).end_s if i >= least else NEVER_S
    begin_s = max(reach_s, max(before_s, rank.met_s))
    rank.met_s = begin_s + occupancy_s(S, size_bytes)
    if rank.met_s > next_s - ROUND_OFF_S:
        give_up_close_ones(S)
    return begin_s


@compiled
def give_up_close_ones(S):
    """Something would have come between: from now on ranks pass over nothing where that may be."""
    S.clash = 1
    for n in range(S.decisions):
        decision = state.decision(S, n)
        if decision.status == CLOSE:
            decision.status = UNKNOWN


@in_place
def note_known_wait(S, strand, r, from_s, to_s):
    """A rank waits, after it has been told."""
    if strand.notes == NOTES:
        add_known_wait(S, state.ending(S, S.decided, r), from_s - S.decided_s, to_s - S.decided_s)


@compiled
def add_known_wait(S, ending, from_s, to_s):
    """Note a wait, the last one first; where there is no room, what was noted cannot be used."""
    if ending.told_s < 0.0:
        ending.told_s = to_s
    elif to_s > from_s:
        if S.known_waits == S.known_wait_count:
            state.decision(S, S.decided).status = UNKNOWN
            return
        wait = state.known_wait(S, S.known_waits)
        wait.from_s, wait.to_s, wait.before = from_s, to_s, ending.wait
        ending.wait = S.known_waits
        S.known_waits += 1


@in_place
def end_sums(S, strand, r):
    """A rank has summed what was decided: note it, or be there."""
    if strand.notes == NOTES:
        note_ending(S, strand, r)
    elif strand.notes == PASSES:
        strand.clock_s, strand.notes = strand.ends_s, PLAYS


@compiled
def note_ending(S, strand, r):
    """Note where a rank and its port are, in seconds after the decision; all of it is known once the last rank is there."""
    ending, port = state.ending(S, S.decided, r), state.port(S, state.rank(S, r).host)
    last = state.known_arrival(S, S.decided, r * ARRIVALS + (ending.arrivals - 1) % ARRIVALS)
    ending.end_s, ending.reach_s = strand.clock_s - S.decided_s, last.reach_s if ending.arrivals > 0 else 0.0
    ending.out_s, ending.in_s = port.out_s - S.decided_s, port.in_s - S.decided_s
    strand.notes = PLAYS
    S.noting -= 1
    if S.noting == 0:
        end_noting(S, state.decision(S, S.decided), S.decided)


@compiled
def end_noting(S, decision, n):
    """All ranks are done."""
    if decision.status == NOTED:
        decision.status = KNOWN
    for r in range(S.ranks):
        if r > 0 and decision.status == KNOWN and may_come_between(S, decision, n, r):
            decision.status = CLOSE
        know(state.rank(S, r), n, S.decided_s, state.ending(S, n, r))
        sum_known_waits(S, state.ending(S, n, r), state.ending(S, n, 0).end_s)


@compiled
def may_come_between(S, decision, n, r):
    """Whether what a rank sends next may come before the last message of what was noted."""
    i = state.rows(S, decision.table, r).first
    while state.row(S, i).to < 0:
        i += 1
    next_s = state.ending(S, n, r).end_s + S.overhead_s / state.rank(S, r).speed + S.latency_s
    return next_s <= state.ending(S, n, state.row(S, i).to).reach_s + CLOCK_S


@compiled
def sum_known_waits(S, ending, first_s):
    """The waits of a rank that were over when rank 0 was done: no update ends in one of them. The others come first in the list."""
    ending.late, p = NONE, ending.wait
    while p >= 0 and state.known_wait(S, p).to_s > first_s:
        ending.late = p
        p = state.known_wait(S, p).before
    while p >= 0:
        wait = state.known_wait(S, p)
        ending.waited_s += wait.to_s - wait.from_s
        ending.from_s = wait.from_s
        p = wait.before


@compiled
def all_wait(S):
    """Whether all ranks but the first wait to be told."""
    for r in range(1, S.ranks):
        if state.inbox(S, r).waiter != S.ranks + r:
            return False
    return True


@compiled
def pass_over(S, strand, n):
    """All ranks pass over what follows."""
    decided_s = strand.clock_s
    if state.decision(S, n).sums:
        sum_samples(S)
    for r in range(S.ranks - 1, -1, -1):
        other, ending, port = state.strand(S, S.ranks + r), state.ending(S, n, r), state.port(S, state.rank(S, r).host)
        note_known_waits(S, other, ending, decided_s, r)
        other.ends_s, other.notes, other.least = decided_s + ending.end_s, PASSES, strand.least
        port.out_s, port.in_s = max(port.out_s, decided_s + ending.out_s), max(port.in_s, decided_s + ending.in_s)
        know(state.rank(S, r), n, decided_s, ending)


@compiled
def are_told(S):
    """Ranks that wait to be told are."""
    for r in range(S.ranks - 1, 0, -1):
        state.inbox(S, r).waiter, state.strand(S, S.ranks + r).phase = NONE, OVER
        go_on_later(S, S.ranks + r)


@in_place
def know(rank, n, decided_s, ending):
    """A rank passes over what it does, and its port knows what comes."""
    rank.known, rank.known_s, rank.reach_s, rank.met_s = n, decided_s, decided_s + ending.reach_s, decided_s


@compiled
def note_known_waits(S, strand, ending, decided_s, r):
    """The waits of a rank, from where it has computed."""
    idle_s = state.rank(S, r).idle_s - decided_s
    if r > 0:
        note_wait(S, r, max(strand.clock_s, state.rank(S, r).idle_s), decided_s + ending.told_s)
    p = ending.wait
    while p >= 0 and p >= ending.late >= 0:
        wait = state.known_wait(S, p)
        note_wait(S, r, decided_s + max(wait.from_s, idle_s), decided_s + wait.to_s)
        p = wait.before
    waited_s = ending.waited_s
    if waited_s > 0.0 and idle_s > ending.from_s:
        waited_s = waited_after(S, p, idle_s)
    rank = state.rank(S, r)
    rank.waited_s += waited_s if S.ends >= S.warm_ends else 0.0
    rank.early_s += waited_s if S.ends >= S.least_ends else 0.0


@compiled
def waited_after(S, p, idle_s):
    """How long a rank waited from then on, by a wait and those before it."""
    waited_s = 0.0
    while p >= 0 and state.known_wait(S, p).to_s > idle_s:
        wait = state.known_wait(S, p)
        waited_s += wait.to_s - max(wait.from_s, idle_s)
        p = wait.before
    return waited_s
