"""Cycles of all ranks without events: all wait for a gradient that all have, and tell rank 0 along a tree what they have.

Each rank has a port of its own, and its children in the tree alone send to it until rank 0 knows what is to be summed. What follows is
passed over (decided.py) or played at once (summing.py), and the next cycle begins, until the gradients of a step are summed. Then
programs go on; or before, where what follows is played by events.
"""

from __future__ import annotations

import math

from sim.engine.kernel import state
from sim.engine.kernel.compiling import compiled, in_place
from sim.engine.kernel.decided import (
    can_pass,
    find,
    give_up_close_ones,
    load,
    pass_between,
    pass_over,
    play_by_events,
    store,
)
from sim.engine.kernel.layout import NEXT, TIE_S, WAITS
from sim.engine.kernel.phases import PASSES, PLAYS
from sim.engine.kernel.ports import occupancy_s
from sim.engine.kernel.post import NONE, go_on_later
from sim.engine.kernel.records import note_wait
from sim.engine.kernel.summing import PLAYED, have_moved, keep, play_again, play_tail, sum_by_rings, take_back

MOST_TRIES = 64  # to find when requests come that a ring's last messages meet
FAR_OFF = 1 << 60
MEETS, SETTLES, CLASHES = range(
    1, 4
)  # a request has met messages of what was decided; they are played again; that cannot be


@compiled
def enter_cycle(S, strand, line):
    """Wait until all ranks have entered a cycle; then this one and those after it are played, and all go on."""
    if strand.phase == 1 or strand.asked:
        return NEXT
    strand.phase = 1
    S.entered += 1
    if S.entered == S.ranks:
        S.entered = 0
        load(S)
        list_children(S)
        play_cycles(S, state.register(S, strand.number, line.a).value)
        for r in range(S.ranks - 1, -1, -1):
            go_on_later(S, S.ranks + r)
    return WAITS


@compiled
def list_children(S):
    """Which ranks send to each one."""
    for r in range(S.ranks):
        of, rows = state.cycler(S, r), state.rows(S, S.tree, r)
        of.first, i = rows.first, rows.first
        while state.row(S, i).to < 0:
            i += 1
        of.children = i - rows.first


@compiled
def play_cycles(S, cycle_s):
    """Cycles of a step until all is summed, or until something is played by events, of which all have asked."""
    begun = reduced = state.rank(S, 0).reduced
    stop, rings, before = state.rank(S, 0).ready_before + S.variables, False, 0
    while reduced < stop:
        least = begin_cycles(S, reduced, cycle_s, reduced == begun)
        if S.meets and rings:
            least = meet(S, before, reduced, cycle_s)
        if S.meets:
            give_up_close_ones(S)
        S.decided_s = state.cycler(S, 0).clock_s
        n = find(S, reduced % S.variables, least - reduced)
        if S.clash:
            can, n = NONE, FAR_OFF
        elif can_pass(S, n):
            can = n
        else:
            can = sum_by_rings(S, n, reduced, least, least == stop)
        if can == NONE:
            begin_events(S, n, begun, reduced, least)
            return
        if can != PLAYED:
            rings = state.decision(S, can).rings == 1
            if rings:
                keep(S)
            pass_over(S, can, least == stop)
        else:
            rings = True
        before, reduced = reduced, least
    store(S, reduced, PASSES)


@compiled
def begin_events(S, n, begun, reduced, least):
    """All ranks have asked, and rank 0 knows what is to be summed next, which is played by events."""
    store(S, reduced, PASSES if reduced > begun else PLAYS)
    for r in range(S.ranks):
        of, strand, rows = state.cycler(S, r), state.strand(S, S.ranks + r), state.rows(S, S.tree, r)
        strand.asked, strand.least = 1, least
        strand.table, strand.row, strand.row_end = S.tree, rows.first + of.children + (r > 0), rows.stop
    play_by_events(S, n, reduced, least, S.tree)
    if reduced > begun:
        for r in range(S.ranks):
            state.strand(S, S.ranks + r).notes = PASSES  # until the next cycle


@compiled
def begin_cycles(S, reduced, cycle_s, is_first):
    """All ranks begin a cycle, and rank 0 hears from all; how many gradients all have."""
    ready_s, least = state.all_ready(S, reduced - state.rank(S, 0).ready_before).value, FAR_OFF
    for r in range(S.ranks - 1, -1, -1):
        of, rank = state.cycler(S, r), state.rank(S, r)
        begin_cycle(S, of, r, ready_s, cycle_s, is_first)
        while of.ready < rank.ready and state.ready(S, r, of.ready).value <= of.clock_s + TIE_S:
            of.ready += 1
        least = min(least, of.ready)
        if of.children > 0:
            hear(S, of, r)
        if r > 0:
            tell(S, of)
    return state.rank(S, 0).ready_before + least


