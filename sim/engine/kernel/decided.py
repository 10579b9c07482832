"""What all ranks do once rank 0 knows which gradients all have: it tells them, and they sum these gradients.

Each rank has a host of its own, whose port passes one message after another, and rank 0 has heard from all: nothing of before is under
way. So what follows is the same for the same gradients, in seconds after that moment. It is played once and noted: by events, or at once
where they sum by rings (summing.py). From then on ranks pass over it, and their clocks are set.

A rank that is done before others may ask for the next cycle, up the tree. Its message may come to a port between the last ones of what
was decided, which are noted for that. Where it makes one of them later, a ring is played again with it (summing.py). Of other sums what
was noted is not used; where it would have been, the run is begun anew, and ranks no longer pass over what may clash.
"""

from __future__ import annotations

from sim.engine.kernel import state
from sim.engine.kernel.compiling import compiled, in_place
from sim.engine.kernel.layout import CLOCK_S, NEVER_S, ROUND_OFF_S, TIE_S
from sim.engine.kernel.phases import NOTES, OVER, PASSES, PLAYS
from sim.engine.kernel.ports import occupancy_s
from sim.engine.kernel.post import NONE, go_on_later
from sim.engine.kernel.records import note_wait
from sim.engine.kernel.ring import add_waited, is_steady, sum_samples

ARRIVALS = 16  # of the last messages at each port
NOTED, KNOWN, CLOSE, UNKNOWN = range(4)  # what follows is being noted; can be used; if nothing comes between; cannot


@compiled
def find(S, first, count):
    """The number of the decision to sum so many gradients from that one on; -1 if there has been none."""
    n = state.latest(S, first).value - 1
    while n >= 0 and state.decision(S, n).count != count:
        n = state.decision(S, n).before
    return n


@in_place
def can_pass(S, n):
    """Whether ranks can pass over what follows a decision."""
    return n >= 0 and NOTED < state.decision(S, n).status < UNKNOWN


@compiled
def play_by_events(S, n, reduced, least, table):
    """What follows is played by events: no port knows what comes. It is noted if there has been no such decision, and there is room."""
    forget(S)
    if n < 0 and has_room(S, S.ranks):
        begin_noting(S, add_decision(S, reduced % S.variables, least - reduced, table))


@compiled
def forget(S):
    """No port knows what comes."""
    S.known = NONE
    for r in range(S.ranks):
        of = state.cycler(S, r)
        of.reach_s, of.met_s = S.decided_s, S.decided_s


@in_place
def has_room(S, waits):
    """Whether there is room for one more decision, and for so many waits."""
    return S.decisions < S.decision_count and S.known_waits + waits <= S.known_wait_count


@compiled
def add_decision(S, first, count, table):
    """A decision of which nothing is known yet."""
    n = S.decisions
    S.decisions += 1
    decision, latest = state.decision(S, n), state.latest(S, first)
    decision.first, decision.count, decision.status, decision.sums = first, count, NOTED, 0
    decision.table, decision.rings, decision.before = table, 0, latest.value - 1
    latest.value = n + 1
    for r in range(S.ranks):
        ending = state.ending(S, n, r)
        ending.told_s, ending.waited_s, ending.from_s = -1.0 if r > 0 else 0.0, 0.0, 0.0
        ending.first, ending.stop, ending.arrivals = NONE, 0, 0
    return n


@compiled
def begin_noting(S, n):
    """Note what all ranks do from now on."""
    S.decided, S.noting, S.heard_waits = n, S.ranks, 0
    for r in range(S.ranks):
        state.strand(S, S.ranks + r).notes = NOTES


@in_place
def note_arrival(S, message, of, r, reach_s):
    """A message has come to a port: one of what was decided, or another one, which must not make one of those later."""
    if message.notes != NOTES:
        of.met_s = message.end_s
        if S.known < 0:
            of.reach_s = reach_s
        return
    of.reach_s = reach_s
    if S.noting == 0:
        return
    if reach_s < of.met_s:
        state.decision(S, S.decided).status = UNKNOWN
    add_arrival(S, S.decided, r, reach_s - S.decided_s, message.end_s - S.decided_s)


@in_place
def add_arrival(S, n, r, reach_s, end_s):
    """A message comes to a port after a decision."""
    ending = state.ending(S, n, r)
    arrival = state.known_arrival(S, n, r * ARRIVALS + ending.arrivals % ARRIVALS)
    arrival.reach_s, arrival.end_s, ending.reach_s = reach_s, end_s, reach_s
    ending.arrivals += 1


@in_place
def comes_between(S, message, of, reach_s):
    """Whether a message comes to a port before the last one of what its rank passes over."""
    return message.notes == PLAYS and S.known >= 0 and reach_s <= of.reach_s


