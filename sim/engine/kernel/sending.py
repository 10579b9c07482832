"""How a rank's message comes to a port, and passes it."""

from __future__ import annotations

from sim.engine.kernel import ops, state
from sim.engine.kernel.compiling import compiled, in_place
from sim.engine.kernel.flows import control, stream
from sim.engine.kernel.heap import schedule
from sim.engine.kernel.layout import ARRIVE, DEPART, ENDS, LOCAL, ROUND_OFF_S, SPACE, SPENDS, WRONG
from sim.engine.kernel.memory import read
from sim.engine.kernel.phases import ALL_SENT, CALLS_PORT, CHOOSES, DEPARTS, RECEIVES, SENDS, SENT
from sim.engine.kernel.ports import held_s, pass_out
from sim.engine.kernel.post import (
    NONE,
    free_departure,
    has_left,
    has_room,
    leaves_at,
    new_departure,
    new_message,
    wait_for,
)
from sim.engine.kernel.records import note_wait
from sim.engine.kernel.threads import carry

SPARE = 8  # events that sending a message may schedule


@in_place
def receiver(S, strand, s, r, line):
    """To whom the next message of SEND goes; -1 if all are sent."""
    k, first = strand.turn, line.c
    if line.b == ops.RANGE:
        return first + k if first + k < line.d else NONE
    if line.b == ops.ONE:
        return int(read(S, s, r, first)) if k == 0 else NONE
    if k >= state.length(S, s, first).value:
        return NONE
    return int(state.item(S, strand.list_at + state.number_list(S, first).at + k).value)


@in_place
def choose_receiver(S, strand, s, r, line):
    """The next message of SEND: to whom, how large, and of which version."""
    to, what = receiver(S, strand, s, r, line), line.a
    if to == NONE and not (line.b == ops.ONE and strand.turn == 0):
        return ALL_SENT
    if S.own and not (0 <= to < S.ranks and to != r):
        return ENDS + WRONG
    if what == ops.NOTE and line.g == 0 and r >= S.first and to < S.first:
        what = ops.REQUEST  # a note to a server asks for parameters
    if what == ops.GRADIENT and S.in_parts and state.rank(S, r).minibatches > 1:
        what = ops.REQUEST + int(state.rank(S, r).minibatches) - 1
    size = state.size(S, what, min(r, to, S.first))  # the server, if one of the two is
    if size.count == 0:
        return ENDS + WRONG
    strand.to, strand.bytes, strand.count = to, size.bytes, size.count
    own = line.f == ops.OWN
    strand.version = int(state.rank(S, r).version if own else read(S, s, r, line.f))
    strand.ahead, strand.began_s = 0, strand.clock_s
    return CALLS_PORT


@in_place
def follows(S, line, r):
    """Whether a gradient leaves after the rank's one before has been taken, though the rank goes on."""
    return line.op == ops.SEND and line.e == 0 and r >= S.first and line.a == ops.GRADIENT


@in_place
def call_port(S, strand, rank, s, r, line):
    """Come to the port, before which other ranks may be."""
    if follows(S, line, r):
        strand.version, d = rank.oldest, strand.previous
        if d >= 0 and not has_left(S, state.departure(S, d)):
            strand.phase = CALLS_PORT
            return wait_for(S, d, s)
        if d >= 0:
            free_departure(S, d)
            strand.previous = NONE
        note_wait(S, r, strand.began_s, strand.clock_s)
    if state.rank(S, strand.to).host == rank.host:
        return SENDS
    strand.phase, seconds = SENDS, strand.count * S.overhead_s
    if seconds > ROUND_OFF_S and not (S.fair and strand.bytes > S.eager_bytes):
        strand.spend_s = seconds
        return SPENDS
    return SENDS


