"""A call of all ranks by the exchanges of a table: those that reach a port pass it in order of arrival, by events of one kind alone.

Each rank has a port of its own, and nothing but such calls sends messages. The call is played once all ranks have entered it. Where ranks
and their ports are, and what is on its way, is in records of one or two lines of the cache. A message that comes to a port before the last
one of an earlier call would have passed it in between: the run is begun anew, by events.
"""

from __future__ import annotations

from sim.engine.kernel import layout, state
from sim.engine.kernel.compiling import compiled, in_place
from sim.engine.kernel.heap import schedule_in_turn
from sim.engine.kernel.layout import EXCHANGED, ROUND_OFF_S, TIE_S
from sim.engine.kernel.records import note_wait
from sim.engine.kernel.ring import add_waited, is_steady
from sim.engine.kernel.ties import take_first
from sim.engine.kernel.work import seconds_of

NONE = -1


@compiled
def play_call(S, k, slot):
    """Play all exchanges of a table, whose bounds are in a slot; whether there was room."""
    steady, S.rang = is_steady(S), 0
    for q in range(S.ranks):
        enter(S, k, q)
    for q in range(S.ranks):
        go_on(S, q, slot, steady)
    while S.scheduled > 0 and S.short == 0:
        take_first(S)
        event = state.tie(S, 0)
        S.events += 1
        come(S, event.a, slot, steady)
    for q in range(S.ranks):
        leave(S, q)
    return S.short == 0


@compiled
def begin_ring(S):
    """A ring among other calls: the first of its messages come after the last ones of an earlier call."""
    for q in range(S.ranks if S.at_once == 1 and S.rang == 0 else 0):
        sender = q - 1 if q > 0 else S.ranks - 1
        rank = state.rank(S, sender)
        called_s = state.strand(S, sender).clock_s + S.overhead_s / rank.speed
        if max(called_s, state.port(S, rank.host).out_s) + S.latency_s <= state.rank(S, q).passed_s + TIE_S:
            S.clash = 1


@compiled
def end_ring(S, k, slot):
    """When the last of its messages, which have all passed, have come to the ports."""
    S.rang, last = 1, state.row(S, state.rows(S, k, 0).stop - 1).sent_from
    for q in range(S.ranks if S.at_once == 1 else 0):
        sender = q - 1 if q > 0 else S.ranks - 1
        part = (last + sender) % S.ranks
        size_bytes = 4.0 * (state.value(S, slot, part + 1).value - state.value(S, slot, part).value)
        begin_s = state.port(S, state.rank(S, sender).host).out_s - (S.gap_s + size_bytes * S.byte_s)
        state.rank(S, q).passed_s = begin_s + S.latency_s


@in_place
def enter(S, k, q):
    """A rank is where its text has led it."""
    of, strand, rank, rows = state.in_call(S, q), state.strand(S, q), state.rank(S, q), state.rows(S, k, q)
    port = state.port(S, rank.host)
    of.clock_s, of.out_s, of.in_s, of.idle_s, of.waited_s = strand.clock_s, port.out_s, port.in_s, rank.idle_s, 0.0
    of.overhead_s, of.speed, of.samples, of.passed_s, of.ahead_s = (
        S.overhead_s / rank.speed,
        rank.speed,
        rank.samples,
        rank.passed_s,
        -1.0,
    )
    of.row, of.row_end, of.source, of.head, of.tail = rows.first, rows.stop, NONE, NONE, NONE


@compiled
def go_on(S, q, slot, steady):
    """A rank does one exchange after another until it waits for a message."""
    of = state.in_call(S, q)
    while of.row < of.row_end:
        if S.scheduled == S.event_count:
            S.short = 1
            return
        row = state.row(S, of.row)
        of.left_s = NONE
        if row.to >= 0:
            hand(S, of, row, q, slot)
        if row.source >= 0:
            e = find(S, of, row.source)
            if e < 0:
                of.source = row.source
                return
            take(S, of, row, q, state.on_way(S, e), slot, steady)
        else:
            of.clock_s = max(of.clock_s, of.left_s)
        of.row += 1


@in_place
def hand(S, of, row, q, slot):
    """A rank's message passes its port."""
    message = state.on_way(S, of.row)
    message.bytes = 4.0 * (state.value(S, slot, row.sent_to).value - state.value(S, slot, row.sent_from).value)
    message.takes_s, message.samples, message.sender = S.gap_s + message.bytes * S.byte_s, int(of.samples), q
    of.clock_s += of.overhead_s
    begin_s = max(of.clock_s, of.out_s)
    of.out_s = begin_s + message.takes_s
    message.reach_s = begin_s + S.latency_s
    if row.ahead == 1:
        of.ahead_s = of.out_s
    else:
        of.left_s = of.out_s
    schedule_in_turn(S, message.reach_s, q, EXCHANGED, of.row)
    S.messages += 1


@in_place
def find(S, of, source):
    """Take the first message of a rank from those that have come; -1 if there is none."""
    before, e = NONE, of.head
    while e >= 0 and state.on_way(S, e).sender != source:
        before, e = e, state.on_way(S, e).next
    if e < 0:
        return NONE
    following = state.on_way(S, e).next
    if before < 0:
        of.head = following
    else:
        state.on_way(S, before).next = following
    if of.tail == e:
        of.tail = before
    return e


@in_place
def come(S, e, slot, steady):
    """A message comes to its receiver's port: the rank takes it, or does so later."""
    message, q = state.on_way(S, e), state.row(S, e).to
    of = state.in_call(S, q)
    if message.reach_s <= of.passed_s + TIE_S:
        S.clash = 1
    message.begin_s = max(message.reach_s, of.in_s)
    of.in_s = message.begin_s + message.takes_s
    message.end_s, state.rank(S, q).passed_s = of.in_s, message.reach_s
    if of.source == message.sender:
        of.source = NONE
        take(S, of, state.row(S, of.row), q, message, slot, steady)
        of.row += 1
        go_on(S, q, slot, steady)
        return
    message.next = NONE
    if of.tail >= 0:
        state.on_way(S, of.tail).next = e
    else:
        of.head = e
    of.tail = e


@in_place
def take(S, of, row, q, message, slot, steady):
    """A rank takes a message; once its own one has left, it adds up what has come."""
    from_s = max(of.clock_s, of.idle_s)
    if not steady:
        note_wait(S, q, from_s, message.begin_s)
    elif message.begin_s > from_s:
        of.waited_s += message.begin_s - from_s
    of.clock_s = max(max(of.clock_s, message.end_s) + of.overhead_s, of.left_s)
    stop = state.value(S, slot, row.taken_to).value
    if (
        stop == S.nothing and state.value(S, slot, row.taken_from).value < stop
    ):  # the number of samples is behind all items
        of.samples = message.samples + of.samples * row.adds
    if row.adds == 1:
        seconds = seconds_of(state.line(S, layout.REDUCE), message.bytes)
        if seconds > ROUND_OFF_S:
            of.clock_s += seconds / of.speed


@in_place
def leave(S, q):
    """A rank and its port are where the call has led them."""
    of, rank = state.in_call(S, q), state.rank(S, q)
    port = state.port(S, rank.host)
    state.strand(S, q).clock_s, port.out_s, port.in_s = max(of.clock_s, of.ahead_s), of.out_s, of.in_s
    rank.samples = of.samples
    add_waited(S, rank, of.waited_s)
