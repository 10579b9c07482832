"""Texts of a rank that are started, waited for and stopped."""

from __future__ import annotations

import math

from sim.language.engine.cores import compute, computed, has_slept
from sim.language.engine.heap import goes_on_at, key_of
from sim.language.engine.idle import settle
from sim.language.engine.layout import (
    COMPUTING,
    ENDED,
    FIRST,
    FOLLOW,
    FOLLOWING,
    GENERATION,
    IN_LINE,
    LANDING,
    LASTS,
    MESSAGES,
    NONE,
    NOTHING,
    OPERANDS,
    PIECES,
    QUEUED,
    RINGING,
    SHARING,
    SLEEPING,
    TAKING,
    THREADS,
    TURNING,
    WAIT,
    WAITING,
    State,
)
from sim.language.engine.mail import give_back, is_underway, lose_all, taken, value
from sim.language.engine.plain import compiled, double, integer
from sim.language.engine.polls import begins_to_poll, polls_no_more
from sim.language.engine.rings import lets_go


@compiled
def made(S: State, rank: integer, number: integer, at: integer) -> integer:
    """Another text of a rank, which goes on from a place in the code; there is room for it."""
    t: integer = S.free_text
    S.free_text = S.text_next[t]
    S.text_rank[t] = rank
    S.text_number[t] = number
    S.registers[t * S.width] = rank
    S.registers[t * S.width + 1] = S.fixed_lists + t * S.own_lists
    S.text_count[t] = 0
    S.text_at[t] = at
    S.text_in[t] = NOTHING
    S.text_since[t] = -1.0
    S.text_worked[t] = NONE
    S.text_of_rank[t] = 1
    S.text_due[t] = -1.0
    S.text_takes[t] = NONE
    return t


@compiled
def start(S: State, rank: integer, number: integer, at: integer) -> integer:
    """Another text of a rank begins now."""
    t: integer = made(S, rank, number, at)
    goes_on_at(S, t, S.now)
    return t


@compiled
def pass_on(S: State, rank: integer, seconds: double) -> None:
    """Other threads of a rank work for some seconds for a message, from now on."""
    t: integer
    S.rank_asides[rank] += 1
    t = made(S, rank, 2 * THREADS + S.rank_asides[rank] % THREADS, S.last_row)
    S.text_of_rank[t] = 0
    S.text_count[t] = 1
    compute(S, t, S.rank_device[rank], seconds / S.rank_speed[rank])


@compiled
def beside(S: State, rank: integer, at: integer) -> None:
    """Other threads of a rank do a round's background work, in pieces at moments within as long as the round before took."""
    round: integer = S.rank_round[rank] if S.rank_round[rank] > 0 else 0
    span: double = S.now - S.rank_beside_at[rank] - S.rank_slept[rank]
    t: integer = start(S, rank, THREADS + round, at)
    k: integer
    S.text_of_rank[t] = 0
    for k in range(PIECES):
        S.registers[t * S.width + FIRST + k] = (
            S.now + span * S.moment[(S.rank_besides[rank] * PIECES + k) * S.ranks + rank]
        )
    S.rank_slept[rank] = 0.0
    S.rank_beside_at[rank] = S.now
    S.rank_beside[rank] = S.rank_round[rank]
    S.rank_besides[rank] += 1


@compiled
def handle_of(S: State, t: integer) -> double:
    """The handle of a text."""
    return -1.0 - t - 1.0 * GENERATION * S.text_generation[t]


@compiled
def text_of(S: State, handle: double) -> integer:
    """The text of a handle; NONE if it has ended, or it is a message's."""
    number: integer = int(-1.0 - handle)
    t: integer = number % GENERATION
    if t >= MESSAGES:
        return NONE
    return t if S.text_generation[t] == number // GENERATION else NONE


@compiled
def is_message(handle: double) -> bool:
    """Whether it is a handle of a message."""
    return handle >= 0.0 or int(-1.0 - handle) % GENERATION >= MESSAGES


@compiled
def is_leaving(S: State, handle: double) -> bool:
    """Whether it is a handle of a message that has not left yet."""
    number: integer = int(-1.0 - handle)
    message: integer = number % GENERATION - MESSAGES
    return message >= 0 and S.message_generation[message] == number // GENERATION


