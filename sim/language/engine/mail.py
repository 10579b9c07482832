"""Messages that are posted, arrive in the receiver's box, and are taken out of it."""

from __future__ import annotations

from sim.language.engine.heap import key_of, push
from sim.language.engine.layout import FOLLOW, KINDS, NONE, OPERANDS, TAKEN, State
from sim.language.engine.plain import compiled, double, integer
from sim.language.engine.ports import leave


@compiled
def value(S: State, t: integer, operand: integer) -> double:
    """What an operand is: a register of the text, or a constant."""
    if operand >= 0:
        return S.registers[t * S.width + operand]
    return S.constants[-1 - operand]


@compiled
def post(S: State, t: integer, to: integer, items: double, share: double, is_gradient: bool) -> double:
    """Text t posts a message, for which there is room; when it has left."""
    message: integer = S.free_message
    S.free_message = S.message_next[message]
    S.posted += 1
    S.message_from[message] = S.text_rank[t]
    S.message_to[message] = to
    S.message_hop[message] = 0
    S.message_text[message] = S.text_number[t]
    S.message_step[message] = S.rank_step[S.text_rank[t]]
    S.message_key[message] = key_of(S, S.text_rank[t], S.text_number[t], S.text_count[t])
    S.message_items[message] = items
    S.message_bytes[message] = S.header_bytes + items * S.item_bytes * share
    S.message_share[message] = share
    S.message_samples[message] = 0.0
    if is_gradient and not S.rank_used[S.text_rank[t]]:
        S.message_samples[message] = S.rank_samples[S.text_rank[t]] / S.vector_items
    S.rank_underway[to] += 1
    return leave(S, message)


@compiled
def fits(S: State, t: integer, message: integer) -> bool:
    """Whether text t waits for a message of this sender; its place in the code is a TAKE or a FOLLOW."""
    row: integer = S.text_at[t] * OPERANDS
    far: integer
    step: integer
    if S.message_text[message] != S.text_number[t]:
        return False
    if S.code[row] == FOLLOW:
        return S.message_from[message] == value(S, t, S.code[row + 2])
    far = S.message_from[message] - int(value(S, t, S.code[row + 2]))
    if far == 0:
        return value(S, t, S.code[row + 3]) > S.message_from[message]
    step = int(value(S, t, S.code[row + 4]))
    return far > 0 and far % step == 0 and S.message_from[message] < value(S, t, S.code[row + 3])


@compiled
def arrive(S: State, message: integer) -> integer:
    """A message is there; the text that has waited for it, or NONE."""
    to: integer = S.message_to[message]
    before: integer = NONE
    t: integer = S.rank_takers[to]
    S.rank_underway[to] -= 1
    if not S.rank_main[to]:
        taken(S, message)
    S.message_next[message] = NONE
    if S.rank_box[to] == NONE:
        S.rank_box[to] = message
    else:
        S.message_next[S.rank_box_end[to]] = message
    S.rank_box_end[to] = message
    while t != NONE and not fits(S, t, message):
        before = t
        t = S.text_next[t]
    if t != NONE:
        if before == NONE:
            S.rank_takers[to] = S.text_next[t]
        else:
            S.text_next[before] = S.text_next[t]
    return t


@compiled
def found(S: State, t: integer, newest: bool) -> integer:
    """The first message that fits text t, taken out of the box, or the newest: then older ones are lost; NONE if none is there."""
    rank: integer = S.text_rank[t]
    before: integer = NONE  # of the one that is looked at
    chosen: integer = NONE
    chosen_before: integer = NONE
    message: integer = S.rank_box[rank]
    after: integer
    while message != NONE:
        after = S.message_next[message]
        if fits(S, t, message):
            if chosen != NONE:
                unlink(S, rank, chosen, chosen_before)
                give_back(S, chosen)
                if before == chosen:
                    before = chosen_before
            chosen = message
            chosen_before = before
            if not newest:
                break
        before = message
        message = after
    if chosen != NONE:
        unlink(S, rank, chosen, chosen_before)
    return chosen


@compiled
def unlink(S: State, rank: integer, message: integer, before: integer) -> None:
    """Take a message out of a box."""
    if before == NONE:
        S.rank_box[rank] = S.message_next[message]
    else:
        S.message_next[before] = S.message_next[message]
    if S.rank_box_end[rank] == message:
        S.rank_box_end[rank] = before


@compiled
def taken(S: State, message: integer) -> None:
    """A message is taken, or its receiver has ended: who has waited for that looks again."""
    if S.message_serial[message]:
        push(S, S.now, S.message_key[message], S.message_from[message] * KINDS + TAKEN)
        S.message_serial[message] = 0


@compiled
def give_back(S: State, message: integer) -> None:
    """A message's place is free."""
    taken(S, message)
    S.message_from[message] = NONE
    S.message_next[message] = S.free_message
    S.free_message = message


@compiled
def is_underway(S: State, sender: integer, to: integer, number: integer) -> bool:
    """Whether a message that a text of this number has not in its box has yet to arrive."""
    message: integer
    if S.rank_underway[to] == 0:
        return False
    for message in range(S.message_room):
        if S.message_from[message] == sender and S.message_to[message] == to and S.message_text[message] == number:
            return True
    return False
