"""Messages: on their way, in the receiver's box, and taken out of it.

They pass the ports of a path, each for the seconds that their bytes take there (LogGP). A rank has a place at each level: its own or its
host's port, the uplink of its rack. A path goes out at the levels below the first that both ends have in common, and in at the same
levels downwards. A port's number is even on the way out, and odd on the way in.
"""

from __future__ import annotations

import math

from sim.language.engine import layout as op
from sim.language.engine.events import arrives_at, key_of, moves, push, without
from sim.language.engine.layout import KINDS, NONE, OPERANDS, State


def climb_of(S: State, frm: int, to: int) -> int:
    """How many levels a path between two hosts goes up, and down again."""
    climb = 1
    while climb < S.levels and S.place[climb * S.ranks + frm] != S.place[climb * S.ranks + to]:
        climb += 1
    return climb


def port_of(S: State, frm: int, to: int, hop: int) -> int:
    """A port of a path."""
    climb = climb_of(S, frm, to)
    if hop < climb:
        return 2 * (hop * S.ranks + S.place[hop * S.ranks + frm])
    hop = 2 * climb - 1 - hop
    return 2 * (hop * S.ranks + S.place[hop * S.ranks + to]) + 1


def level_of(S: State, port: int) -> int:
    """The level of a port."""
    return port // (2 * S.ranks)


def comes(S: State, message: int, begin: float, end: float) -> None:
    """A message passes its last port from `begin` on, and is there at `end`."""
    to = S.message_to[message]
    if begin <= S.now or begin <= S.rank_since[to]:
        moves(S, to, end)
    elif begin < end:
        S.message_passed[message] = end
        push(S, begin, S.message_key[message], message * KINDS + op.MOVES)
    arrives_at(S, message, end)


def leave(S: State, message: int) -> float:
    """A message is posted; when its last byte has left the sender."""
    sender = S.message_from[message]
    if S.rank_host[sender] == S.rank_host[S.message_to[message]]:
        begin = max(S.now, S.local_free[sender])
        S.local_free[sender] = begin + S.message_bytes[message] / S.local_bandwidth
        device = S.rank_device[sender]
        is_woken: bool = S.local_wakes == 0 or S.device_busy[device] < S.device_cores[device]
        comes(S, message, begin, S.local_free[sender] + (S.local_latency_s if is_woken else 0.0))
        moves(S, sender, S.local_free[sender])
        return S.local_free[sender]
    S.message_hop[message] = 0
    S.message_passed[message] = 0.0
    begin = reach(S, message)
    moves(S, sender, begin)
    return begin


def begins_at(S: State, port: int, level: int, size: float, now: float) -> float:
    """A message of so many bytes has reached a port: when it begins to pass."""
    seconds = S.gap_s + size / S.bandwidth[level]
    begin = max(now, S.port_free[port])
    if level == 0 and S.sustained < math.inf:
        S.port_earned[port] += size / S.sustained
        begin = max(begin, S.port_earned[port] - seconds)
    S.port_free[port] = begin + seconds
    return begin


def reach(S: State, message: int) -> float:
    """A message reaches the next port of its path, and takes its turn there; when its last byte has passed."""
    frm = S.message_from[message]
    to = S.message_to[message]
    hop = S.message_hop[message]
    climb = 1 if S.levels == 1 else climb_of(S, frm, to)
    is_out: bool = hop < climb
    level = hop if is_out else 2 * climb - 1 - hop
    port = 2 * (level * S.ranks + S.place[level * S.ranks + (frm if is_out else to)]) + (0 if is_out else 1)
    begin = begins_at(S, port, level, S.message_bytes[message], S.now)
    end = max(S.message_passed[message], S.port_free[port])
    held = 0.0
    if S.window_room > 0:
        if hop == 0:
            S.message_held[message] = max(0.0, windowed(S, message, begin) - end)
        held = S.message_held[message]
    if hop + 1 == 2 * climb:
        comes(S, message, begin, end + held)
    else:
        S.message_passed[message] = end + S.latency_s
        S.message_hop[message] = hop + 1
        at = (end if S.whole_messages else begin) + S.latency_s
        push(S, at, S.message_key[message], message * KINDS + op.REACHES)
    return end + held