@compiled
def pass_between(S, of, r, reach_s, size_bytes):
    """Pass the port into a host between messages of what was decided; when the first byte comes. Whether it meets one is in S.meets."""
    n, i = S.known, state.ending(S, S.known, r).arrivals - 1
    least, next_s = max(0, i + 1 - ARRIVALS), NEVER_S
    while i >= least and S.known_s + state.known_arrival(S, n, r * ARRIVALS + i % ARRIVALS).reach_s > reach_s:
        next_s = S.known_s + state.known_arrival(S, n, r * ARRIVALS + i % ARRIVALS).reach_s
        i -= 1
    before_s = NEVER_S
    if i >= least:
        arrival = state.known_arrival(S, n, r * ARRIVALS + i % ARRIVALS)
        before_s = S.known_s + arrival.end_s
        if r == 0 and state.decision(S, n).rings and reach_s - S.known_s - arrival.reach_s <= TIE_S:
            S.meets = 1  # the ring's sender is the last rank
    begin_s = max(reach_s, max(before_s, of.met_s))
    of.met_s = begin_s + occupancy_s(S, size_bytes)
    if of.met_s > next_s - ROUND_OFF_S:
        S.meets = 1
    return begin_s


@compiled
def pass_or_give_up(S, of, r, reach_s, size_bytes):
    """The same of a message that comes by an event."""
    begin_s = pass_between(S, of, r, reach_s, size_bytes)
    if S.meets:
        give_up_close_ones(S)
    return begin_s


@compiled
def give_up_close_ones(S):
    """Something would have come between: from now on ranks pass over nothing where that may be."""
    S.clash, S.meets = 1, 0
    for n in range(S.decisions):
        decision = state.decision(S, n)
        if decision.status == CLOSE:
            decision.status = UNKNOWN


@in_place
def note_known_wait(S, strand, r, from_s, to_s):
    """A rank waits, after it has been told."""
    if strand.notes == NOTES:
        add_heard_wait(S, state.ending(S, S.decided, r), from_s - S.decided_s, to_s - S.decided_s)


@compiled
def add_heard_wait(S, ending, from_s, to_s):
    """Note a wait, the last one first; where there is no room, what was noted cannot be used."""
    if ending.told_s < 0.0:
        ending.told_s = to_s
    elif to_s > from_s:
        if S.heard_waits == S.heard_wait_count:
            state.decision(S, S.decided).status = UNKNOWN
            return
        wait = state.heard_wait(S, S.heard_waits)
        wait.from_s, wait.to_s, wait.before = from_s, to_s, ending.first
        ending.first = S.heard_waits
        ending.stop += 1
        S.heard_waits += 1


@in_place
def end_sums(S, strand, r):
    """A rank has summed what was decided: note it, or go on as others do."""
    if strand.notes == NOTES:
        note_ending(S, strand, r)
    elif strand.notes == PASSES:
        strand.notes = NOTES if strand.asked and S.noting > 0 else PLAYS


@compiled
def note_ending(S, strand, r):
    """Note where a rank and its port are, in seconds after the decision; all of it is known once the last rank is there."""
    ending, port = state.ending(S, S.decided, r), state.port(S, state.rank(S, r).host)
    ending.end_s, ending.out_s, ending.in_s = (
        strand.clock_s - S.decided_s,
        port.out_s - S.decided_s,
        port.in_s - S.decided_s,
    )
    if ending.arrivals == 0:
        ending.reach_s = 0.0
    strand.notes = PLAYS
    S.noting -= 1
    if S.noting == 0:
        for q in range(S.ranks):
            take_heard_waits(S, state.ending(S, S.decided, q))
        end_noting(S, S.decided)
        know(S, S.decided)


@compiled
def take_heard_waits(S, ending):
    """The waits of a rank, one after another."""
    p, count = ending.first, ending.stop
    if S.known_waits + count > S.known_wait_count:
        state.decision(S, S.decided).status = UNKNOWN
        count, p = 0, NONE
    ending.first, ending.stop = S.known_waits, S.known_waits + count
    S.known_waits += count
    for i in range(ending.stop - 1, ending.first - 1, -1):
        wait, heard = state.known_wait(S, i), state.heard_wait(S, p)
        wait.from_s, wait.to_s = heard.from_s, heard.to_s
        p = heard.before


@compiled
def end_noting(S, n):
    """All ranks are done."""
    decision = state.decision(S, n)
    if decision.status == NOTED:
        decision.status = KNOWN
    for r in range(S.ranks):
        if r > 0 and decision.status == KNOWN and may_come_between(S, decision, n, r):
            decision.status = CLOSE
        add_up_after(S, state.ending(S, n, r))


@compiled
def may_come_between(S, decision, n, r):
    """Whether what a rank sends next may come before the last message of what was noted."""
    i = state.rows(S, decision.table, r).first
    while state.row(S, i).to < 0:
        i += 1
    next_s = state.ending(S, n, r).end_s + S.overhead_s / state.rank(S, r).speed + S.latency_s
    return next_s <= state.ending(S, n, state.row(S, i).to).reach_s + CLOCK_S


