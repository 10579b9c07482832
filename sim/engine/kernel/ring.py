"""A ring's call of all ranks, turn by turn, without events: each port serves one sender in it, so that its messages come in order.

Where ranks and their ports are is copied into arrays of one number for each rank, and back when all turns are over. The compiler vectorises
loops over them.
"""

from __future__ import annotations

from sim.engine.kernel import layout, state
from sim.engine.kernel.compiling import compiled
from sim.engine.kernel.layout import ADDS, BEGIN, CLOCK, IDLE, IN, LEFT, OUT, OVERHEAD, PACE, TAKES, WAITED
from sim.engine.kernel.memo import sum_samples
from sim.engine.kernel.records import add_steady, is_steady, note_wait
from sim.engine.kernel.state import lanes
from sim.engine.kernel.work import seconds_of

AS_LONG = 64  # messages of a ring take as long as an event


@compiled
def play_ring(S, k, start, stop):
    """Play all turns of a table's ring on the items from start to stop."""
    clock_s, out_s, in_s, idle_s = lanes(S, CLOCK, 0), lanes(S, OUT, 0), lanes(S, IN, 0), lanes(S, IDLE, 0)
    overhead_s, pace, waited_s = lanes(S, OVERHEAD, 0), lanes(S, PACE, 0), lanes(S, WAITED, 0)
    for q in range(S.ranks):
        rank = state.rank(S, q)
        port = state.port(S, rank.host)
        clock_s[q], out_s[q], in_s[q] = state.strand(S, q + S.layered * S.ranks).clock_s, port.out_s, port.in_s
        idle_s[q], waited_s[q], overhead_s[q], pace[q] = rank.idle_s, 0.0, S.overhead_s / rank.speed, 1 / rank.speed
    cut(S, start, stop)
    rows, steady = state.rows(S, k, 0), is_steady(S)
    for i in range(rows.first, rows.stop):
        play_turn(S, state.row(S, i), steady)
    S.noting, turns = 0, rows.stop - rows.first  # what has a ring in it is not noted: rings need no events
    S.messages += S.ranks * turns
    S.events += S.ranks * turns // AS_LONG + 1
    for q in range(S.ranks):
        rank = state.rank(S, q)
        port = state.port(S, rank.host)
        state.strand(S, q + S.layered * S.ranks).clock_s, port.out_s, port.in_s = clock_s[q], out_s[q], in_s[q]
        add_steady(S, rank, waited_s[q])
    if stop == S.nothing:  # the number of samples is behind all items
        sum_samples(S)


@compiled
def cut(S, start, stop):
    """The seconds that each part of the items takes, at a port and to be added; twice, as parts go round."""
    ranks, line = S.ranks, state.line(S, layout.REDUCE)
    for q in range(ranks):
        items = (start + (stop - start) * (q + 1) // ranks) - (start + (stop - start) * q // ranks)
        takes_s, adds_s = S.gap_s + 4.0 * items / S.bandwidth, seconds_of(line, 4.0 * items)
        state.lane(S, TAKES, q).value = state.lane(S, TAKES, q + ranks).value = takes_s
        state.lane(S, ADDS, q).value = state.lane(S, ADDS, q + ranks).value = adds_s


@compiled
def play_turn(S, row, is_steady):
    """Each rank hands a part to the next one, and takes one, which may be added."""
    clock_s, out_s, in_s, idle_s = lanes(S, CLOCK, 0), lanes(S, OUT, 0), lanes(S, IN, 0), lanes(S, IDLE, 0)
    overhead_s, pace, left_s, begin_s = lanes(S, OVERHEAD, 0), lanes(S, PACE, 0), lanes(S, LEFT, 0), lanes(S, BEGIN, 0)
    sent_s, taken_s = lanes(S, TAKES, row.sent_from), lanes(S, TAKES, row.taken_from)
    ranks, latency_s = S.ranks, S.latency_s
    for q in range(ranks):
        clock_s[q] += overhead_s[q]
        left_s[q] = max(clock_s[q], out_s[q])
    for q in range(ranks):
        out_s[q] = left_s[q] + sent_s[q]
    begin_s[0] = max(left_s[ranks - 1] + latency_s, in_s[0])
    for q in range(1, ranks):
        begin_s[q] = max(left_s[q - 1] + latency_s, in_s[q])
    for q in range(ranks):
        in_s[q] = begin_s[q] + taken_s[q]
    if is_steady:
        waited_s = lanes(S, WAITED, 0)
        for q in range(ranks):
            waited_s[q] += max(0.0, begin_s[q] - max(clock_s[q], idle_s[q]))
    else:
        for q in range(ranks):
            note_wait(S, q, max(clock_s[q], idle_s[q]), begin_s[q])
    for q in range(ranks):
        clock_s[q] = max(max(clock_s[q], in_s[q]) + overhead_s[q], out_s[q])
    if row.adds == 1:
        adds_s = lanes(S, ADDS, row.taken_from)
        for q in range(ranks):
            clock_s[q] += adds_s[q] * pace[q]