@compiled
def done_at(S: State, t: integer) -> double:
    """When enough is done of what text t waits for, as far as that is known; below 0 while texts are missing."""
    row: integer = S.text_at[t] * OPERANDS
    which: integer
    first: integer
    stop: integer
    wants: integer
    if S.code[row] == WAIT:
        return known_at(S, value(S, t, S.code[row + 1]))
    which = int(value(S, t, S.code[row + 1]))
    first = S.list_begin[which] + int(value(S, t, S.code[row + 2]))
    stop = S.list_begin[which] + S.list_length[which]
    wants = stop - first
    if S.code[row + 4]:
        wants = int(value(S, t, S.code[row + 3]))
        if wants > stop - first:
            return math.inf  # never
    if wants == stop - first:
        return last_of(S, first, stop)
    return soonest_of(S, first, stop, wants)


@compiled
def known_at(S: State, handle: double) -> double:
    """When a handle is done: a message's is the time at which it has left."""
    coded: double = handle - 1.0 * GENERATION * GENERATION
    slot: integer
    if coded >= 0.0:
        slot = int(coded) % GENERATION
        return -1.0 if S.message_serial[slot] == int(coded) // GENERATION else S.now
    if handle >= 0.0:
        return handle
    return -1.0 if text_of(S, handle) != NONE or is_leaving(S, handle) else S.now


@compiled
def last_of(S: State, first: integer, stop: integer) -> double:
    """When all handles of a stretch of a list are done."""
    k: integer
    at: double
    latest: double = S.now
    for k in range(first, stop):
        at = known_at(S, S.items[k])
        if at < 0.0:
            return -1.0
        if at > latest:
            latest = at
    return latest


@compiled
def soonest_of(S: State, first: integer, stop: integer, wants: integer) -> double:
    """When so many handles of a stretch of a list are done."""
    k: integer
    at: double
    latest: double = S.now  # those until then are done
    nearest: double
    done: integer = 0
    for k in range(first, stop):
        at = known_at(S, S.items[k])
        if at >= 0.0 and at <= S.now:
            done += 1
    while done < wants:
        nearest = -1.0
        for k in range(first, stop):
            at = known_at(S, S.items[k])
            if at > latest and (nearest < 0.0 or at < nearest):
                nearest = at
        if nearest < 0.0:
            return -1.0
        for k in range(first, stop):
            if known_at(S, S.items[k]) == nearest:
                done += 1
        latest = nearest
    return latest


@compiled
def wait(S: State, t: integer, at: double) -> None:
    """Text t waits, until a time that is known or for a text."""
    rank: integer = S.text_rank[t]
    S.text_in[t] = WAITING
    S.text_next[t] = S.rank_waiters[rank]
    S.rank_waiters[rank] = t
    S.text_due[t] = -1.0
    S.text_key[t] = key_of(S, rank, S.text_number[t], S.text_count[t])
    if at >= 0.0:
        goes_on_at(S, t, at)
    if S.poll_s > 0.0 and waits_for_messages(S, t):
        begins_to_poll(S, t)


@compiled
def waits_for_messages(S: State, t: integer) -> bool:
    """Whether no handle that text t waits for is a text's."""
    row: integer = S.text_at[t] * OPERANDS
    which: integer
    k: integer
    if S.code[row] == WAIT:
        return is_message(value(S, t, S.code[row + 1]))
    which = int(value(S, t, S.code[row + 1]))
    for k in range(S.list_begin[which] + int(value(S, t, S.code[row + 2])), S.list_begin[which] + S.list_length[which]):
        if not is_message(S.items[k]):
            return False
    return True


@compiled
def waits_no_more(S: State, t: integer) -> None:
    """Take text t out of the chain of those that wait for handles, for messages, or for other messages to be sent or taken."""
    rank: integer = S.text_rank[t]
    before: integer = NONE
    one: integer = S.rank_takers[rank]
    if S.text_in[t] == WAITING:
        one = S.rank_waiters[rank]
    elif S.text_in[t] == IN_LINE:
        one = S.rank_line[rank]
    while one != t and one != NONE:
        before = one
        one = S.text_next[one]
    if one == NONE:  # a message has taken it out
        return
    if before != NONE:
        S.text_next[before] = S.text_next[t]
    elif S.text_in[t] == WAITING:
        S.rank_waiters[rank] = S.text_next[t]
    elif S.text_in[t] == IN_LINE:
        S.rank_line[rank] = S.text_next[t]
    else:
        S.rank_takers[rank] = S.text_next[t]


