"""What happens at an event. Each function says which strand goes on now, or NOBODY, or that draws or room are used up."""

from __future__ import annotations

from sim.engine.kernel import layout, state
from sim.engine.kernel.calls import tell_all
from sim.engine.kernel.compiling import compiled, in_place
from sim.engine.kernel.cores import balance, end_turn, end_works, work
from sim.engine.kernel.flows import begin_flow, look, stream
from sim.engine.kernel.heap import schedule
from sim.engine.kernel.layerwise import ON_SHELF, layer_event, put_down, shelve
from sim.engine.kernel.layout import DEPART, GO, HAS_ASKED, HAS_LANDED, HOP, LANDED, LANDS, LOCAL, STREAM
from sim.engine.kernel.polling import late_s, next_stage, sleeps_between
from sim.engine.kernel.ports import pass_in
from sim.engine.kernel.post import NONE, go_on_later, keep, wanted
from sim.engine.kernel.receiving import leave_unread
from sim.engine.kernel.sending import next_weight
from sim.engine.kernel.threads import begin_piece, end_piece

NOBODY, NO_ROOM = -1, -2


@in_place
def happen(S, kind, a, b):
    """An event happens."""
    if kind == GO:
        return a
    if kind == layout.ARRIVE or kind == LOCAL:
        return arrive(S, kind, a)
    if kind == layout.TIMER:
        end_turn(S, a, b)
    elif kind == layout.BALANCE:
        balance(S, a)
    elif kind == HOP:
        end_part(S, state.strand(S, a))
    elif kind == LANDED:
        schedule(S, S.now_s, GO, b, 0)
    elif kind == layout.AGREED:
        tell_all(S)
    elif kind == layout.GIVE_UP:
        give_up(S, a, b)
    elif kind == DEPART:
        return depart(S, a)
    elif kind == layout.POLL:
        poll(S, a)
    elif kind == layout.STAGE:
        next_stage(S, a, b)
    elif kind == layout.GRADIENT_READY:
        wake_all(S, a)
    elif kind >= layout.SHELVED:
        layer_event(S, kind, a, b)
    elif kind >= layout.GPU_TIMER:
        go_on_beside(S, kind, a, b)
    else:
        return flow_event(S, kind, a)
    return NOBODY


@compiled
def end_part(S, strand):
    """Some work is done; of parts side by side maybe not the last."""
    strand.pending -= 1
    if strand.pending <= 0:
        strand.pending = 0
        schedule(S, S.now_s, GO, strand.number, 0)


@in_place
def arrive(S, kind, m):
    """A message comes to its receiver's host, or to a neighbour."""
    message = state.message(S, m)
    r = message.receiver
    inbox = state.inbox(S, r)
    if kind == layout.ARRIVE:
        message.begin_s, end_s = pass_in(S, state.port(S, state.rank(S, r).host), message.bytes, S.now_s)
        message.end_s = end_s + message.held_s
    if S.layerwise and r >= S.first:
        shelve(S, m, r)
        return NOBODY
    if state.rank(S, r).ended == 1:
        leave_unread(S, m, state.rank(S, r), r)
        return NOBODY
    s = inbox.waiter
    if s < 0 or not wanted(S, state.strand(S, s), inbox, message.sender):
        keep(S, inbox, m)
        return NOBODY
    inbox.waiter, state.strand(S, s).message = NONE, m
    late_s = message.end_s - S.now_s if message.local == 0 and message.asks == 0 else 0.0
    if late_s > 0.0:
        schedule(S, S.now_s + late_s, LANDED, m, s)
    else:
        schedule(S, S.now_s, GO, s, 0)
    return NOBODY


@compiled
def give_up(S, s, deadline):
    """A deadline has come: of this wait, or of one that is over."""
    strand = state.strand(S, s)
    inbox = state.inbox(S, strand.rank)
    if inbox.waiter != s or strand.deadline != deadline:
        return
    inbox.waiter, strand.message = NONE, NONE
    schedule(S, S.now_s, GO, s, 0)


@compiled
def depart(S, d):
    """A message has left: who waits for it goes on, if it was the last of several."""
    departure = state.departure(S, d)
    departure.over, s = 1, departure.waiter
    if s < 0:
        return NOBODY
    strand = state.strand(S, s)
    if strand.pending == 0:
        return s
    strand.pending -= 1
    if strand.pending == 0:
        schedule(S, S.now_s, GO, s, 0)
    return NOBODY