@in_place
def begin_cycle(S, of, r, ready_s, cycle_s, is_first):
    """A rank's next cycle in which all ranks have its next gradient."""
    began_s = of.clock_s
    of.clock_s = begin_in_turn(max(began_s, of.cycle_s + cycle_s), max(began_s, ready_s), cycle_s)
    of.cycle_s = of.clock_s
    from_s = max(began_s, of.idle_s)
    if is_first:  # the last update may have ended in this wait
        note_wait(S, r, from_s, of.clock_s)
    else:
        of.waited_s += max(0.0, of.clock_s - from_s)


@in_place
def begin_in_turn(begin_s, ready_s, cycle_s):
    """When the first cycle begins, of those after one another, in which a gradient is ready."""
    left_s = ready_s - TIE_S - begin_s
    if left_s > 0.0:
        begin_s = begin_s + math.ceil(left_s / cycle_s) * cycle_s if cycle_s > 0.0 else ready_s
    return max(ready_s, begin_s)


@in_place
def hear(S, of, r):
    """A rank hears from its children in the tree: their messages pass its port in order of arrival, and it takes them in its own order."""
    if of.children == 1:
        child = state.row(S, of.first).source
        if state.cycler(S, child).passed == 0:  # between the last messages of a ring
            pass_in(S, of, r, state.cycler(S, child))
    else:
        pass_in_order(S, of, r)
    for i in range(of.first, of.first + of.children):
        one = state.cycler(S, state.row(S, i).source)
        of.waited_s += max(0.0, one.begin_s - max(of.clock_s, of.idle_s))
        of.clock_s = max(of.clock_s, one.end_s) + of.overhead_s


@compiled
def pass_in_order(S, of, r):
    """The children's messages pass the port in order of arrival."""
    left = of.children
    for i in range(of.first, of.first + of.children):
        one = state.cycler(S, state.row(S, i).source)
        one.begin_s = one.begin_s if one.passed else -1.0
        left -= one.passed
    for _ in range(left):
        next_one = NONE
        for i in range(of.first, of.first + of.children):
            child = state.row(S, i).source
            if state.cycler(S, child).begin_s < 0.0 and (next_one < 0 or comes_first(S, child, next_one)):
                next_one = child
        pass_in(S, of, r, state.cycler(S, next_one))


@in_place
def comes_first(S, child, other):
    """Whether a child's message comes before another's."""
    apart_s = state.cycler(S, child).leave_s - state.cycler(S, other).leave_s
    return apart_s < -TIE_S or (apart_s <= TIE_S and child < other)


@in_place
def pass_in(S, of, r, child):
    """A child's message passes the port of a rank: when its first byte does, and its last."""
    came_s = child.leave_s + S.latency_s
    if came_s <= of.reach_s + TIE_S:
        if S.known >= 0:
            child.begin_s = pass_between(S, of, r, came_s, S.negotiated_bytes)
            child.end_s = of.met_s
            return
        S.meets = MEETS if S.meets == 0 else S.meets
    child.begin_s = max(came_s, of.in_s)
    child.end_s = of.in_s = child.begin_s + occupancy_s(S, S.negotiated_bytes)


@in_place
def tell(S, of):
    """A rank tells its parent."""
    of.clock_s += of.overhead_s
    of.leave_s = max(of.clock_s, of.out_s)
    of.out_s = of.leave_s + occupancy_s(S, S.negotiated_bytes)
    of.clock_s = max(of.clock_s, of.out_s)


@compiled
def meet(S, before, reduced, cycle_s):
    """Requests and the last messages of a ring meet at ports: both are played again until neither changes; how many gradients all have."""
    least = reduced
    if S.known >= 0:
        S.meets = 0
        take_back(S)
        if play_again(S, before, reduced):
            least = begin_cycles(S, reduced, cycle_s, False)
        else:
            S.meets = CLASHES
    tries = 0
    while S.meets == MEETS and have_moved(S):
        S.meets = SETTLES
        if tries == MOST_TRIES or not play_tail(S):
            S.meets = CLASHES
            return least
        least = begin_cycles(S, reduced, cycle_s, False)
        S.meets, tries = MEETS, tries + 1
    S.meets = MEETS if S.meets == CLASHES else 0
    return least
