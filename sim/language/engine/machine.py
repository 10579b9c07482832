"""The loop of events: what happens, and which text goes on by it."""

from __future__ import annotations

from sim.language.engine import layout as op
from sim.language.engine.codes import go_on, is_short_of_pauses, stops_at
from sim.language.engine.cores import (
    balance,
    compute,
    has_turned,
    late_since,
    next_stage,
    polls_no_more,
)
from sim.language.engine.events import arrives_at, drawn, first, goes_on_at, is_drawn, is_full, key_of, moves
from sim.language.engine.flows import all_there, flows_on, land
from sim.language.engine.layout import KINDS, NONE, State
from sim.language.engine.mail import arrive, overtakes, reach
from sim.language.engine.texts import look_again, over, waits_no_more


def simulate(S: State) -> int:
    """Go on until all main texts have ended, no event is left, or something is short; what it ends with."""
    status = op.DONE
    if S.running != NONE:
        t = S.running
        S.running = NONE
        status = go_on(S, t)
    while status == op.DONE and S.left > 0 and (event := first(S)) != NONE:
        what = event & (KINDS - 1)
        which = event // KINDS
        status = short_of(S, what, which)
        if status != op.DONE:
            return status
        S.at_once = 0 if S.heap_time[0] > S.now else S.at_once + 1
        S.now = S.heap_time[0]
        S.happened += 1
        if S.happened >= S.pause_at:
            return op.PAUSED
        t = happens(S, what, which)
        if t == NONE:
            continue
        if S.at_once > op.MOST_AT_ONCE * S.texts:
            return stops_at(S, t, op.ENDLESS)
        if S.poll_s == 0.0 or not notices_later(S, t):
            over(S, t, False)
            status = go_on(S, t)
    return status


def short_of(S: State, what: int, which: int) -> int:
    """What is short for the first event; DONE if nothing is."""
    if is_full(S):
        return op.SHORT_OF_EVENTS
    if what == op.ASKED and is_short_of_pauses(S, S.message_from[which]):
        return op.SHORT_OF_NOISE
    if what == op.ARRIVES and not is_drawn(S, op.DELAYS, S.message_to[which], S.rank_came[S.message_to[which]]):
        return op.SHORT_OF_NOISE
    return op.DONE


def happens(S: State, what: int, which: int) -> int:
    """The first event happens; the text that goes on by it, or NONE."""
    key = S.heap_key[0]
    S.hole = 1
    if what == op.GOES_ON:
        if S.now != S.text_due[which] or key != key_of(S, which):  # it was planned anew
            return NONE
        return NONE if S.text_in[which] == op.TURNING and has_turned(S, which) else which
    if what == op.ARRIVES:
        return is_there(S, which)
    if what == op.LANDS:
        return land(S, which)
    if what == op.REACHES:
        reach(S, which)
    elif what == op.MOVES:
        moves(S, S.message_to[which], S.message_passed[which])
    elif what == op.TAKEN:
        look_again(S, which)
    elif what == op.BALANCES:
        balance(S, which)
    elif what == op.POLLS:
        next_stage(S, which, key)
    else:
        flows_on(S, what, which)
    return NONE


def is_there(S: State, message: int) -> int:
    """A message has come, and is there unless it waits for one before it or is held back; the text that goes on, or NONE."""
    to = S.message_to[message]
    waits: bool = S.may_overtake != 0 and overtakes(S, message)
    if not waits and S.factor_sole[op.DELAYS] != 0.0 and S.message_hop[message] != op.HELD_BACK:
        waits = True
        S.message_hop[message] = op.HELD_BACK
        arrives_at(S, message, S.now + drawn(S, op.DELAYS, to, S.rank_came[to]))
        S.rank_came[to] += 1
    if S.shares_ports:
        all_there(S, message)
    return NONE if waits else arrive(S, message)


def notices_later(S: State, t: int) -> bool:
    """Text t goes on after its rank's next poll, if it has waited where ranks poll."""
    rank = S.text_rank[t]
    what = S.text_in[t]
    if what == op.NOTICING:
        S.text_due[t] = -1.0
        compute(S, t, S.rank_device[rank], S.poll_s / S.rank_speed[rank])
        return True
    if what != op.TAKING and what != op.WAITING and what != op.LANDING:
        return False
    seconds = late_since(S, rank, S.text_since[t]) if S.text_since[t] >= 0.0 else 0.0
    polls_no_more(S, t)
    if seconds > 0.0:
        waits_no_more(S, t)
        S.text_in[t] = op.NOTICING
        goes_on_at(S, t, S.now + seconds)
    return seconds > 0.0
