"""A cycle of all ranks without events: all wait for a gradient that all have, and tell rank 0 along a tree what they have.

Each rank has a port of its own, and its children in the tree alone send to it until rank 0 knows what is to be summed (decided.py).
"""

from __future__ import annotations

import math

from sim.engine.kernel import state
from sim.engine.kernel.compiling import compiled, in_place
from sim.engine.kernel.decided import decide, pass_between, pass_over
from sim.engine.kernel.heap import in_turn_s
from sim.engine.kernel.layout import NEXT, WAITS
from sim.engine.kernel.ports import occupancy_s, pass_out
from sim.engine.kernel.post import go_on_later
from sim.engine.kernel.records import note_wait


@compiled
def enter_cycle(S, strand, line):
    """Wait until all ranks have entered a cycle; then all of it is played, and all go on."""
    if strand.phase == 1:
        return NEXT
    strand.phase = 1
    S.entered += 1
    if S.entered == S.ranks:
        S.entered = 0
        play_cycle(S, state.register(S, strand.number, line.a).value)
        for r in range(S.ranks - 1, -1, -1):
            go_on_later(S, S.ranks + r)
    return WAITS


@compiled
def play_cycle(S, cycle_s):
    """All ranks begin a cycle, and rank 0 hears from all; then they are told, or pass over that."""
    for r in range(S.ranks):
        begin_cycle(S, state.strand(S, S.ranks + r), state.rank(S, r), r, cycle_s)
    for r in range(S.ranks - 1, -1, -1):
        ask(S, state.strand(S, S.ranks + r), state.rank(S, r), r)
    first = state.strand(S, S.ranks)
    n = decide(S, first, state.rank(S, 0))
    if n >= 0:
        pass_over(S, first, n)
    for r in range(S.ranks):
        state.strand(S, S.ranks + r).asked = 1


@in_place
def begin_cycle(S, strand, rank, r, cycle_s):
    """A rank's next cycle in which all ranks have its next gradient."""
    ready_s, began_s = state.gradient(S, rank.reduced).at_s, strand.clock_s
    begin_s, ready_s = max(began_s, strand.cycle_s + cycle_s), max(began_s, ready_s)
    strand.clock_s = begin_in_turn(begin_s, ready_s, cycle_s)
    strand.cycle_s = strand.clock_s
    note_wait(S, r, max(began_s, rank.idle_s), strand.clock_s)
    strand.least = rank.ready_before + ready_by(S, rank, r, strand.clock_s)


@in_place
def begin_in_turn(begin_s, ready_s, cycle_s):
    """When the first cycle begins, of those after one another, in which a gradient is ready."""
    if ready_s > begin_s:
        begin_s = begin_s + math.ceil((ready_s - begin_s) / cycle_s) * cycle_s if cycle_s > 0.0 else ready_s
    return max(ready_s, begin_s)


@compiled
def ready_by(S, rank, r, time_s):
    """How many of a rank's gradients are ready by then: those that all have summed are."""
    k = rank.reduced - rank.ready_before
    while k < rank.ready and state.ready(S, r, k).value <= time_s:
        k += 1
    return k


@compiled
def ask(S, strand, rank, r):
    """A rank hears from its children in the tree, and tells its parent what they all have."""
    rows = state.rows(S, S.tree, r)
    strand.table, strand.row, strand.row_end = S.tree, rows.first, rows.stop
    while state.row(S, strand.row).to < 0:
        strand.row += 1
    pass_in_order(S, rank, r, rows.first, strand.row)
    for i in range(rows.first, strand.row):
        take(S, strand, rank, r, state.row(S, i).source)
    if r > 0:
        hand_on(S, strand, rank, r)


@compiled
def pass_in_order(S, rank, r, first, stop):
    """The children's messages pass the port in order of arrival."""
    for i in range(first, stop):
        state.on_ring(S, state.row(S, i).source).in_s = -1.0
    for _ in range(first, stop):
        next_one = -1
        for i in range(first, stop):
            child = state.row(S, i).source
            if state.on_ring(S, child).in_s < 0.0 and (next_one < 0 or comes_first(S, child, next_one)):
                next_one = child
        pass_in(S, rank, r, state.on_ring(S, next_one))


@in_place
def comes_first(S, child, other):
    """Whether a child's message comes before another's."""
    child_s, other_s = in_turn_s(state.on_ring(S, child).leave_s), in_turn_s(state.on_ring(S, other).leave_s)
    return child_s < other_s or (child_s == other_s and child < other)


@in_place
def pass_in(S, rank, r, of):
    """A child's message passes the port of a rank: `clock_s` is when its first byte does, `in_s` its last."""
    reach_s = of.leave_s + S.latency_s
    if reach_s <= rank.reach_s:
        of.clock_s = pass_between(S, rank, r, reach_s, S.negotiated_bytes)
        of.in_s = of.clock_s + occupancy_s(S, S.negotiated_bytes)
        return
    port = state.port(S, rank.host)
    of.clock_s = max(reach_s, port.in_s)
    of.in_s = port.in_s = of.clock_s + occupancy_s(S, S.negotiated_bytes)


@in_place
def take(S, strand, rank, r, child):
    """A rank takes what a child tells."""
    of = state.on_ring(S, child)
    note_wait(S, r, max(strand.clock_s, rank.idle_s), of.clock_s)
    strand.clock_s = max(strand.clock_s, of.in_s) + S.overhead_s / rank.speed
    strand.least = min(strand.least, state.strand(S, S.ranks + child).least)


@in_place
def hand_on(S, strand, rank, r):
    """A rank tells its parent."""
    strand.clock_s += S.overhead_s / rank.speed
    begin_s, leave_s = pass_out(S, state.port(S, rank.host), S.negotiated_bytes, strand.clock_s)
    state.on_ring(S, r).leave_s = begin_s
    strand.clock_s = max(strand.clock_s, leave_s)
    strand.row += 1
