"""A ring's call of all ranks, turn by turn, without events: each port serves one sender in it, so that its messages come in order.

Where ranks and their ports are is copied into arrays of one number for each rank, whose loops the compiler vectorises, and back when all
turns are over.
"""

from __future__ import annotations

from sim.engine.kernel import layout, state
from sim.engine.kernel.compiling import compiled, in_place
from sim.engine.kernel.layout import ADDS, BEGIN, CLOCK, IDLE, IN, LEFT, NEVER_S, OUT, OVERHEAD, PACE, TAKES, WAITED
from sim.engine.kernel.records import note_wait
from sim.engine.kernel.work import seconds_of

AS_LONG = 64  # messages of a ring take as long as an event
BLOCK, DEEP = 256, 8  # ranks whose numbers stay in the cache of a core, for so many turns
WIDE = 1024  # ranks whose numbers do not


@compiled
def play_ring(S, k, start, stop):
    """Play all turns of a table's ring on the items from start to stop."""
    for q in range(S.ranks):
        strand, rank = state.strand(S, q + S.layered * S.ranks), state.rank(S, q)
        port = state.port(S, rank.host)
        set_out(S, q, strand.clock_s, port.out_s, port.in_s, rank.idle_s)
        pace(S, q, rank.speed)
    cut(S, start, stop)
    rows, until_s = state.rows(S, k, 0), NEVER_S if is_steady(S) else -NEVER_S
    play_turns(S, rows.first, rows.stop, until_s)
    count_turns(S, rows.stop - rows.first)
    leave(S)
    if stop == S.nothing:  # the number of samples is behind all items
        sum_samples(S)


@compiled
def count_turns(S, turns):
    """So many turns have been played."""
    S.messages += S.ranks * turns
    S.events += S.ranks * turns // AS_LONG + 1


@in_place
def set_out(S, q, clock_s, out_s, in_s, idle_s):
    """Where a rank is, and its port."""
    state.lane(S, CLOCK, q).value, state.lane(S, OUT, q).value, state.lane(S, IN, q).value = clock_s, out_s, in_s
    state.lane(S, IDLE, q).value, state.lane(S, WAITED, q).value = idle_s, 0.0


@in_place
def pace(S, q, speed):
    """How fast a rank is."""
    state.lane(S, OVERHEAD, q).value, state.lane(S, PACE, q).value = S.overhead_s / speed, 1 / speed