def windowed(S: State, message: int, now: float) -> float:
    """When the last byte of a message leaves by its connection's window: sim.platform.slow_start.Connection."""
    k = connection(S, S.message_from[message] * S.ranks + S.message_to[message])
    begin = max(now, S.window_free[k])
    timeouts = int((begin - S.window_free[k]) / (op.TIMEOUT_S + S.round_trip_s))
    window = max(S.initial_bytes, S.window_bytes[k] * 0.5 ** min(timeouts, 99))
    passed = 0.0
    left = S.message_bytes[message]
    full = S.bandwidth[0] * S.round_trip_s
    while left > window and window < full and window < S.most_bytes:
        passed = passed + S.round_trip_s
        left = left - window
        window = min(2.0 * window, S.most_bytes)
    if left > window and window < full:
        rounds = math.ceil(left / window) - 1.0
        passed = passed + rounds * S.round_trip_s
        left = left - rounds * window
    S.window_bytes[k] = min(window + left, S.most_bytes)
    S.window_free[k] = begin + (passed + left / S.bandwidth[0])
    return S.window_free[k]


def connection(S: State, pair: int) -> int:
    """The place of the window of two ranks, for which there is room, by open addressing."""
    k = pair % S.window_room
    while S.window_pair[k] != pair:
        if S.window_pair[k] == NONE:
            S.window_pair[k] = pair
            S.window_bytes[k] = S.initial_bytes
            S.window_free[k] = 0.0
            S.windows += 1
        else:
            k = (k + 1) % S.window_room
    return k


def operand(S: State, t: int, number: int) -> float:
    """What an operand is: a register of the text, or a constant."""
    return S.registers[t * S.width + number] if number >= 0 else S.constants[-1 - number]


def value(S: State, t: int, place: int) -> float:
    """What the operand at a place of the code is."""
    return operand(S, t, S.code[place])


def part(items: float, k: int, n: int) -> float:
    """Where the k-th of n parts begins."""
    whole = int(items)
    return whole * k // n


def new_message(S: State, t: int, to: int, items: float, share: float, is_gradient: bool) -> int:
    """Text t posts a message, for which there is room."""
    message = S.free_message
    S.free_message = S.message_next[message]
    S.posted += 1
    S.message_from[message] = S.text_rank[t]
    S.message_to[message] = to
    S.message_hop[message] = 0
    S.message_text[message] = S.text_number[t]
    S.message_step[message] = S.rank_step[S.text_rank[t]]
    S.message_key[message] = key_of(S, t)
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
    """Whether text t waits for a message of this sender; its place in the code is a TAKE."""
    row = S.text_at[t] * OPERANDS
    if S.message_text[message] != S.text_number[t]:
        return False
    far = S.message_from[message] - int(value(S, t, row + 2))
    if far == 0:
        return value(S, t, row + 3) > S.message_from[message]
    step = int(value(S, t, row + 4))
    return far > 0 and far % step == 0 and S.message_from[message] < value(S, t, row + 3)


def is_fellow(S: State, message: int, other: int) -> bool:
    """Whether another message under way is of the same text and pair of ranks."""
    return (
        S.message_from[other] == S.message_from[message]
        and S.message_to[other] == S.message_to[message]
        and S.message_text[other] == S.message_text[message]
        and S.message_there[other] < 2
    )


def overtakes(S: State, message: int) -> bool:
    """Where messages may overtake: whether one comes before one that was posted sooner; then it waits for that."""
    after = NONE  # the next one, which has waited for this
    if S.message_there[message] == 2:
        return False
    S.message_there[message] = 2
    if S.rank_underway[S.message_to[message]] == 1:
        return False
    for other in range(S.message_room):
        if is_fellow(S, message, other) and S.message_key[other] < S.message_key[message]:
            S.message_there[message] = 1
            return True
        if is_fellow(S, message, other) and (after == NONE or S.message_key[other] < S.message_key[after]):
            after = other
    if after != NONE and S.message_there[after] == 1:
        arrives_at(S, after, S.now)
    return False


def arrive(S: State, message: int) -> int:
    """A message is there; the text that has waited for it, or NONE."""
    to = S.message_to[message]
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
        t = S.text_next[t]
    if t != NONE:
        S.rank_takers[to] = without(S, S.rank_takers[to], t)
    return t


def found(S: State, t: int, newest: bool) -> int:
    """The first message that fits text t, taken out of the box, or the newest: then older ones are lost; NONE if none is there."""
    rank = S.text_rank[t]
    before = NONE  # of the one that is looked at
    chosen = NONE
    message = S.rank_box[rank]
    while message != NONE and (newest or chosen == NONE):
        after = S.message_next[message]
        if fits(S, t, message):
            unlink(S, rank, message, before)
            if chosen != NONE:
                lose(S, chosen)
            chosen = message
        else:
            before = message
        message = after
    return chosen


def lose(S: State, message: int) -> None:
    """Nobody takes a message."""
    taken(S, message)
    if S.flow_announced[message]:
        push(S, S.now, S.message_key[message], message * KINDS + op.LOST)
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
        S.message_serial[message] = 0
        if S.rank_waiters[S.message_from[message]] != NONE:
            push(S, S.now, S.message_key[message], S.message_from[message] * KINDS + op.TAKEN)


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