@in_place
def send(S, strand, rank, r, line):
    """Send the message, by the port or within the host."""
    if not has_room(S) or S.scheduled + S.due + SPARE > S.event_count:
        return ENDS + SPACE
    here = state.rank(S, strand.to).host == rank.host
    m = write(S, strand, rank, r, line, here)
    if S.threaded:
        carry(S, rank, state.rank(S, strand.to), S.local_background_s if here else S.link_background_s)
    if here:
        hand_over(S, rank, m)
    elif S.fair:
        seconds = strand.count * S.overhead_s
        if leave_as_flow(S, rank, r, m) and seconds > ROUND_OFF_S:
            strand.phase, strand.spend_s = SENT, seconds
            return SPENDS
    else:
        leave_by_port(S, strand, rank, r, m)
    return SENT


@in_place
def write(S, strand, rank, r, line, here):
    """The message, and what is waited for until it has left, if it is."""
    m = new_message(S, r, strand.to, here, strand.count, strand.bytes)
    message = state.message(S, m)
    message.version = strand.version
    message.samples, message.minibatches = int(rank.samples), int(rank.minibatches)
    sends, after = line.op == ops.SEND, follows(S, line, r)
    if sends and line.a == ops.GRADIENT:
        rank.hand = 0
    message.note, message.last = sends and line.a == ops.NOTE, line.g if sends else 0
    strand.departure = NONE
    if after or not sends or line.e == 1:
        strand.departure = new_departure(S)
        if not after and (sends or strand.ahead == 1):
            remember(S, strand)
    if after:
        strand.previous = strand.departure
    if after or here or S.fair:
        message.departure = strand.departure
    return m


@compiled
def remember(S, strand):
    """A departure that is waited for at the end of all."""
    if strand.last_departure >= 0:
        state.departure(S, strand.last_departure).next = strand.departure
    else:
        strand.first_departure = strand.departure
    strand.last_departure = strand.departure


@compiled
def leave_as_flow(S, rank, r, m):
    """A message shares ports with others; whether it is large: then it is announced, and leaves when its receiver asks for it."""
    message = state.message(S, m)
    to = message.receiver
    hosts = rank.host, state.rank(S, to).host
    if message.bytes <= S.eager_bytes:
        stream(S, message, m, hosts, next_weight(S, rank, r))
        return False
    message.asks, message.begin_s = 1, S.now_s
    state.announced(S, r, to).value = m
    control(S, (r, to), hosts, LOCAL, m)
    return True


@compiled
def next_weight(S, rank, r):
    """The weight of a rank's next flow. If more were drawn than there are, the run is begun anew."""
    draws = S.weight_width
    if rank.flowed >= draws > 1:
        S.short = 1
    rank.flowed += 1
    return state.weight(S, r, (rank.flowed - 1) % draws).value


@in_place
def hand_over(S, rank, m):
    """A message within a host, which its receiver copies."""
    group = state.group(S, rank.group)
    asleep_s = 0.0 if S.local_wakes and group.busy >= group.cores else S.local_latency_s
    schedule(S, S.now_s + asleep_s, LOCAL, m, 0)


@in_place
def leave_by_port(S, strand, rank, r, m):
    """A message passes its host's port from now on."""
    message, pair = state.message(S, m), r * S.ranks + strand.to
    begin_s, leave_s = pass_out(S, state.port(S, rank.host), strand.bytes, S.now_s)
    message.held_s = held_s(S, pair, begin_s, strand.bytes, leave_s)
    schedule(S, S.now_s + ((leave_s if S.stores else begin_s) - S.now_s + S.latency_s), ARRIVE, m, 0)
    if strand.departure != message.departure:  # the one that does not wait for the receiver
        leaves_at(S, strand.departure, S.now_s + (leave_s + message.held_s - S.now_s))


@in_place
def end_sending(S, strand, rank, line):
    """What comes after a message: the next one, or the one of an exchange that is received."""
    d = strand.departure
    large = S.fair and strand.bytes > S.eager_bytes and state.rank(S, strand.to).host != rank.host
    if large and d >= 0 and state.departure(S, d).over == 1:
        state.departure(S, d).over = 0  # it left while the call lasted: the wait for it ends at once, but is one
        schedule(S, S.now_s, DEPART, d, 0)
    if line.op == ops.SEND:
        strand.turn += 1
        return CHOOSES
    return RECEIVES if strand.what >= 0 else DEPARTS
