"""Messages that are posted, arrive in the receiver's box, and are taken out of it."""

from __future__ import annotations

from sim.language.engine.heap import arrives_at, key_of, pop, push
from sim.language.engine.layout import FOLLOW, KINDS, LOST, NONE, OPERANDS, TAKEN, State


def value(S: State, t: int, operand: int) -> float:
    """What an operand is: a register of the text, or a constant."""
    if operand >= 0:
        return S.registers[t * S.width + operand]
    return S.constants[-1 - operand]


def part(items: float, k: int, n: int) -> float:
    """Where the k-th of n parts begins."""
    whole = int(items)
    return whole * k // n


def post(S: State, t: int, to: int, items: float, share: float, is_gradient: bool) -> int:
    """Text t posts a message, for which there is room."""
    message = S.free_message
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
    S.message_there[message] = 0
    if S.shares_ports:
        S.flow_announced[message] = 0
        S.flow_moves[message] = 0
        S.flow_first[message] = NONE
        S.flow_taker[message] = NONE
    S.rank_underway[to] += 1
    return message


def fits(S: State, t: int, message: int) -> bool:
    """Whether text t waits for a message of this sender; its place in the code is a TAKE or a FOLLOW."""
    row = S.text_at[t] * OPERANDS
    if S.message_text[message] != S.text_number[t]:
        return False
    if S.code[row] == FOLLOW:
        return S.message_from[message] == value(S, t, S.code[row + 2])
    far = S.message_from[message] - int(value(S, t, S.code[row + 2]))
    if far == 0:
        return value(S, t, S.code[row + 3]) > S.message_from[message]
    step = int(value(S, t, S.code[row + 4]))
    return far > 0 and far % step == 0 and S.message_from[message] < value(S, t, S.code[row + 3])


def is_fellow(S: State, message: int, other: int) -> bool:
    """Whether another message under way is of the same text and pair of ranks."""
    return (
        S.message_from[other] == S.message_from[message]
        and S.message_to[other] == S.message_to[message]
        and S.message_text[other] == S.message_text[message]
        and S.message_there[other] < 2
    )


def overtakes(S: State, message: int) -> bool:
    """Where messages may overtake: whether one, the first event, comes before one that was posted sooner; then it waits for that."""
    if S.message_there[message] == 2:
        return False
    if S.rank_underway[S.message_to[message]] > 1:
        for other in range(S.message_room):
            if is_fellow(S, message, other) and S.message_key[other] < S.message_key[message]:
                S.message_there[message] = 1
                pop(S)
                return True
    S.message_there[message] = 2
    hand_over_next(S, message)
    return False


def hand_over_next(S: State, message: int) -> None:
    """After a message those that have waited for it are handed over."""
    after = NONE
    if S.rank_underway[S.message_to[message]] > 1:
        for other in range(S.message_room):
            if is_fellow(S, message, other) and (after == NONE or S.message_key[other] < S.message_key[after]):
                after = other
        if after != NONE and S.message_there[after] == 1:
            arrives_at(S, after, S.now)


def arrive(S: State, message: int) -> int:
    """A message is there; the text that has waited for it, or NONE."""
    to = S.message_to[message]
    before = NONE
    t = S.rank_takers[to]
    S.rank_underway[to] -= 1
    S.message_there[message] = 3
    if not S.rank_main[to]:
        taken(S, message)
        if S.message_text[message] == 0:
            lose(S, message)
            return NONE
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


def found(S: State, t: int, newest: bool) -> int:
    """The first message that fits text t, taken out of the box, or the newest: then older ones are lost; NONE if none is there."""
    rank = S.text_rank[t]
    before = NONE  # of the one that is looked at
    chosen = NONE
    chosen_before = NONE
    message = S.rank_box[rank]
    while message != NONE:
        after = S.message_next[message]
        if fits(S, t, message):
            if chosen != NONE:
                unlink(S, rank, chosen, chosen_before)
                lose(S, chosen)
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


def lose(S: State, message: int) -> None:
    """Nobody takes a message."""
    taken(S, message)
    if S.flow_announced[message]:
        push(S, S.now, S.message_key[message], message * KINDS + LOST)
    else:
        give_back(S, message)


def lose_all(S: State, rank: int) -> None:
    """Nobody takes the messages of a main text, which has ended."""
    before = NONE
    message = S.rank_box[rank]
    while message != NONE:
        after = S.message_next[message]
        if S.message_text[message] == 0:
            unlink(S, rank, message, before)
            lose(S, message)
        else:
            before = message
        message = after


def unlink(S: State, rank: int, message: int, before: int) -> None:
    """Take a message out of a box."""
    if before == NONE:
        S.rank_box[rank] = S.message_next[message]
    else:
        S.message_next[before] = S.message_next[message]
    if S.rank_box_end[rank] == message:
        S.rank_box_end[rank] = before


def taken(S: State, message: int) -> None:
    """A message is taken, or its receiver has ended: who has waited for that looks again."""
    if S.message_serial[message]:
        push(S, S.now, S.message_key[message], S.message_from[message] * KINDS + TAKEN)
        S.message_serial[message] = 0


def give_back(S: State, message: int) -> None:
    """A message's place is free."""
    taken(S, message)
    S.message_from[message] = NONE
    S.message_next[message] = S.free_message
    S.free_message = message


def is_underway(S: State, sender: int, to: int, number: int) -> bool:
    """Whether a message that a text of this number has not in its box has yet to arrive."""
    if S.rank_underway[to] == 0:
        return False
    for message in range(S.message_room):
        if (
            S.message_from[message] == sender
            and S.message_to[message] == to
            and S.message_text[message] == number
            and S.message_there[message] < 3
        ):
            return True
    return False