@compiled
def poll(S, s):
    """A waiting rank sees what has come, once its poll has had a core."""
    if polls_at_once(S, state.strand(S, s).rank, s, HOP):
        schedule(S, S.now_s, GO, s, 0)


@compiled
def polls_at_once(S, r, a, kind):
    """A rank polls: whether that is done, or takes a core first, after which an event of this kind says so."""
    rank = state.rank(S, r)
    rank.polled_s = S.now_s
    if S.cores_suffice == 0:
        work(S, rank.group, S.poll_s, r, a, kind)
    return S.cores_suffice == 1


@compiled
def go_on_beside(S, kind, a, b):
    """What happens on a GPU that ranks share, or in other threads."""
    if kind == layout.GPU_TIMER:
        end_works(S, a, b)
    elif kind == layout.PIECE:
        begin_piece(S, a)
    else:
        end_piece(S, a)


@compiled
def wake_all(S, n):
    """All ranks have a gradient: those that wait for it go on, in order."""
    for s in range(S.strand_count - 1, -1, -1):
        if state.strand(S, s).waits_for == n:
            state.strand(S, s).waits_for = NONE
            go_on_later(S, s)


@compiled
def flow_event(S, kind, a):
    """What happens where messages share ports as flows; `a` is a flow, a message or a timer."""
    if kind == layout.LOOK:
        look(S, a)
    elif kind == layout.FLOW_BEGINS:
        begin_flow(S, a)
    elif kind == layout.FLOW_DONE:
        end_flow(S, a)
    elif kind == LANDS:
        message = state.message(S, a)
        if state.announced(S, message.sender, message.receiver).value == a:
            state.announced(S, message.sender, message.receiver).value = NONE
        schedule(S, S.now_s, HAS_LANDED, a, 0)
    elif kind == layout.ASKS:
        schedule(S, S.now_s, HAS_ASKED, a, 0)
    elif kind == HAS_ASKED:
        return asked(S, a)
    elif kind == layout.NOTICED:
        if polls_at_once(S, state.message(S, a).sender, a, STREAM):
            begin_stream(S, a)
    elif kind == STREAM:
        begin_stream(S, a)
    elif kind == layout.HANDED:
        return handed(S, a)
    else:
        return landed(S, a)
    return NOBODY


@compiled
def end_flow(S, f):
    """The last byte of a flow has left: it lands after the latency, and so does what was scheduled behind it."""
    flow, at_s = state.flow(S, f), S.now_s + S.latency_s
    state.message(S, flow.message).end_s = at_s
    schedule(S, at_s, LANDS if flow.asked else LOCAL, flow.message, 0)
    c = flow.calls
    while c >= 0:
        call = state.callback(S, c)
        schedule(S, at_s, call.kind, call.message, 0)
        c = call.next
    if state.stream(S, flow.source, flow.to).value == f:
        state.stream(S, flow.source, flow.to).value = NONE
    state.free_flow(S, S.free_flows).value = f
    S.free_flows += 1


@compiled
def asked(S, m):
    """A sender is asked for an announced message; it notices at its next poll, if it polls."""
    message = state.message(S, m)
    r = message.sender
    rank = state.rank(S, r)
    waited_s = S.now_s - rank.since_s
    if not (S.polls and sleeps_between(S, state.strand(S, r)) and waited_s > 0.0):
        begin_stream(S, m)
        return NOBODY
    after_s = late_s(S, rank, r, waited_s)
    if after_s < 0.0:
        return NO_ROOM
    schedule(S, S.now_s + after_s, layout.NOTICED, m, 0)
    return NOBODY


@compiled
def begin_stream(S, m):
    """The bytes of an announced message leave."""
    message = state.message(S, m)
    r = message.sender
    hosts, weight = (state.rank(S, r).host, state.rank(S, message.receiver).host), next_weight(S, state.rank(S, r), r)
    stream(S, message, m, hosts, weight)


@compiled
def handed(S, f):
    """The sender has handed over all bytes of a flow."""
    flow = state.flow(S, f)
    if flow.departure < 0:
        return NOBODY
    if flow.asked:
        schedule(S, S.now_s, DEPART, flow.departure, 0)
        return NOBODY
    return depart(S, flow.departure)


@compiled
def landed(S, m):
    """An announced message is there: who waits for it goes on, and a message that waited for it leaves."""
    message = state.message(S, m)
    if message.call >= 0:
        schedule(S, S.now_s, HAS_ASKED, message.call, 0)
    s = message.waiter
    if s == ON_SHELF:
        put_down(S, m)
        return NOBODY
    if s < 0:
        message.waiter = -2
        return NOBODY
    return s
