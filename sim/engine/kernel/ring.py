"""A ring's call of all ranks, turn by turn, without events: each port serves one sender in it, so that its messages come in order.

Where ranks and their ports are is copied into records of one line of the cache each, and back when all turns are over.
"""

from __future__ import annotations

from sim.engine.kernel import layout, state
from sim.engine.kernel.compiling import compiled, in_place
from sim.engine.kernel.records import note_wait
from sim.engine.kernel.work import seconds_of

AS_LONG = 32  # messages of a ring take as long as an event


@compiled
def play_ring(S, k, start, stop):
    """Play all turns of a table's ring on the items from start to stop."""
    ranks, steady = S.ranks, is_steady(S)
    fill(S, start, stop)
    rows = state.rows(S, k, 0)
    for i in range(rows.first, rows.stop):
        row = state.row(S, i)
        hand_on(S, ranks, row.sent_from)
        take_in(S, ranks, row.taken_from, row.adds, steady)
    S.messages += ranks * (rows.stop - rows.first)
    S.events += ranks * (rows.stop - rows.first) // AS_LONG
    leave(S, ranks)
    if stop == S.nothing:  # the number of samples is behind all items
        sum_samples(S)


@compiled
def fill(S, start, stop):
    """Where all ranks are, and the seconds that each part of the items takes."""
    ranks, line = S.ranks, state.line(S, layout.REDUCE)
    for q in range(ranks):
        of, strand, rank = state.on_ring(S, q), state.strand(S, q), state.rank(S, q)
        port = state.port(S, rank.host)
        of.clock_s, of.out_s, of.in_s, of.idle_s, of.waited_s = strand.clock_s, port.out_s, port.in_s, rank.idle_s, 0.0
        of.overhead_s = S.overhead_s / rank.speed
        items = (start + (stop - start) * (q + 1) // ranks) - (start + (stop - start) * q // ranks)
        part = state.on_port(S, q)
        part.takes_s, part.adds_s = S.gap_s + 4.0 * items * S.byte_s, seconds_of(line, 4.0 * items)


@in_place
def hand_on(S, ranks, part):
    """Each rank hands a part to the next one."""
    for q in range(ranks):
        of = state.on_ring(S, q)
        of.clock_s += of.overhead_s
        of.leave_s = max(of.clock_s, of.out_s)
        of.out_s = of.leave_s + state.on_port(S, part + q if part + q < ranks else part + q - ranks).takes_s


@in_place
def take_in(S, ranks, part, adds, steady):
    """Each rank takes a part of the one before it."""
    leave_s = state.on_ring(S, ranks - 1).leave_s
    for q in range(ranks):
        of, takes = state.on_ring(S, q), state.on_port(S, part + q if part + q < ranks else part + q - ranks)
        begin_s = max(leave_s + S.latency_s, of.in_s)
        leave_s = of.leave_s
        of.in_s = begin_s + takes.takes_s
        from_s = max(of.clock_s, of.idle_s)
        if not steady:
            note_wait(S, q, from_s, begin_s)
        elif begin_s > from_s:
            of.waited_s += begin_s - from_s
        of.clock_s = max(max(of.clock_s, of.in_s) + of.overhead_s, of.out_s)
        if adds == 1:
            of.clock_s += takes.adds_s / state.rank(S, q).speed


@compiled
def leave(S, ranks):
    """Ranks and ports are where the call has led them."""
    for q in range(ranks):
        of, rank = state.on_ring(S, q), state.rank(S, q)
        port = state.port(S, rank.host)
        state.strand(S, q).clock_s, port.out_s, port.in_s = of.clock_s, of.out_s, of.in_s
        rank.waited_s += of.waited_s if S.ends >= S.warm_ends else 0.0
        rank.early_s += of.waited_s if S.ends >= S.least_ends else 0.0


@compiled
def is_steady(S):
    """Whether waits count as they did before the last update, and as they will after the next one."""
    last, following = S.ends, S.ends + 1
    begins = last == S.warm_ends or last == S.least_ends or following == S.warm_ends or following == S.least_ends
    return not (begins or following >= S.step_end_count - 1)


@compiled
def sum_samples(S):
    """All ranks have the samples of all."""
    total = 0.0
    for q in range(S.ranks):
        total += state.rank(S, q).samples
    for q in range(S.ranks):
        state.rank(S, q).samples = total
