"""Texts of a rank that are started, waited for and stopped."""

from __future__ import annotations

import math

from sim.language.engine import layout as op
from sim.language.engine.cores import begins_to_poll, compute, computed, polls_no_more
from sim.language.engine.events import drawn, ending, goes_on_at, without, works
from sim.language.engine.layout import NONE, OPERANDS, State
from sim.language.engine.mail import give_back, is_underway, lose_all, taken, value
from sim.language.engine.rings import lets_go


def made(S: State, rank: int, number: int, at: int, of_rank: int) -> int:
    """Another text of a rank, or of other threads there (0), which goes on from a place in the code; there is room for it."""
    t = S.free_text
    S.free_text = S.text_next[t]
    S.text_rank[t] = rank
    S.text_number[t] = number
    S.registers[t * S.width] = rank
    S.registers[t * S.width + 1] = S.fixed_lists + t * S.own_lists
    S.text_count[t] = 0
    S.text_at[t] = at
    S.text_core[t] = NONE
    S.text_of_rank[t] = of_rank
    S.text_due[t] = -1.0
    S.text_takes[t] = NONE
    return t


def pass_on(S: State, rank: int, seconds: float) -> None:
    """Other threads of a rank work for some seconds for a message, from now on."""
    S.rank_asides[rank] += 1
    t = made(S, rank, 2 * op.THREADS + S.rank_asides[rank] % op.THREADS, S.last_row, 0)
    S.text_count[t] = 1
    compute(S, t, S.rank_device[rank], seconds / S.rank_speed[rank])


def beside(S: State, rank: int, at: int) -> None:
    """Other threads of a rank do a round's background work, in pieces at moments within as long as the round before took."""
    round = max(0, S.rank_round[rank])
    span = S.now - S.rank_beside_at[rank] - S.rank_slept[rank]
    t = made(S, rank, op.THREADS + round, at, 0)
    goes_on_at(S, t, S.now)
    for k in range(op.PIECES):
        S.registers[t * S.width + op.FIRST + k] = S.now + span * drawn(S, op.MOMENTS, rank, S.rank_moments[rank] + k)
    S.rank_slept[rank] = 0.0
    S.rank_beside_at[rank] = S.now
    S.rank_beside[rank] = S.rank_round[rank]
    S.rank_moments[rank] += op.PIECES


def is_text(handle: float) -> bool:
    """Whether it is a handle of a text, not of a message."""
    return handle < 0.0 and int(-1.0 - handle) % op.GENERATION < op.MESSAGES


def is_going(S: State, handle: float) -> bool:
    """Whether the text of a handle below 0 has not ended, or its message, which shares ports, has not left."""
    number = int(-1.0 - handle)
    t = number % op.GENERATION
    now = S.text_generation[t] if t < op.MESSAGES else S.message_generation[t - op.MESSAGES]
    return now == number // op.GENERATION


def done_at(S: State, t: int) -> float:
    """When enough is done of what text t waits for; infinity if that is not known, below 0 if there is not so much."""
    row = S.text_at[t] * OPERANDS
    if S.code[row] == op.WAIT:
        return known_at(S, value(S, t, row + 1))
    which = int(value(S, t, row + 1))
    first = S.list_begin[which] + int(value(S, t, row + 2))
    stop = S.list_begin[which] + S.list_length[which]
    wants = int(value(S, t, row + 3)) if S.code[row + 4] else stop - first
    soonest = math.inf if wants <= stop - first else -1.0
    while soonest > S.now:  # later times are gone through downwards
        done = 0
        before = S.now
        for k in range(first, stop):
            at = known_at(S, S.items[k])
            if at < soonest:
                done += 1
                before = max(before, at)
        if done < wants:
            break
        soonest = before
    return soonest


def known_at(S: State, handle: float) -> float:
    """When a handle is done, if that is known, else infinity: a message's is the time at which it has left."""
    coded = handle - 1.0 * op.GENERATION * op.GENERATION
    if coded >= 0.0:
        slot = int(coded) % op.GENERATION
        return math.inf if S.message_serial[slot] == int(coded) // op.GENERATION else S.now
    if handle >= 0.0:
        return handle
    return math.inf if is_going(S, handle) else S.now


def wait(S: State, t: int, at: float) -> None:
    """Text t waits, until a time that is known or for a text."""
    rank = S.text_rank[t]
    S.text_in[t] = op.WAITING
    S.text_next[t] = S.rank_waiters[rank]
    S.rank_waiters[rank] = t
    if at < math.inf:
        goes_on_at(S, t, at)
    if S.poll_s > 0.0 and waits_for_messages(S, t):
        begins_to_poll(S, t)


def waits_for_messages(S: State, t: int) -> bool:
    """Whether no handle that text t waits for is a text's."""
    row = S.text_at[t] * OPERANDS
    if S.code[row] == op.WAIT:
        return not is_text(value(S, t, row + 1))
    which = int(value(S, t, row + 1))
    for k in range(S.list_begin[which] + int(value(S, t, row + 2)), S.list_begin[which] + S.list_length[which]):
        if is_text(S.items[k]):
            return False
    return True


