"""Collective calls: exchanges of a table, one after another. Bytes follow from the bounds of a vector, which are computed once a call."""

from __future__ import annotations

from sim.engine.kernel import layout, ops, phases, state
from sim.engine.kernel.background import ITEM_BYTES
from sim.engine.kernel.compiling import compiled, in_place
from sim.engine.kernel.heap import schedule
from sim.engine.kernel.layout import AGREED, AWAITS, ENDS, GO, NEXT, SPENDS, WAITS, WRONG
from sim.engine.kernel.memo import pass_or_note
from sim.engine.kernel.memory import read
from sim.engine.kernel.post import NONE, free_departure, has_left, wait_for
from sim.engine.kernel.records import note_wait
from sim.engine.kernel.ring import play_ring
from sim.engine.kernel.work import seconds_of, spend

NOBODY = -2  # of an exchange of a text


@compiled
def ready_now(S, rank, r):
    """How many of a rank's gradients are ready: those that all have summed are."""
    k = rank.reduced - rank.ready_before
    while k < rank.ready and state.ready(S, r, k).value <= S.now_s:
        k += 1
    return k


@compiled
def bounds_of(S, k, start, stop):
    """The slot with the values of all bounds of a table for a call from start to stop."""
    for slot in range(S.called_count):
        called = state.called(S, slot)
        if called.table == k and called.start == start and called.stop == stop:
            return slot
    slot = S.slots % S.called_count
    S.slots += 1
    called = state.called(S, slot)
    called.table, called.start, called.stop = k, start, stop
    fill_bounds(S, state.table(S, k), slot, start, stop)
    return slot


@compiled
def fill_bounds(S, table, slot, start, stop):
    """Compute all bounds: parts of a ring, or what a table's formulas say."""
    if table.rotates == 1:
        for i in range(table.ranks + 1):
            state.value(S, slot, i).value = start + (stop - start) * i // table.ranks
        return
    state.value(S, slot, 0).value, state.value(S, slot, 1).value = start, stop
    for i in range(2, table.bounds):
        bound = state.bound(S, table.first + i)
        if bound.operation == 0:
            state.value(S, slot, i).value = bound.a
        else:
            left, right = state.value(S, slot, bound.a).value, state.value(S, slot, bound.b).value
            state.value(S, slot, i).value = bound_of(bound.operation, left, right)


@compiled
def bound_of(operation, left, right):
    """The bound that an operation makes of two."""
    if operation == 1:
        return left + right
    if operation == 2:
        return left - right
    if operation == 3:
        return left * right
    return left // right


@in_place
def first_of(S, line):
    """The first of the ranks that call."""
    return 0 if line.op == ops.BARRIER else S.first


@compiled
def table_of(S, choice, size_bytes):
    """The table of a collective for so many bytes, from the first line of choices by size on."""
    while state.choice(S, choice).below_bytes <= size_bytes:
        choice += 1
    return state.choice(S, choice).table


@compiled
def begin_call(S, strand, rank, s, r, line):
    """Choose the table by the size of the vector, and enter the library."""
    op = line.op
    if op == ops.SWAP:
        return begin_swap(S, strand, s, r, line)
    if op == ops.NEGO:
        return agree_together(S, strand, rank, s, r, line)
    strand.start, strand.stop = 0, 0
    if op == ops.CALL or op == ops.GATHER:
        strand.start, strand.stop = int(read(S, s, r, line.b)), int(read(S, s, r, line.c))
    size_bytes = ITEM_BYTES * (strand.stop - strand.start)
    k = table_of(S, line.a, size_bytes)
    rows = state.rows(S, k, r - first_of(S, line))
    strand.table, strand.row, strand.row_end = k, rows.first, rows.stop
    if op != ops.CALL:
        return phases.CHOOSES
    if spend(strand, seconds_of(state.line(S, layout.CALL), size_bytes), phases.CHOOSES) == SPENDS:
        return SPENDS
    return enter_ring(S, strand, k) if S.rings == 1 and state.table(S, k).rotates == 1 else phases.CHOOSES


@in_place
def is_peer(S, other, r):
    """Whether that is another rank, or none."""
    return other == NOBODY or (0 <= other < S.ranks and other != r)


@compiled
def begin_swap(S, strand, s, r, line):
    """One exchange of a text: with whom, how large, and whether what comes is added."""
    strand.to, strand.what = int(read(S, s, r, line.a)), int(read(S, s, r, line.b))
    if not (is_peer(S, strand.to, r) and is_peer(S, strand.what, r)):
        return ENDS + WRONG
    strand.bytes, strand.count, strand.adds, strand.ahead = line.c, 1, line.d, 0
    strand.version, strand.table, strand.row = int(state.rank(S, r).version), 0, 0
    if strand.to >= 0:
        return phases.CALLS_PORT
    strand.to, strand.departure = NONE, NONE
    return phases.RECEIVES


@compiled
def enter_ring(S, strand, k):
    """Wait until all ranks have entered a ring; then it is played, and each goes on where it has led it."""
    S.entered += 1
    strand.phase = phases.OVER
    if S.entered == S.ranks:
        S.entered = 0
        for q in range(S.layered * S.ranks, (1 + S.layered) * S.ranks):
            if state.strand(S, q).start != strand.start or state.strand(S, q).stop != strand.stop:
                return ENDS + WRONG
        play_ring(S, k, strand.start, strand.stop)
        for q in range(S.layered * S.ranks, (1 + S.layered) * S.ranks):
            schedule(S, state.strand(S, q).clock_s, GO, q, 0)
    return WAITS


