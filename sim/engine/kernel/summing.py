"""What follows a decision, played at once where all gradients are summed by rings: ranks are told along the tree, and sum buffer by buffer.

A port has the answer and the messages of one sender then, if the answer comes first. Requests of the next cycle may come between a
ring's last messages: its last turns are played again with them, from where ranks were before.
"""

from __future__ import annotations

from sim.engine.kernel import layout, state
from sim.engine.kernel.buffers import ITEM_BYTES, next_buffer, table_of
from sim.engine.kernel.compiling import compiled, in_place
from sim.engine.kernel.decided import add_arrival, add_decision, end_noting, has_room
from sim.engine.kernel.layout import (
    BEGIN,
    CLOCK,
    IDLE,
    IN,
    KEPT,
    LEFT,
    MOVED,
    NEVER_S,
    OUT,
    ROUND_OFF_S,
    TAKES,
    TIE_S,
    WAITED,
)
from sim.engine.kernel.ports import occupancy_s
from sim.engine.kernel.post import NONE
from sim.engine.kernel.ring import (
    come_round,
    count_turns,
    cut,
    hand_on,
    is_steady,
    pace,
    play_turn,
    play_turns,
    set_out,
    spend,
    sum_samples,
    take_in,
    wait,
)
from sim.engine.kernel.work import seconds_of

PLAYED = -2  # all of what follows
TAIL = 32  # turns of a ring that are played again


@compiled
def sum_by_rings(S, n, reduced, least, is_last):
    """Play what follows, or note it, so that ranks can pass over it: the decision's number. -1 if it takes events."""
    if not are_rings(S, reduced, least):
        return NONE
    keep(S)
    tell(S)
    load_lanes(S)
    if not come_later(S, reduced, least):
        take_back(S)
        return NONE
    turns = turns_of(S, reduced, least)
    if n < 0 and has_room(S, S.ranks * turns):
        n = note(S, add_decision(S, reduced % S.variables, least - reduced, S.tree), reduced, least, turns)
        take_back(S)
        return n
    if is_last and not is_steady(S):
        play_buffers(S, reduced, least, NEVER_S)
        until_s = state.lane(S, CLOCK, 0).value
        load_lanes(S)
        play_buffers(S, reduced, least, until_s)
    else:
        play_buffers(S, reduced, least, NEVER_S)
    leave(S)
    if reduced % S.variables == 0:
        sum_samples(S)
    return PLAYED


@compiled
def play_again(S, reduced, least):
    """Play what was passed over; whether that can be."""
    tell(S)
    load_lanes(S)
    if not come_later(S, reduced, least):
        return False
    play_buffers(S, reduced, least, NEVER_S)
    leave(S)
    return True


@compiled
def are_rings(S, n, least):
    """Whether gradients are summed by rings alone."""
    if S.summing < 0:
        return False
    while n < least:
        n, start, stop, _ = next_buffer(S, n, least)
        if state.table(S, table_of(S, S.summing, ITEM_BYTES * (stop - start))).rotates == 0:
            return False
    return True


@compiled
def turns_of(S, n, least):
    """Turns of all rings."""
    turns = 0
    while n < least:
        n, start, stop, _ = next_buffer(S, n, least)
        rows = state.rows(S, table_of(S, S.summing, ITEM_BYTES * (stop - start)), 0)
        turns += rows.stop - rows.first
    return turns


@compiled
def keep(S):
    """Keep where ranks are when rank 0 has decided."""
    for r in range(S.ranks):
        of = state.cycler(S, r)
        of.kept_clock_s, of.kept_out_s, of.kept_in_s, of.kept_waited_s = of.clock_s, of.out_s, of.in_s, of.waited_s
        of.kept_cycle_s, of.kept_ready = of.cycle_s, of.ready


@compiled
def take_back(S):
    """Ranks are there again."""
    for r in range(S.ranks):
        of = state.cycler(S, r)
        of.clock_s, of.out_s, of.in_s, of.waited_s = of.kept_clock_s, of.kept_out_s, of.kept_in_s, of.kept_waited_s
        of.cycle_s, of.ready = of.kept_cycle_s, of.kept_ready


@compiled
def tell(S):
    """Ranks are told along the tree."""
    for r in range(S.ranks):
        of, rows = state.cycler(S, r), state.rows(S, S.tree, r)
        if r > 0:
            of.told_s = max(of.answer_s, of.in_s)
            of.in_s = of.told_s + occupancy_s(S, S.negotiated_bytes)
            of.waited_s += max(0.0, of.told_s - max(of.clock_s, of.idle_s))
            of.clock_s = max(of.clock_s, of.in_s) + of.overhead_s
        for i in range(of.first + of.children + (2 if r > 0 else 0), rows.stop):
            of.clock_s += of.overhead_s
            leave_s = max(of.clock_s, of.out_s)
            of.out_s = leave_s + occupancy_s(S, S.negotiated_bytes)
            of.clock_s = max(of.clock_s, of.out_s)
            state.cycler(S, state.row(S, i).to).answer_s = leave_s + S.latency_s


