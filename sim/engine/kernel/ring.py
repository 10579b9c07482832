"""A ring's call of all ranks, turn by turn, without events: each port serves one sender in it, so that its messages come in order."""

from __future__ import annotations

from sim.engine.kernel import layout, state
from sim.engine.kernel.compiling import compiled
from sim.engine.kernel.records import note_wait
from sim.engine.kernel.work import seconds_of


@compiled
def play_ring(S, k, start, stop):
    """Play all turns of a table's ring on the items from start to stop."""
    ranks = S.ranks
    rows = state.rows(S, k, 0)
    for i in range(rows.first, rows.stop):
        row = state.row(S, i)
        for q in range(ranks):
            hand_on(S, q, part_bytes(row.sent_from + q, ranks, start, stop))
        for q in range(ranks):
            take_in(S, q, part_bytes(row.taken_from + q, ranks, start, stop), row.adds)
        S.messages += ranks
    if stop == S.nothing:  # the number of samples is behind all items
        sum_samples(S)


@compiled
def sum_samples(S):
    """All ranks have the samples of all."""
    total = 0.0
    for q in range(S.ranks):
        total += state.rank(S, q).samples
    for q in range(S.ranks):
        state.rank(S, q).samples = total


@compiled
def part_bytes(part, ranks, start, stop):
    """Bytes of a part of the items, counted round."""
    part -= ranks if part >= ranks else 0
    return 4.0 * ((start + (stop - start) * (part + 1) // ranks) - (start + (stop - start) * part // ranks))


@compiled
def hand_on(S, q, size_bytes):
    """A rank hands a part to the next one."""
    strand, rank = state.strand(S, q), state.rank(S, q)
    port = state.port(S, rank.host)
    strand.clock_s += S.overhead_s / rank.speed
    strand.leave_s = max(strand.clock_s, port.out_s)
    port.out_s = strand.leave_s + (S.gap_s + size_bytes * S.byte_s)


@compiled
def take_in(S, q, size_bytes, adds):
    """A rank takes a part of the one before it."""
    strand, rank = state.strand(S, q), state.rank(S, q)
    port = state.port(S, rank.host)
    reach_s = state.strand(S, q - 1 if q else S.ranks - 1).leave_s + S.latency_s
    begin_s = max(reach_s, port.in_s)
    port.in_s = begin_s + (S.gap_s + size_bytes * S.byte_s)
    note_wait(S, q, max(strand.clock_s, rank.idle_s), begin_s)
    strand.clock_s = max(max(strand.clock_s, port.in_s) + S.overhead_s / rank.speed, port.out_s)
    if adds == 1:
        strand.clock_s += seconds_of(state.line(S, layout.REDUCE), size_bytes) / rank.speed