@compiled
def add_up_after(S, ending):
    """How long a rank waits from each of its waits on."""
    after_s = 0.0
    for i in range(ending.stop - 1, ending.first - 1, -1):
        wait = state.known_wait(S, i)
        after_s += max(0.0, wait.to_s - wait.from_s)
        wait.after_s = after_s
    if ending.stop > ending.first:
        ending.waited_s, ending.from_s = after_s, state.known_wait(S, ending.first).from_s


@compiled
def know(S, n):
    """Ports know what comes."""
    S.known, S.known_s = n, S.decided_s
    for r in range(S.ranks):
        of = state.cycler(S, r)
        of.reach_s, of.met_s = S.decided_s + state.ending(S, n, r).reach_s, S.decided_s


@compiled
def all_wait(S):
    """Whether all ranks but the first wait to be told."""
    for r in range(1, S.ranks):
        if state.inbox(S, r).waiter != S.ranks + r:
            return False
    return True


@compiled
def load(S):
    """Where ranks are, and their ports."""
    for r in range(S.ranks):
        of, strand, rank = state.cycler(S, r), state.strand(S, S.ranks + r), state.rank(S, r)
        port = state.port(S, rank.host)
        of.clock_s, of.out_s, of.in_s, of.cycle_s = strand.clock_s, port.out_s, port.in_s, strand.cycle_s
        of.idle_s, of.waited_s, of.speed, of.overhead_s = rank.idle_s, 0.0, rank.speed, S.overhead_s / rank.speed
        of.ready = of.passed = 0


@compiled
def store(S, reduced, notes):
    """The same back; ranks have passed over all before the gradient `reduced`."""
    for r in range(S.ranks):
        of, strand, rank = state.cycler(S, r), state.strand(S, S.ranks + r), state.rank(S, r)
        port = state.port(S, rank.host)
        strand.clock_s, port.out_s, port.in_s, strand.cycle_s = of.clock_s, of.out_s, of.in_s, of.cycle_s
        strand.passed, strand.notes = reduced, notes
        add_waited(S, rank, of.waited_s)


@compiled
def pass_over(S, n, is_last):
    """All ranks pass over what follows: the last sums of a step, or others."""
    decided_s, first_s = S.decided_s, state.ending(S, n, 0).end_s
    singly = is_last and not is_steady(S)
    if state.decision(S, n).sums:
        sum_samples(S)
    S.known, S.known_s = n, decided_s
    S.events += S.ranks // 4
    for r in range(S.ranks):
        of, ending = state.cycler(S, r), state.ending(S, n, r)
        if r > 0:
            of.waited_s += max(0.0, decided_s + ending.told_s - max(of.clock_s, of.idle_s))
        if singly:
            note_known_waits(S, of, ending, decided_s, first_s, r)
        elif of.idle_s <= decided_s + ending.from_s:
            of.waited_s += ending.waited_s
        elif of.idle_s < decided_s + ending.end_s:
            of.waited_s += waited_after(S, ending, ending.stop, of.idle_s - decided_s)
        of.clock_s = decided_s + ending.end_s
        of.out_s, of.in_s = max(of.out_s, decided_s + ending.out_s), max(of.in_s, decided_s + ending.in_s)
        of.reach_s, of.met_s = decided_s + ending.reach_s, decided_s


@compiled
def are_told(S):
    """Ranks that wait to be told are."""
    for r in range(S.ranks - 1, 0, -1):
        state.inbox(S, r).waiter, state.strand(S, S.ranks + r).phase = NONE, OVER
        go_on_later(S, S.ranks + r)


@compiled
def note_known_waits(S, of, ending, decided_s, first_s, r):
    """The waits of a rank, from where it has computed; one by one where rank 0 is done before they end, as an update may end in them."""
    idle_s, stop = of.idle_s - decided_s, ending.stop
    while stop > ending.first and state.known_wait(S, stop - 1).to_s > first_s:
        stop -= 1
        wait = state.known_wait(S, stop)
        note_wait(S, r, decided_s + max(wait.from_s, idle_s), decided_s + wait.to_s)
    of.waited_s += waited_after(S, ending, stop, idle_s)


@compiled
def waited_after(S, ending, stop, idle_s):
    """How long a rank waits from then on, by its waits before one of them."""
    low, high = ending.first, stop
    while low < high:
        middle = (low + high) // 2
        if state.known_wait(S, middle).to_s > idle_s:
            high = middle
        else:
            low = middle + 1
    if low == stop:
        return 0.0
    wait = state.known_wait(S, low)
    behind_s = state.known_wait(S, stop).after_s if stop < ending.stop else 0.0
    return wait.after_s - behind_s - min(max(0.0, idle_s - wait.from_s), max(0.0, wait.to_s - wait.from_s))