@compiled
def load_lanes(S):
    """Where ranks are once they are told, and their ports."""
    for q in range(S.ranks):
        of = state.cycler(S, q)
        seconds = S.negotiate_s / of.speed if S.negotiate_s > ROUND_OFF_S else 0.0
        set_out(S, q, of.clock_s + seconds, of.out_s, of.in_s, of.idle_s)
        state.lane(S, WAITED, q).value = of.waited_s
        pace(S, q, of.speed)


@compiled
def come_later(S, n, least):
    """Whether the first messages of the first ring come later than the answers at all ports."""
    _, start, stop, count = next_buffer(S, n, least)
    busy_s = before_s(S, start, stop, count)
    for q in range(1, S.ranks):
        of = state.cycler(S, q - 1)
        clock_s = state.lane(S, CLOCK, q - 1).value + (busy_s + S.overhead_s) / of.speed
        if max(clock_s, state.lane(S, OUT, q - 1).value) + S.latency_s <= state.cycler(S, q).answer_s + 2 * TIE_S:
            return False
    return True


@in_place
def copies_s(S, start, stop, count):
    """Seconds of a copy into a buffer or out of it."""
    return seconds_of(state.line(S, layout.PACK), ITEM_BYTES * (stop - start)) if count > 1 else 0.0


@in_place
def before_s(S, start, stop, count):
    """Seconds of a copy, and of a call."""
    return copies_s(S, start, stop, count) + seconds_of(state.line(S, layout.CALL), ITEM_BYTES * (stop - start))


@compiled
def play_buffers(S, n, least, until_s):
    """Sum gradients buffer by buffer; waits that end later than until_s are noted one by one."""
    while n < least:
        n, start, stop, count = next_buffer(S, n, least)
        rows = begin_buffer(S, start, stop, count)
        S.tail_turn = max(0, rows.stop - rows.first - TAIL)
        play_turns(S, rows.first, rows.first + S.tail_turn, until_s)
        keep_lanes(S)
        for i in range(rows.first + S.tail_turn, rows.stop):
            play_turn(S, state.row(S, i), until_s)
        count_turns(S, rows.stop - rows.first)
        spend(S, copies_s(S, start, stop, count))
        S.copied_s = copies_s(S, start, stop, count)


@compiled
def begin_buffer(S, start, stop, count):
    """Copy gradients into a buffer, if they are several, and call; the rows of the ring."""
    S.tail_table = table_of(S, S.summing, ITEM_BYTES * (stop - start))
    spend(S, copies_s(S, start, stop, count))
    spend(S, seconds_of(state.line(S, layout.CALL), ITEM_BYTES * (stop - start)))
    cut(S, start, stop)
    return state.rows(S, S.tail_table, 0)


@compiled
def keep_lanes(S):
    """Keep where ranks are before the last turns of a ring."""
    for k in range(MOVED):
        kept, moved = state.stretch(S, KEPT + k, 0, S.ranks), state.stretch(S, k, 0, S.ranks)
        for q in range(S.ranks):
            kept[q] = moved[q]


@compiled
def leave(S):
    """Ranks are where their sums have led them."""
    S.known = NONE
    for q in range(S.ranks):
        of = state.cycler(S, q)
        of.clock_s, of.out_s, of.in_s = (
            state.lane(S, CLOCK, q).value,
            state.lane(S, OUT, q).value,
            state.lane(S, IN, q).value,
        )
        of.waited_s, of.reach_s = state.lane(S, WAITED, q).value, state.lane(S, LEFT, q).value + S.latency_s


