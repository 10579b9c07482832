"""Messages on their way, inboxes, and departures: what says that a rank's own message has left."""

from __future__ import annotations

from sim.engine.kernel import ops, state
from sim.engine.kernel.compiling import compiled, in_place
from sim.engine.kernel.heap import next_number, push, schedule
from sim.engine.kernel.layout import AWAITS, DEPART, KINDS_BITS, NEVER_S
from sim.engine.kernel.memory import has

NONE = -1


@in_place
def wanted(S, strand, inbox, sender):
    """Whether the strand that waits at an inbox waits for this sender."""
    if inbox.kind == ops.RANGE:
        return inbox.first <= sender < inbox.stop
    if inbox.kind == ops.ONE:
        return sender == inbox.first
    if inbox.kind == ops.SET:
        return has(S, strand, inbox.first, sender)
    at = strand.list_at + state.number_list(S, inbox.first).at
    for i in range(state.length(S, strand.number, inbox.first).value):
        if state.item(S, at + i).value == sender:
            return True
    return False


@in_place
def keep(S, inbox, m):
    """A message that nobody waits for stays in the inbox."""
    state.message(S, m).next = NONE
    if inbox.tail >= 0:
        state.message(S, inbox.tail).next = m
    else:
        inbox.head = m
    inbox.tail = m


@in_place
def find(S, strand, inbox):
    """Take the first message that the strand waits for from the inbox; -1 if there is none."""
    before, m = NONE, inbox.head
    while m >= 0 and not wanted(S, strand, inbox, state.message(S, m).sender):
        before, m = m, state.message(S, m).next
    if m < 0:
        return NONE
    if before < 0:
        inbox.head = state.message(S, m).next
    else:
        state.message(S, before).next = state.message(S, m).next
    if inbox.tail == m:
        inbox.tail = before
    return m


@in_place
def has_room(S):
    """Whether there is room for one more message, and for its departure."""
    messages = S.free_messages > 0 or S.used_messages < S.message_count
    return messages and (S.free_departures > 0 or S.used_departures < S.departure_count)


@in_place
def new_number(S):
    """The number of a message: one that is free again, or the first that was never used."""
    if S.free_messages > 0:
        S.free_messages -= 1
        return state.free_message(S, S.free_messages).value
    S.used_messages += 1
    return S.used_messages - 1


@in_place
def new_message(S, sender, receiver, here, count, size_bytes):
    """The number of a new message."""
    S.messages += 1
    m = new_number(S)
    message = state.message(S, m)
    message.sender, message.receiver, message.local = sender, receiver, here
    message.count, message.bytes = count, size_bytes
    message.note = message.last = message.variable = message.asks = 0
    message.departure = message.waiter = message.call = NONE
    message.asked_s = NEVER_S
    return m


@in_place
def free_message(S, m):
    """A message has been taken."""
    state.free_message(S, S.free_messages).value = m
    S.free_messages += 1


@in_place
def new_departure(S):
    """Something to wait for until a message has left."""
    if S.free_departures > 0:
        S.free_departures -= 1
        d = state.free_departure(S, S.free_departures).value
    else:
        d = S.used_departures
        S.used_departures += 1
    departure = state.departure(S, d)
    departure.at_s, departure.over, departure.waiter, departure.next = NEVER_S, 0, NONE, NONE
    return d


@in_place
def leaves_at(S, d, at_s):
    """It is known when the message will have left: an event, once somebody waits for it."""
    if at_s > S.now_s:
        departure = state.departure(S, d)
        departure.at_s, departure.number = at_s, next_number(S)
    else:
        schedule(S, at_s, DEPART, d, 0)


@in_place
def has_left(S, departure):
    """Whether the message has left, or would have by an event before this one."""
    left_s = departure.at_s
    return departure.over == 1 or left_s < S.now_s or (left_s == S.now_s and departure.number < S.number)


@compiled
def wait_for(S, d, s):
    """Wait until the message has left."""
    departure = state.departure(S, d)
    departure.waiter = s
    if departure.at_s < NEVER_S:
        push(S, departure.at_s, departure.number, DEPART | (d << KINDS_BITS))
        departure.at_s = NEVER_S
    return AWAITS


@in_place
def free_departure(S, d):
    """The message has left, and nothing waits for that any more."""
    state.free_departure(S, S.free_departures).value = d
    S.free_departures += 1


@in_place
def go_on_later(S, s):
    """A strand goes on once this one waits; the last one first."""
    state.todo(S, S.todo).value = s
    S.todo += 1