def waits_no_more(S: State, t: int) -> None:
    """Take text t out of the chain of those that wait for handles, for messages, or for others to be sent or taken."""
    rank = S.text_rank[t]
    if S.text_in[t] == op.WAITING:
        S.rank_waiters[rank] = without(S, S.rank_waiters[rank], t)
    elif S.text_in[t] == op.IN_LINE:
        S.rank_line[rank] = without(S, S.rank_line[rank], t)
    else:
        S.rank_takers[rank] = without(S, S.rank_takers[rank], t)


def gets_in_line(S: State, t: int) -> bool:
    """Text t sends or takes a message: whether it waits, as another text of its rank does so."""
    rank = S.text_rank[t]
    if S.rank_overhead[rank] == NONE:
        S.rank_overhead[rank] = t
    if S.rank_overhead[rank] == t:
        return False
    S.text_in[t] = op.IN_LINE
    S.rank_line[rank] = ending(S, S.rank_line[rank], t)
    return True


def leaves_line(S: State, t: int) -> None:
    """Text t computes no more, or is stopped: if it has sent or taken a message, the one that has waited longest is next."""
    rank = S.text_rank[t]
    one = S.rank_line[rank]
    if S.rank_overhead[rank] == t:
        S.rank_overhead[rank] = one
        if one != NONE:
            S.rank_line[rank] = S.text_next[one]
            goes_on_at(S, one, S.now)


def end(S: State, t: int) -> None:
    """Text t has ended: who has waited for it goes on."""
    rank = S.text_rank[t]
    S.text_generation[t] += 1
    S.text_next[t] = S.free_text
    S.free_text = t
    look_again(S, rank)
    if S.text_number[t] == 0:
        main_ends(S, rank)


def look_again(S: State, rank: int) -> None:
    """Texts of a rank that wait for handles look again."""
    one = S.rank_waiters[rank]
    while one != NONE:
        at = done_at(S, one)
        if at < math.inf and (S.text_due[one] < 0.0 or at < S.text_due[one]):
            goes_on_at(S, one, at)
        one = S.text_next[one]


def may_come(S: State, t: int) -> bool:
    """Whether a rank goes on that may send what a main text waits for, or has sent what is under way to it."""
    row = S.text_at[t] * OPERANDS
    frm = int(value(S, t, row + 2))
    far = int(value(S, t, row + 4))
    while frm < value(S, t, row + 3):
        if S.rank_main[frm] or is_underway(S, frm, S.text_rank[t], 0):
            return True
        frm += far
    return False


def main_ends(S: State, rank: int) -> None:
    """The main text of a rank has ended: ranks that follow it and have all its messages go on."""
    one = S.rank_box[rank]
    while one != NONE:
        taken(S, one)
        one = S.message_next[one]
    works(S, rank, 0)
    S.rank_main[rank] = 0
    lose_all(S, rank)
    S.left -= 1
    if S.rank_followed[rank]:
        for one in range(S.ranks):
            takes: bool = S.rank_main[one] != 0 and S.text_in[one] == op.TAKING
            if takes and S.code[S.text_at[one] * OPERANDS + 5] & op.LASTS and not may_come(S, one):
                goes_on_at(S, one, S.now)


def over(S: State, t: int, stopped: bool) -> None:
    """What text t has waited in is over, or it is stopped."""
    what = S.text_in[t]
    if what == op.SLEEPING:
        works(S, S.text_rank[t], -S.text_of_rank[t])
        S.rank_slept[S.text_rank[t]] += S.now - S.text_work[t]
    elif what == op.COMPUTING or what == op.QUEUED or what == op.SHARING or what == op.TURNING:
        works(S, S.text_rank[t], -S.text_of_rank[t])
        computed(S, t)
        leaves_line(S, t)
    elif what == op.TAKING or what == op.WAITING or what == op.IN_LINE:
        waits_no_more(S, t)
        S.text_at[t] += what == op.WAITING
    elif what == op.RINGING and S.text_due[t] < 0.0:
        lets_go(S, t)
    elif what == op.LANDING and stopped:
        S.flow_taker[S.text_lands[t]] = NONE
        taken(S, S.text_lands[t])
    S.text_in[t] = op.NOTHING
    S.text_due[t] = -1.0


def stop(S: State, handle: float) -> None:
    """The text of a handle ends where it is; what it computes is given up."""
    t = int(-1.0 - handle) % op.GENERATION
    if is_text(handle) and is_going(S, handle):
        over(S, t, True)
        polls_no_more(S, t)
        leaves_line(S, t)
        took(S, t)
        end(S, t)


def took(S: State, t: int) -> None:
    """Text t has taken a message for which its sender may wait, or is stopped while it does."""
    if S.text_takes[t] != NONE:
        give_back(S, S.text_takes[t])
        S.text_takes[t] = NONE