@compiled
def note(S, n, reduced, least, turns):
    """Note what ranks do, all of whose waits count; the decision's number."""
    decision, first, turn = state.decision(S, n), S.known_waits, 0
    S.known_waits += S.ranks * turns
    decision.rings, decision.sums = 1, reduced % S.variables == 0
    for q in range(S.ranks):
        of, ending = state.cycler(S, q), state.ending(S, n, q)
        state.lane(S, IDLE, q).value = -NEVER_S
        ending.first, ending.stop = first + q * turns, first + (q + 1) * turns
        if q > 0:
            ending.told_s = of.told_s - S.decided_s
            add_arrival(S, n, q, of.answer_s - S.decided_s, of.in_s - S.decided_s)
    while reduced < least:
        reduced, start, stop, count = next_buffer(S, reduced, least)
        rows = begin_buffer(S, start, stop, count)
        for i in range(rows.first, rows.stop):
            note_turn(S, state.row(S, i), n, turn)
            turn += 1
        count_turns(S, rows.stop - rows.first)
        spend(S, copies_s(S, start, stop, count))
    for q in range(S.ranks):
        ending = state.ending(S, n, q)
        ending.end_s, ending.out_s = (
            state.lane(S, CLOCK, q).value - S.decided_s,
            state.lane(S, OUT, q).value - S.decided_s,
        )
        ending.in_s = state.lane(S, IN, q).value - S.decided_s
    end_noting(S, n)
    return n


@compiled
def note_turn(S, row, n, turn):
    """A turn whose waits and arrivals are noted."""
    come_round(S)
    hand_on(S, row.sent_from, 0, S.ranks, 0)
    for q in range(S.ranks):
        reach_s = state.lane(S, LEFT, q).value + S.latency_s
        pass_port(S, row, q, reach_s)
        heard = state.known_wait(S, state.ending(S, n, q).first + turn)
        heard.from_s, heard.to_s = (
            state.lane(S, CLOCK, q).value - S.decided_s,
            state.lane(S, BEGIN, q).value - S.decided_s,
        )
        add_arrival(S, n, q, reach_s - S.decided_s, state.lane(S, IN, q).value - S.decided_s)
    take_in(S, row.taken_from, row.adds, 0, S.ranks)


@in_place
def pass_port(S, row, q, reach_s):
    """A part passes the port of a rank."""
    begin_s = max(reach_s, state.lane(S, IN, q).value)
    state.lane(S, BEGIN, q).value = begin_s
    state.lane(S, IN, q).value = begin_s + state.lane(S, TAKES, row.taken_from + q).value


@compiled
def have_moved(S):
    """Whether requests come at other times than when the last turns were played; and from now on at these."""
    moved = False
    for r in range(1, S.ranks):
        of, came_s = state.cycler(S, r), state.cycler(S, r).leave_s + S.latency_s
        if came_s != of.came_s:
            of.came_s, moved = came_s, True
        of.passed = 0
    return moved


@compiled
def play_tail(S):
    """Play a ring's last turns again, with requests between its messages; whether no request comes before them."""
    for k in range(MOVED):
        kept, moved = state.stretch(S, KEPT + k, 0, S.ranks), state.stretch(S, k, 0, S.ranks)
        for q in range(S.ranks):
            moved[q] = kept[q]
    rows = state.rows(S, S.tail_table, 0)
    first = rows.first + S.tail_turn
    for i in range(first, rows.stop):
        if play_between(S, state.row(S, i)) and i == first:
            return False
    spend(S, S.copied_s)
    leave(S)
    for r in range(S.ranks):
        of = state.cycler(S, r)
        of.cycle_s, of.ready = of.kept_cycle_s, of.kept_ready
    return True


@compiled
def play_between(S, row):
    """A turn in which requests pass ports, too; whether any does."""
    found = False
    come_round(S)
    hand_on(S, row.sent_from, 0, S.ranks, 0)
    for q in range(S.ranks):
        reach_s = state.lane(S, LEFT, q).value + S.latency_s
        if state.cycler(S, q).children > 0:
            found = pass_requests(S, q, reach_s) or found
        pass_port(S, row, q, reach_s)
    wait(S, 0, S.ranks, 0)
    take_in(S, row.taken_from, row.adds, 0, S.ranks)
    return found


@compiled
def pass_requests(S, q, reach_s):
    """Requests that come before a part pass a port before it; whether there are some."""
    of, sender, found = state.cycler(S, q), q - 1 if q > 0 else S.ranks - 1, False
    while True:
        next_one, next_s = sender, reach_s
        for i in range(of.first, of.first + of.children):
            child = state.row(S, i).source
            one = state.cycler(S, child)
            apart_s = one.came_s - next_s
            if one.passed == 0 and (apart_s < -TIE_S or (apart_s <= TIE_S and child < next_one)):
                next_one, next_s = child, one.came_s
        if next_one == sender and next_s == reach_s:
            return found
        one, found = state.cycler(S, next_one), True
        one.passed, one.begin_s = 1, max(one.came_s, state.lane(S, IN, q).value)
        one.end_s = one.begin_s + occupancy_s(S, S.negotiated_bytes)
        state.lane(S, IN, q).value = one.end_s