@compiled
def cut(S, start, stop):
    """The seconds that each part of the items takes, at a port and to be added; twice, as parts go round."""
    ranks, line = S.ranks, state.line(S, layout.REDUCE)
    for q in range(ranks):
        items = (start + (stop - start) * (q + 1) // ranks) - (start + (stop - start) * q // ranks)
        takes_s, adds_s = S.gap_s + 4.0 * items * S.byte_s, seconds_of(line, 4.0 * items)
        state.lane(S, TAKES, q).value = state.lane(S, TAKES, q + ranks).value = takes_s
        state.lane(S, ADDS, q).value = state.lane(S, ADDS, q + ranks).value = adds_s


@compiled
def play_turns(S, first, stop, until_s):
    """Play a turn for each row of a ring; of many ranks several turns together, where no wait is noted by itself."""
    i = first
    while i < stop:
        turns = min(DEEP, min(stop - i, S.ranks))
        if S.ranks < WIDE or until_s != NEVER_S:
            play_turn(S, state.row(S, i), until_s)
            i += 1
        else:
            play_together(S, i, turns)
            i += turns


@compiled
def play_together(S, first, turns):
    """Play some turns, block by block of ranks: in each a rank needs when the part of the one before it leaves.

    Turn d begins with rank d, whose neighbour has played the turns before, and comes round to it.
    """
    at = 0
    while at < S.ranks + turns - 1:
        for d in range(turns):
            row, low, high = state.row(S, first + d), max(at, d), min(at + BLOCK, S.ranks + d)
            if low == d:
                state.lane(S, LEFT, S.ranks + 1 + d).value = leaves_s(S, d - 1 if d > 0 else S.ranks - 1)
            if low < min(high, S.ranks):
                play_block(S, row, d, low, min(high, S.ranks) - low)
            low = max(low, S.ranks)
            if low < high:
                play_block(S, row, d, low - S.ranks, high - low)
        at += BLOCK


@in_place
def play_block(S, row, d, at, count):
    """A turn of some ranks, of which the one before has left behind when its part leaves."""
    edge = S.ranks + 1 + d
    state.lane(S, LEFT, 0).value = state.lane(S, LEFT, edge).value
    hand_on(S, row.sent_from, at, count, 0)
    state.lane(S, LEFT, edge).value = state.lane(S, LEFT, count).value
    pass_ports(S, row.taken_from, at, count, 0)
    wait(S, at, count, 0)
    take_in(S, row.taken_from, row.adds, at, count)


@compiled
def play_turn(S, row, until_s):
    """Each rank hands a part to the next one, and takes one; waits that end later than until_s are noted one by one."""
    come_round(S)
    at = 0
    while at < S.ranks:
        count = min(BLOCK, S.ranks - at)
        hand_on(S, row.sent_from, at, count, at)
        pass_ports(S, row.taken_from, at, count, at)
        if until_s == NEVER_S:
            wait(S, at, count, at)
        else:
            note_waits(S, at, count, until_s)
        take_in(S, row.taken_from, row.adds, at, count)
        at += count


@in_place
def come_round(S):
    """When the last rank's part leaves, which the first one takes."""
    state.lane(S, LEFT, 0).value = leaves_s(S, S.ranks - 1)


@in_place
def leaves_s(S, q):
    """When a rank's next part leaves."""
    return max(state.lane(S, CLOCK, q).value + state.lane(S, OVERHEAD, q).value, state.lane(S, OUT, q).value)


@in_place
def hand_on(S, part, at, count, place):
    """Ranks hand a part each to the next one; when these leave is put behind a place."""
    clock_s, out_s, overhead_s = (
        state.stretch(S, CLOCK, at, count),
        state.stretch(S, OUT, at, count),
        state.stretch(S, OVERHEAD, at, count),
    )
    leave_s, takes_s = state.stretch(S, LEFT, place + 1, count), state.stretch(S, TAKES, part + at, count)
    for q in range(count):
        clock_s[q] += overhead_s[q]
        leave_s[q] = max(clock_s[q], out_s[q])
    for q in range(count):
        out_s[q] = leave_s[q] + takes_s[q]


@in_place
def pass_ports(S, part, at, count, place):
    """The parts pass the ports of those that take them."""
    leave_s, begin_s = state.stretch(S, LEFT, place, count), state.stretch(S, BEGIN, place, count)
    in_s = state.stretch(S, IN, at, count)
    takes_s, latency_s = state.stretch(S, TAKES, part + at, count), S.latency_s
    for q in range(count):
        begin_s[q] = max(leave_s[q] + latency_s, in_s[q])
        in_s[q] = begin_s[q] + takes_s[q]


@in_place
def wait(S, at, count, place):
    """How long ranks wait until their parts begin to come."""
    clock_s, idle_s = state.stretch(S, CLOCK, at, count), state.stretch(S, IDLE, at, count)
    begin_s, waited_s = state.stretch(S, BEGIN, place, count), state.stretch(S, WAITED, at, count)
    for q in range(count):
        waited_s[q] += max(0.0, begin_s[q] - max(clock_s[q], idle_s[q]))


@compiled
def note_waits(S, at, count, until_s):
    """The same; an update may end in those waits that end later than until_s, or between them."""
    for q in range(at, at + count):
        from_s, to_s = max(state.lane(S, CLOCK, q).value, state.lane(S, IDLE, q).value), state.lane(S, BEGIN, q).value
        if to_s > until_s:
            note_wait(S, q, from_s, to_s)
        else:
            state.lane(S, WAITED, q).value += max(0.0, to_s - from_s)


@in_place
def take_in(S, part, adds, at, count):
    """Ranks have taken their parts, their own have left, and what came is added."""
    clock_s, out_s, in_s = (
        state.stretch(S, CLOCK, at, count),
        state.stretch(S, OUT, at, count),
        state.stretch(S, IN, at, count),
    )
    overhead_s, pace = state.stretch(S, OVERHEAD, at, count), state.stretch(S, PACE, at, count)
    adds_s = state.stretch(S, ADDS, part + at, count)
    for q in range(count):
        clock_s[q] = max(max(clock_s[q], in_s[q]) + overhead_s[q], out_s[q])
    if adds == 1:
        for q in range(count):
            clock_s[q] += adds_s[q] * pace[q]


@compiled
def leave(S):
    """Ranks and ports are where the call has led them."""
    for q in range(S.ranks):
        rank = state.rank(S, q)
        port = state.port(S, rank.host)
        state.strand(S, q + S.layered * S.ranks).clock_s = state.lane(S, CLOCK, q).value
        port.out_s, port.in_s = state.lane(S, OUT, q).value, state.lane(S, IN, q).value
        add_waited(S, rank, state.lane(S, WAITED, q).value)


@in_place
def add_waited(S, rank, waited_s):
    """A rank has waited so long."""
    rank.waited_s += waited_s if S.ends >= S.warm_ends else 0.0
    rank.early_s += waited_s if S.ends >= S.least_ends else 0.0


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
