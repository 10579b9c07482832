"""How a rank waits for a message, and takes it."""

from __future__ import annotations

from sim.engine.kernel import layout, ops, state
from sim.engine.kernel.compiling import compiled, in_place
from sim.engine.kernel.flows import control
from sim.engine.kernel.heap import schedule
from sim.engine.kernel.layout import ASKS as ASKED
from sim.engine.kernel.layout import AWAITS, DEPART, ENDS, GIVE_UP, GO, NEVER_S, ROUND_OFF_S, SPENDS, WRONG
from sim.engine.kernel.memo import note_known
from sim.engine.kernel.memory import read
from sim.engine.kernel.phases import ASKS, GOT, LANDS, OVER, TAKES
from sim.engine.kernel.post import NONE, find, free_message
from sim.engine.kernel.records import note_wait

DEADLINES = 0xFFFFF  # numbers of waits with a deadline, as events have them


@in_place
def receive(S, strand, rank, s, r, line):
    """Take a message from the inbox, or wait for one."""
    inbox, sends = state.inbox(S, r), line.op != ops.RECV
    inbox.kind = ops.ONE if sends else line.b
    inbox.first, inbox.stop = strand.what if sends else line.c, line.d
    if not sends and line.b == ops.ONE:
        inbox.first = int(read(S, s, r, line.c))
    if S.own and not sends and not are_ranks(S, strand, inbox):
        return ENDS + WRONG
    rank.polled_s = strand.began_s = strand.clock_s
    m = find(S, strand, inbox)
    strand.deadline = (strand.deadline + 1) & DEADLINES  # so that no earlier deadline ends this wait
    if m >= 0:
        inbox.waiter, strand.message = NONE, m
        return GOT
    if not sends and line.e > 0 and not set_deadline(S, strand, state.register(S, s, line.e - 1).value):
        inbox.waiter = NONE
        return nothing_came(S, s, line)
    inbox.waiter, strand.phase = s, GOT
    return AWAITS


@compiled
def are_ranks(S, strand, inbox):
    """Whether those from whom a message is awaited are ranks."""
    if inbox.kind == ops.ONE:
        return 0 <= inbox.first < S.ranks
    if inbox.kind != ops.LIST:
        return True
    at = strand.list_at + state.number_list(S, inbox.first).at
    for i in range(state.length(S, strand.number, inbox.first).value):
        if not 0 <= state.item(S, at + i).value < S.ranks:
            return False
    return True


@compiled
def set_deadline(S, strand, until_s):
    """An event at a deadline, if there is one; whether it is still to come."""
    if until_s <= strand.clock_s:
        return False
    if until_s < NEVER_S:
        schedule(S, S.now_s + (until_s - S.now_s), GIVE_UP, strand.number, strand.deadline)
    return True


@compiled
def nothing_came(S, s, line):
    """The letter is none."""
    state.register(S, s, line.a + layout.L_SENDER).value = -1.0
    return OVER


@in_place
def get(S, strand, rank, s, r, line):
    """A message is there, or the time is over."""
    m = strand.message
    if m < 0:
        note_wait(S, r, strand.began_s, strand.clock_s)
        return nothing_came(S, s, line)
    message = state.message(S, m)
    strand.t1_s = strand.clock_s  # until when it has waited
    if message.asks == 0 and message.local == 0:
        strand.t1_s = max(strand.began_s, message.begin_s)
    if message.asks == 1:
        return spend_on(strand, message.count * S.overhead_s, ASKS)
    if message.local == 1:
        return spend_on(strand, message.count * S.local_overhead_s + local_s(S, message), TAKES)
    if message.end_s > strand.clock_s:
        schedule(S, S.now_s + (message.end_s - strand.clock_s), GO, s, 0)
        strand.phase = LANDS
        return AWAITS
    return LANDS


@in_place
def local_s(S, message):
    """Seconds in which a message is copied within a host."""
    return S.local_gap_s + message.bytes / S.local_bandwidth


@in_place
def spend_on(strand, seconds, phase):
    """Seconds of a core as an event, if there are any, before a phase."""
    if seconds <= ROUND_OFF_S:
        return phase
    strand.phase, strand.spend_s = phase, seconds
    return SPENDS


@in_place
def depart_now(S, message):
    """A message whose sender waits until its receiver has taken it leaves; what shares ports as a flow leaves by itself."""
    if message.departure >= 0 and (message.local == 1 or S.fair == 0):
        schedule(S, S.now_s, DEPART, message.departure, 0)


@compiled
def ask(S, strand, rank, s, r):
    """Have an announced message's bytes leave, behind this rank's own if its receiver has asked before."""
    ask_for(S, strand.message, rank, r)
    state.message(S, strand.message).waiter, strand.phase = s, TAKES
    return AWAITS


@compiled
def ask_for(S, m, rank, r):
    """Ask for an announced message."""
    message, own = state.message(S, m), state.announced(S, r, state.message(S, m).sender).value
    if own >= 0 and asked_before(S, state.message(S, own), message, rank, r):
        state.message(S, own).call = m
    else:
        peers, hosts = (r, message.sender), (rank.host, state.rank(S, message.sender).host)
        message.asked_s = control(S, peers, hosts, ASKED, m)


@compiled
def leave_unread(S, m, rank, r):
    """A message that nobody takes leaves its sender all the same."""
    message = state.message(S, m)
    if message.asks == 1:
        ask_for(S, m, rank, r)
    else:
        depart_now(S, message)


@compiled
def end_inbox(S, rank, r):
    """The rank's text has ended: nobody takes what has come, and what comes."""
    rank.ended, inbox = 1, state.inbox(S, r)
    m = inbox.head
    while m >= 0:
        after = state.message(S, m).next
        leave_unread(S, m, rank, r)
        m = after
    inbox.head = inbox.tail = NONE


@compiled
def asked_before(S, own, message, rank, r):
    """Whether the receiver of this rank's announced message asked for it before the rank asks for the other one."""
    if S.in_library == 0:
        return own.asked_s <= rank.polled_s + ROUND_OFF_S
    own_s, other_s = own.begin_s + S.latency_s, message.begin_s
    return own_s < other_s or (own_s == other_s and r < message.sender)


@in_place
def take(S, strand, s, line):
    """The message has been taken; a RECV has its letter, and is over."""
    m, r = strand.message, strand.rank
    message, rank = state.message(S, m), state.rank(S, r)
    note_wait(S, r, max(strand.began_s, rank.idle_s), strand.t1_s)
    if strand.notes == 1:
        note_known(S, r, strand.began_s, strand.t1_s)
    depart_now(S, message)
    free_message(S, m)
    if line.op != ops.RECV:
        return
    state.register(S, s, line.a + layout.L_SENDER).value = message.sender
    state.register(S, s, line.a + layout.L_VERSION).value = message.version
    state.register(S, s, line.a + layout.L_SAMPLES).value = message.samples
    state.register(S, s, line.a + layout.L_MINIBATCHES).value = message.minibatches
    state.register(S, s, line.a + layout.L_MESSAGES).value = message.count
    state.register(S, s, line.a + layout.L_NOTE).value = message.note
    state.register(S, s, line.a + layout.L_LAST).value = message.last
    rank.received += 1
    state.register(S, s, line.a + layout.L_NUMBER).value = rank.received
    state.register(S, s, line.a + layout.L_BYTES).value = message.bytes
    state.register(S, s, line.a + layout.L_VARIABLE).value = message.variable