@compiled
def agree_together(S, strand, rank, s, r, line):
    """Wait until all ranks ask which gradients all have; some time later all know."""
    strand.least, strand.began_s = rank.ready_before + ready_now(S, rank, r), strand.clock_s
    strand.phase = phases.OVER
    S.entered += 1
    if S.entered < S.ranks:
        return AWAITS
    S.entered, least = 0, strand.least
    for q in range(S.ranks, 2 * S.ranks):
        least = min(least, state.strand(S, q).least)
    at_s = S.now_s + (read(S, s, r, line.b) + read(S, s, r, line.c) * (least - rank.reduced))
    pass_or_note(S, at_s, int(rank.reduced), least)
    for q in range(S.ranks, 2 * S.ranks):
        state.strand(S, q).least, state.strand(S, q).t1_s = least, at_s
    if strand.passes == 0:
        schedule(S, at_s, AGREED, 0, 0)
    return AWAITS


@compiled
def tell_all(S):
    """All ranks know on what they agree."""
    for q in range(S.ranks, 2 * S.ranks):
        schedule(S, S.now_s, GO, q, 0)


@in_place
def choose_exchange(S, strand, r, line):
    """The next exchange: to whom, from whom, and how large."""
    if strand.row == strand.row_end:
        return phases.ALL_AHEAD
    op, row, table = line.op, state.row(S, strand.row), state.table(S, strand.table)
    to, source, first, end = row.to, row.source, row.sent_from, row.sent_to
    if table.rotates == 1:  # rank q does what rank 0 does, q places further on
        q, n = r - first_of(S, line), table.ranks
        to, source, first = (to + q) % n, (source + q) % n, (first + q) % n
        end = first + 1
    begin = first_of(S, line)
    strand.to, strand.what = to + begin if to >= 0 else to, source + begin if source >= 0 else source
    strand.count, strand.adds, strand.ahead = 1, row.adds, row.ahead
    strand.version = int(state.rank(S, r).version)
    if op == ops.CALL or op == ops.GATHER:
        slot = bounds_of(S, strand.table, strand.start, strand.stop)
        strand.bytes = ITEM_BYTES * (state.value(S, slot, end).value - state.value(S, slot, first).value)
    else:
        strand.bytes = 0.0
    if strand.to >= 0:
        return phases.CALLS_PORT
    strand.departure = NONE
    return phases.RECEIVES


@in_place
def take_exchange(S, strand, r, line):
    """What an exchange has brought: maybe samples of others."""
    message, op = state.message(S, strand.message), line.op
    strand.t0_s = message.bytes
    if op == ops.SWAP or op == ops.CALL:
        taken_bytes, brings = 1.0 * line.f, line.e == 1
        if op == ops.CALL:
            start, stop = taken(S, strand, r)
            taken_bytes, brings = ITEM_BYTES * (stop - start), stop == S.nothing and start < stop
        if message.bytes != taken_bytes and not S.fair:  # flows that share a port may overtake one another
            return ENDS + WRONG
        if brings:  # the last item, with the number of samples
            rank = state.rank(S, r)
            rank.samples = message.samples + rank.samples * strand.adds
    return phases.DEPARTS


@in_place
def taken(S, strand, r):
    """The first and the last bound of the piece that an exchange takes."""
    row, table = state.row(S, strand.row), state.table(S, strand.table)
    first, end = row.taken_from, row.taken_to
    if table.rotates == 1:
        first = (first + r - S.first) % table.ranks
        end = first + 1
    slot = bounds_of(S, strand.table, strand.start, strand.stop)
    return state.value(S, slot, first).value, state.value(S, slot, end).value


@in_place
def depart(S, strand, rank, s, line):
    """The rank's own message of an exchange has to leave; then what came is added."""
    d = strand.departure
    if strand.to >= 0 and strand.ahead == 0:
        if not has_left(S, state.departure(S, d)):
            strand.phase = phases.DEPARTS
            return wait_for(S, d, s)
        free_departure(S, d)
        strand.departure = NONE
    if line.op != ops.MEET and strand.adds == 1:
        kind = layout.REDUCE_ROWS if line.op == ops.GATHER else layout.REDUCE
        seconds = seconds_of(state.line(S, kind), strand.t0_s)
        return SPENDS if spend(strand, seconds, phases.ADDED) == SPENDS else phases.ADDED
    return phases.ADDED


@in_place
def wait_for_all(S, strand, s):
    """All messages that were sent ahead and have not left are waited for as one event."""
    count, d = 0, strand.first_departure
    while d >= 0:
        if not has_left(S, state.departure(S, d)):
            wait_for(S, d, s)
            count += 1
        d = state.departure(S, d).next
    if count == 0:
        return phases.ALL_LEFT
    strand.pending, strand.phase = count, phases.ALL_LEFT
    return AWAITS


@in_place
def leave_all(S, strand, s, line, phase):
    """All messages that are waited for have to leave; who neither polls nor shares ports sees the last one alone."""
    d = strand.first_departure
    while d >= 0 and has_left(S, state.departure(S, d)):
        free_departure(S, d)
        d = state.departure(S, d).next
    strand.first_departure, last = d, d
    if d < 0:
        return phases.OVER
    while d >= 0 and not (S.polls or S.fair):
        departure = state.departure(S, d)
        if departure.at_s >= state.departure(S, last).at_s and not has_left(S, departure):
            last = d
        d = departure.next
    strand.phase = phase
    return wait_for(S, last, s)


@in_place
def end_negotiation(S, strand, rank, s, line):
    """Into two registers: gradients agreed on before, and now."""
    register, least = line.a, strand.least
    known_s = strand.t1_s if strand.passes else strand.clock_s
    note_wait(S, strand.rank, max(strand.began_s, rank.idle_s), known_s)
    state.register(S, s, register).value, state.register(S, s, register + 1).value = rank.reduced, least
    strand.start, strand.stop = rank.reduced, least
    rank.reduced = least
    return NEXT