@compiled
def gets_in_line(S: State, t: integer) -> bool:
    """Text t sends or takes a message: whether it waits, as another text of its rank does so."""
    rank: integer = S.text_rank[t]
    if S.rank_overhead[rank] == NONE:
        S.rank_overhead[rank] = t
    if S.rank_overhead[rank] == t:
        return False
    S.text_in[t] = IN_LINE
    S.text_due[t] = -1.0
    S.text_next[t] = S.rank_line[rank]
    S.rank_line[rank] = t
    return True


@compiled
def leaves_line(S: State, t: integer) -> None:
    """Text t computes no more, or is stopped: if it has sent or taken a message, the one that has waited longest is next."""
    rank: integer = S.text_rank[t]
    one: integer = S.rank_line[rank]
    if S.rank_overhead[rank] == t:
        S.rank_overhead[rank] = NONE
        if one != NONE:
            while S.text_next[one] != NONE:
                one = S.text_next[one]
            waits_no_more(S, one)
            S.rank_overhead[rank] = one
            goes_on_at(S, one, S.now)


@compiled
def end(S: State, t: integer) -> None:
    """Text t has ended: who has waited for it goes on."""
    rank: integer = S.text_rank[t]
    S.text_in[t] = ENDED
    S.text_due[t] = -1.0
    S.text_generation[t] += 1
    S.text_next[t] = S.free_text
    S.free_text = t
    look_again(S, rank)
    if S.text_number[t] == 0:
        main_ends(S, rank)


@compiled
def look_again(S: State, rank: integer) -> None:
    """Texts of a rank that wait for handles look again."""
    one: integer = S.rank_waiters[rank]
    at: double
    while one != NONE:
        at = done_at(S, one)
        if at >= 0.0 and (S.text_due[one] < 0.0 or at < S.text_due[one]):
            goes_on_at(S, one, at)
        one = S.text_next[one]


@compiled
def lasts(S: State, t: integer) -> bool:
    """Whether a text waits for a message as long as one may come."""
    return S.text_in[t] == TAKING and S.code[S.text_at[t] * OPERANDS + 5] & LASTS != 0


@compiled
def may_come(S: State, t: integer) -> bool:
    """Whether a rank goes on that may send what a main text waits for, or has sent what is under way to it."""
    row: integer = S.text_at[t] * OPERANDS
    frm: integer = int(value(S, t, S.code[row + 2]))
    end: integer = frm + 1 if S.code[row] == FOLLOW else int(value(S, t, S.code[row + 3]))
    far: integer = 1 if S.code[row] == FOLLOW else int(value(S, t, S.code[row + 4]))
    while frm < end:
        if S.rank_main[frm] or is_underway(S, frm, S.text_rank[t], 0):
            return True
        frm += far
    return False


@compiled
def main_ends(S: State, rank: integer) -> None:
    """The main text of a rank has ended: ranks that follow it and have all its messages go on."""
    one: integer = S.rank_box[rank]
    while one != NONE:
        taken(S, one)
        one = S.message_next[one]
    settle(S, rank)
    S.rank_main[rank] = 0
    lose_all(S, rank)
    S.left -= 1
    if S.rank_followed[rank]:
        for one in range(S.ranks):
            if S.rank_main[one] and (S.text_in[one] == FOLLOWING or lasts(S, one)) and not may_come(S, one):
                goes_on_at(S, one, S.now)


@compiled
def stop(S: State, handle: double) -> None:
    """The text of a handle ends where it is; what it computes is given up."""
    t: integer = text_of(S, handle) if handle < 0.0 else NONE
    if t == NONE:
        return
    if S.text_in[t] == SLEEPING:
        has_slept(S, t)
    elif S.text_in[t] == COMPUTING or S.text_in[t] == QUEUED or S.text_in[t] == SHARING or S.text_in[t] == TURNING:
        computed(S, t, True)
    elif S.text_in[t] == TAKING or S.text_in[t] == WAITING or S.text_in[t] == IN_LINE:
        waits_no_more(S, t)
        polls_no_more(S, t)
    elif S.text_in[t] == RINGING and S.text_due[t] < 0.0:
        lets_go(S, t)
    elif S.text_in[t] == LANDING:
        S.flow_taker[S.text_lands[t]] = NONE
        taken(S, S.text_lands[t])
        polls_no_more(S, t)
    leaves_line(S, t)
    took(S, t)
    end(S, t)


@compiled
def took(S: State, t: integer) -> None:
    """Text t has taken a message for which its sender may wait, or is stopped while it does."""
    if S.text_takes[t] != NONE:
        give_back(S, S.text_takes[t])
        S.text_takes[t] = NONE
