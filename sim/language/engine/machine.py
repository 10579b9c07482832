"""The loop of events, and the small machine that obeys a text's op-codes until it must wait."""

from __future__ import annotations

import math

from sim.language.engine import layout as op
from sim.language.engine.cores import compute, computed, has_slept, sleep
from sim.language.engine.costs import cold, drawn, is_drawn
from sim.language.engine.flows import all_there, ask, flows_on, land, send
from sim.language.engine.heap import arrives_at, goes_on_at, is_full, key_of, pop
from sim.language.engine.idle import moves
from sim.language.engine.layout import KINDS, NONE, OPERANDS, State
from sim.language.engine.mail import arrive, found, give_back, overtakes, part, post, value
from sim.language.engine.polls import begins_to_poll, late, next_stage, polls_no_more
from sim.language.engine.ports import reach
from sim.language.engine.rings import joins
from sim.language.engine.texts import (
    beside,
    done_at,
    end,
    handle_of,
    look_again,
    may_come,
    pass_on,
    start,
    stop,
    took,
    wait,
    waits_no_more,
)
from sim.language.engine.turns import balance, has_turned


def simulate(S: State) -> int:
    """Go on until all main texts have ended, no event is left, or something is short; what it ends with."""
    if S.running != NONE:
        which = S.running
        S.running = NONE
        status = go_on(S, which)
        if status != op.DONE:
            return status
    while S.left > 0 and S.events > 0:
        if is_full(S):
            return op.SHORT_OF_EVENTS
        S.at_once += 1
        if S.heap_time[0] > S.now:
            S.at_once = 0
        S.now = S.heap_time[0]
        what = S.heap_what[0]
        which = what // KINDS
        what = what % KINDS
        S.happened += 1
        if S.happened >= S.pause_at:
            return op.PAUSED
        if what == op.REACHES:
            pop(S)
            reach(S, which)
            continue
        if what == op.LOOKS or what == op.BEGINS or what == op.ASKED or what == op.LEAVES or what == op.LOST:
            if what == op.ASKED and is_short_of_pauses(S, S.message_from[which]):
                return op.SHORT_OF_PAUSES
            pop(S)
            flows_on(S, what, which)
            continue
        if what == op.MOVES:
            pop(S)
            moves(S, S.message_to[which], S.message_passed[which])
            continue
        if what == op.TAKEN:
            pop(S)
            look_again(S, which)
            continue
        if what == op.BALANCES:
            pop(S)
            balance(S, which)
            continue
        if what == op.POLLS:
            key = S.heap_key[0]
            pop(S)
            next_stage(S, which, key)
            continue
        if what == op.LANDS:
            pop(S)
            which = land(S, which)
            if which == NONE:
                continue
        elif what == op.ARRIVES:
            status = NONE if S.may_overtake and overtakes(S, which) else hold_back(S, which)
            if status != op.DONE and status != NONE:
                return status
            if status == op.DONE:
                pop(S)
            if S.shares_ports:
                all_there(S, which)
            if status == NONE:
                continue
            which = arrive(S, which)
            if which == NONE:
                continue
        else:
            is_void: bool = S.heap_time[0] != S.text_due[which] or S.heap_key[0] != S.text_key[which]
            pop(S)
            if is_void or (S.text_in[which] == op.TURNING and has_turned(S, which)):
                continue
        if S.at_once > op.MOST_AT_ONCE * S.texts:
            return stops_at(S, which, S.text_at[which], op.ENDLESS)
        if S.poll_s > 0.0 and notices_later(S, which):
            continue
        resume(S, which)
        status = go_on(S, which)
        if status != op.DONE:
            return status
    return op.DONE


def hold_back(S: State, message: int) -> int:
    """Hold a message back that has just come, the first event: NONE if it is now; DONE if it is there."""
    to = S.message_to[message]
    if S.factor_sole[op.DELAYS] == 0.0 or S.message_hop[message] == op.HELD_BACK:
        return op.DONE
    if not is_drawn(S, op.DELAYS, to, S.rank_came[to]):
        return op.SHORT_OF_NOISE
    pop(S)
    S.message_hop[message] = op.HELD_BACK
    arrives_at(S, message, S.now + drawn(S, op.DELAYS, to, S.rank_came[to]))
    S.rank_came[to] += 1
    return NONE


def resume(S: State, t: int) -> None:
    """What text t has waited in is over."""
    what = S.text_in[t]
    if what == op.SLEEPING:
        has_slept(S, t)
    elif what == op.COMPUTING or what == op.SHARING or what == op.TURNING:
        computed(S, t, False)
    elif what == op.WAITING:
        waits_no_more(S, t)
        S.text_at[t] += 1
    elif what == op.TAKING or what == op.FOLLOWING:
        waits_no_more(S, t)
    S.text_in[t] = op.NOTHING
    S.text_due[t] = -1.0


def notices_later(S: State, t: int) -> bool:
    """Text t goes on after its rank's next poll, if it has waited where ranks poll."""
    rank = S.text_rank[t]
    if S.text_in[t] == op.NOTICING:
        S.text_due[t] = -1.0
        compute(S, t, S.rank_device[rank], S.poll_s / S.rank_speed[rank])
        return True
    if (
        S.text_in[t] != op.TAKING
        and S.text_in[t] != op.FOLLOWING
        and S.text_in[t] != op.WAITING
        and S.text_in[t] != op.LANDING
    ):
        return False
    seconds = late(S, t)
    polls_no_more(S, t)
    if seconds > 0.0:
        waits_no_more(S, t)
        S.text_in[t] = op.NOTICING
        goes_on_at(S, t, S.now + seconds)
    return seconds > 0.0


def is_short_of_pauses(S: State, rank: int) -> bool:
    """Whether more pauses must be drawn before a rank that polls waits once more."""
    return S.poll_s > 0.0 and S.rank_pauses[rank] + S.rank_polling[rank] + 1 > S.pauses


def stops_at(S: State, t: int, at: int, status: int) -> int:
    """Text t goes on at this place of the code, once what is short is there."""
    S.text_at[t] = at
    S.running = t
    return status


def go_on(S: State, t: int) -> int:
    """Obey the op-codes of text t until it waits or ends, or something is short."""
    base = t * S.width
    rank = S.text_rank[t]
    at = S.text_at[t]
    jumps = 0
    x = 0.0
    while True:
        row = at * OPERANDS
        code = S.code[row]
        a = S.code[row + 1]
        if code < op.JUMP:
            S.registers[base + a] = reckon(code, value(S, t, S.code[row + 2]), value(S, t, S.code[row + 3]))
        elif code == op.JUMP:
            jumps += 1
            if jumps > op.MOST_JUMPS:
                return stops_at(S, t, at, op.ENDLESS)
            at = a
            continue
        elif code == op.JUMP_IF_NOT:
            if value(S, t, S.code[row + 2]) == 0.0:
                at = a
                continue
        elif code == op.REPEAT:  # a: to; 2: the register that is counted; 3: its end
            x = S.registers[base + S.code[row + 2]] + 1.0
            S.registers[base + S.code[row + 2]] = x
            jumps += 1
            if jumps > op.MOST_JUMPS:
                return stops_at(S, t, at, op.ENDLESS)
            if x < value(S, t, S.code[row + 3]):
                at = a
                continue
        elif code == op.PART:  # a: the part's start and stop; the piece's start and stop, k, of n
            x = value(S, t, S.code[row + 2])
            y = value(S, t, S.code[row + 3]) - x
            k = int(value(S, t, S.code[row + 4]))
            n = int(value(S, t, S.code[row + 5]))
            S.registers[base + a] = x + part(y, k, n)
            S.registers[base + a + 1] = x + part(y, k + 1, n)
        elif code == op.SLICE:  # a: start and stop; the piece's start and stop, from, to
            x = value(S, t, S.code[row + 2])
            y = value(S, t, S.code[row + 3]) - x
            S.registers[base + a] = x + within(value(S, t, S.code[row + 4]), y)
            y = x + within(value(S, t, S.code[row + 5]), y)
            S.registers[base + a + 1] = y if y > S.registers[base + a] else S.registers[base + a]
        elif code == op.STEP:
            S.registers[base + a] = S.rank_step[rank]
        elif code == op.NOW:
            S.registers[base + a] = S.now
        elif code == op.GET:  # a: registers; the list, which one, how many numbers it has
            which = int(value(S, t, S.code[row + 2]))
            n = S.code[row + 4]
            k = int(value(S, t, S.code[row + 3])) * n
            if k < 0:
                k += S.list_length[which]
            if k < 0 or k + n > S.list_length[which]:
                return stops_at(S, t, at, op.NO_SUCH_PLACE)
            k += S.list_begin[which]
            for which in range(n):
                S.registers[base + a + which] = S.items[k + which]
        elif code == op.SET or code == op.REMOVE:  # a: a number; the list, which one
            which = int(value(S, t, S.code[row + 2]))
            k = int(value(S, t, S.code[row + 3]))
            if k < 0:
                k += S.list_length[which]
            if k < 0 or k >= S.list_length[which]:
                return stops_at(S, t, at, op.NO_SUCH_PLACE)
            if code == op.SET:
                S.items[S.list_begin[which] + k] = value(S, t, a)
            else:
                S.registers[base + a] = S.items[S.list_begin[which] + k]
                S.list_length[which] -= 1
                for n in range(S.list_begin[which] + k, S.list_begin[which] + S.list_length[which]):
                    S.items[n] = S.items[n + 1]
        elif code == op.LENGTH:
            S.registers[base + a] = S.list_length[int(value(S, t, S.code[row + 2]))] // S.code[row + 3]
        elif code == op.NEW_LIST:
            which = S.fixed_lists + t * S.own_lists + S.code[row + 2]
            S.list_length[which] = 0
            S.registers[base + a] = which
        elif code == op.APPEND:  # a: the list; 2: what, 3: how many numbers it has
            which = int(value(S, t, a))
            n = S.code[row + 3]
            if not has_room(S, which, S.list_length[which] + n):
                return stops_at(S, t, at, op.SHORT_OF_ITEMS)
            for k in range(n):
                S.items[S.list_begin[which] + S.list_length[which] + k] = value(S, t, S.code[row + 2] + k)
            S.list_length[which] += n
        elif code == op.BEGIN_STEP:
            S.rank_leads[rank] |= S.code[row + 2]
            begin_round(S, rank, int(value(S, t, a)))
        elif code == op.END_STEP:
            if S.step_end[S.rank_step[rank]] < S.now:
                S.step_end[S.rank_step[rank]] = S.now
            if S.rank_step[rank] == S.warmup - 1:
                S.measured_from = S.now
            if S.rank_step[rank] >= S.last_step:
                S.last_step = S.rank_step[rank]
                S.measured_to = S.now
        elif code == op.COMPUTED:  # a: samples; of how many items
            x = value(S, t, a) * value(S, t, S.code[row + 2])
            adds(S, rank, x)
            S.step_computed[S.rank_step[rank]] += x
            S.rank_last[rank] = S.rank_step[rank]
        elif code == op.ADDED:
            adds(S, rank, value(S, t, a) * S.vector_items)
        elif code == op.ANEW:
            S.rank_used[rank] = 1
        elif code == op.UPDATED:  # a: samples; of how many items
            S.rank_used[rank] = 1
            x = value(S, t, a) * value(S, t, S.code[row + 2])
            if S.rank_last[rank] == S.rank_step[rank]:
                S.step_replicated[S.rank_step[rank]] += x
            else:
                S.step_served[S.rank_step[rank]] += x
        elif code == op.POST:  # a: the handle; the receiver, items, share, whether of the gradient, and done when taken
            if S.free_message == NONE:
                return stops_at(S, t, at, op.SHORT_OF_MESSAGES)
            if is_full(S):
                return stops_at(S, t, at, op.SHORT_OF_EVENTS)
            if S.window_room > 0 and 2 * S.windows >= S.window_room:
                return stops_at(S, t, at, op.SHORT_OF_WINDOWS)
            if not is_drawn(S, op.SHARES, rank, S.rank_flows[rank]):
                return stops_at(S, t, at, op.SHORT_OF_NOISE)
            S.text_count[t] += 1
            k = int(value(S, t, S.code[row + 2]))
            if k < 0 or k >= S.ranks:
                return stops_at(S, t, at, op.NO_SUCH_RANK)
            y = S.message_background_s
            n = S.code[row + 6]
            if S.rank_host[rank] == S.rank_host[k]:
                y = S.local_background_s
                n = 1
            if y > 0.0:
                if S.free_text == NONE or S.text_next[S.free_text] == NONE:
                    S.text_count[t] -= 1
                    return stops_at(S, t, at, op.SHORT_OF_TEXTS)
                pass_on(S, rank, y)
                pass_on(S, k, y)
            which = post(S, t, k, value(S, t, S.code[row + 3]), value(S, t, S.code[row + 4]), S.code[row + 5] != 0)
            x = send(S, which)
            S.message_serial[which] = 0
            if n:
                S.message_serial[which] = 1 + S.posted % (op.GENERATION - 1)
                x = 1.0 * op.GENERATION * (op.GENERATION + S.message_serial[which]) + which
            S.registers[base + a] = x
        elif (
            code == op.START
        ):  # a: the handle; where it begins, its first argument, how many, the list to wait for and from where
            if S.free_text == NONE:
                return stops_at(S, t, at, op.SHORT_OF_TEXTS)
            if is_full(S):
                return stops_at(S, t, at, op.SHORT_OF_EVENTS)
            n = start_list(S, t, row)
            if n < 0:
                return stops_at(S, t, at, op.SHORT_OF_ITEMS)
            S.rank_started[rank] += 1
            which = start(S, rank, S.rank_started[rank], S.code[row + 2])
            for k in range(S.code[row + 4]):
                S.registers[which * S.width + 2 + k] = S.registers[base + S.code[row + 3] + k]
            S.registers[base + a] = handle_of(S, which)
        elif code == op.BESIDE:  # a: where the text of background work begins
            if S.rank_beside[rank] != S.rank_round[rank]:
                if S.free_text == NONE:
                    return stops_at(S, t, at, op.SHORT_OF_TEXTS)
                if S.rank_besides[rank] >= S.moments:
                    return stops_at(S, t, at, op.SHORT_OF_MOMENTS)
                beside(S, rank, a)
        elif code == op.SAME_SIZE:
            if value(S, t, a) != value(S, t, S.code[row + 2]):
                S.about = NONE
                return stops_at(S, t, at, op.SIZES_DIFFER)
        elif code == op.RING:
            if S.rings:
                S.text_at[t] = at
                k = joins(S, t)
                return k if k == op.DONE else stops_at(S, t, at, k)
        elif code == op.STOP:
            stop(S, value(S, t, a))
        elif code == op.WAIT or code == op.WAIT_ALL:
            S.text_at[t] = at
            x = done_at(S, t)
            if x == math.inf:
                return stops_at(S, t, at, op.NO_SUCH_PLACE)
            if x < 0.0 or x > S.now:
                if is_short_of_pauses(S, rank):
                    return stops_at(S, t, at, op.SHORT_OF_PAUSES)
                S.text_count[t] += 1
                wait(S, t, x)
                return op.DONE
        elif code == op.TAKE or code == op.FOLLOW:
            S.text_at[t] = at
            k = take(S, t, row)
            if k == NONE:
                return op.DONE
            if k != op.DONE:
                return stops_at(S, t, at, k)
        elif code == op.LAND:  # a: a message that was announced, or NONE
            k = int(S.registers[base + a])
            if k != NONE:
                if is_short_of_pauses(S, rank):
                    return stops_at(S, t, at, op.SHORT_OF_PAUSES)
                S.text_at[t] = at + 1
                S.text_in[t] = op.LANDING
                S.text_due[t] = -1.0
                S.text_lands[t] = k
                S.flow_taker[k] = t
                if S.poll_s > 0.0:
                    S.text_key[t] = key_of(S, rank, S.text_number[t], S.text_count[t])
                    begins_to_poll(S, t)
                ask(S, k, S.flow_found[k])
                return op.DONE
        elif code == op.IS_AWAITED:
            S.registers[base + a] = 1.0 if S.text_takes[t] != NONE else 0.0
        elif code == op.TOOK:
            took(S, t)
        elif code == op.IN_STEP:
            k = int(value(S, t, a))
            if k < 0 or k > S.steps:
                return stops_at(S, t, at, op.NO_SUCH_PLACE)
            S.rank_step[rank] = k
        elif code == op.IS_WARM:
            S.rank_warm[rank] = S.now
        elif code == op.WORK or code == op.COMPUTE or code == op.FETCH or code == op.EVALUATE:  # a: seconds
            x = value(S, t, a)
            k = S.rank_round[rank] if S.rank_round[rank] > 0 else 0
            if code == op.COMPUTE:  # 2: seconds more of a cold rank; 3: which factors
                which = S.code[row + 3]
                if which == op.UPDATES:
                    k = S.rank_updates[rank]
                if not is_drawn(S, which, rank, k):
                    return stops_at(S, t, at, op.SHORT_OF_NOISE)
                if which == op.UPDATES:
                    S.rank_updates[rank] += 1
                x = x * drawn(S, which, rank, k) + cold(S, rank, value(S, t, S.code[row + 2]))
            elif code == op.FETCH:  # a: the share of a minibatch
                if not is_drawn(S, op.INPUT, rank, k):
                    return stops_at(S, t, at, op.SHORT_OF_NOISE)
                if S.rank_fetched[rank] == k:
                    x = 0.0
                else:
                    if x == 1.0:
                        S.rank_fetched[rank] = k
                    x = drawn(S, op.INPUT, rank, k) * S.input_s * x + (S.resume_s if S.rank_has_slept[rank] else 0.0)
                    S.rank_has_slept[rank] = 0
            elif code == op.EVALUATE and (S.rank_step[rank] + 1) % S.evaluate_every:
                x = 0.0
            if x > 0.0:
                S.text_at[t] = at + 1
                S.text_count[t] += 1
                k = S.rank_device[rank]
                if code == op.COMPUTE and S.code[row + 3] == op.PASSES:
                    k = S.rank_passes[rank]
                compute(S, t, k, x / S.rank_speed[rank])
                return op.DONE
        elif code == op.SLEEP:
            k = S.rank_round[rank] if S.rank_round[rank] > 0 else 0
            n = S.rank_calls[rank]
            if S.sole_sleep < 0.0 and (k >= S.sleeps or n >= S.sleep_calls):
                return stops_at(S, t, at, op.SHORT_OF_SLEEPS)
            S.rank_calls[rank] += 1
            x = S.sole_sleep if S.sole_sleep >= 0.0 else S.sleep[(n * S.sleeps + k) * S.ranks + rank]
            if x > 0.0:
                S.rank_has_slept[rank] = 1
                S.text_at[t] = at + 1
                S.text_count[t] += 1
                sleep(S, t, x + S.oversleep_s)
                return op.DONE
        else:  # END
            if S.text_count[t] >> S.count_bits or S.text_number[t] >> S.text_bits:
                return op.TOO_LONG
            end(S, t)
            return op.DONE
        at += 1


def begin_round(S: State, rank: int, step: int) -> None:
    """A rank begins its next round, in this step."""
    S.rank_step[rank] = step
    S.rank_round[rank] += 1
    if S.rank_round[rank] > 0:
        S.rank_calls[rank] = 0


def adds(S: State, rank: int, samples_items: float) -> None:
    """Something is added to the gradient of a rank."""
    if S.rank_used[rank]:
        S.rank_samples[rank] = 0.0
    S.rank_samples[rank] += samples_items
    S.rank_used[rank] = 0


def reckon(code: int, x: float, y: float) -> float:
    """An op-code that gives a number of one or two others."""
    if code == op.MOVE:
        return x
    if code == op.ADD:
        return x + y
    if code == op.SUBTRACT:
        return x - y
    if code == op.MULTIPLY:
        return x * y
    if code == op.DIVIDE:
        return x / y if y != 0.0 else math.nan
    if code == op.FLOOR_DIVIDE:
        return math.floor(x / y) if y != 0.0 else math.nan
    if code == op.MODULO:
        return x - y * math.floor(x / y) if y != 0.0 else math.nan
    if code == op.EXCLUSIVE_OR:
        return int(x) ^ int(y)
    if code == op.LESS:
        return 1.0 if x < y else 0.0
    if code == op.LESS_OR_EQUAL:
        return 1.0 if x <= y else 0.0
    if code == op.EQUAL:
        return 1.0 if x == y else 0.0
    if code == op.UNEQUAL:
        return 1.0 if x != y else 0.0
    if code == op.LEAST:
        return x if x < y else y
    if code == op.MOST:
        return x if x > y else y
    return math.trunc(x)  # WHOLE


def within(at: float, items: float) -> float:
    """An end of a slice: from the end if below 0, and never outside."""
    if at < 0.0:
        at += items
    if at < 0.0:
        return 0.0
    return at if at < items else items


def has_room(S: State, which: int, length: int) -> bool:
    """Make room for so many numbers in a list; whether there is enough."""
    room = 2 * length + 6
    if length <= S.list_room[which]:
        return True
    if S.items_used + room > S.item_room:
        return False
    for k in range(S.list_length[which]):
        S.items[S.items_used + k] = S.items[S.list_begin[which] + k]
    S.list_begin[which] = S.items_used
    S.list_room[which] = room
    S.items_used += room
    return True


def start_list(S: State, t: int, row: int) -> int:
    """Copy the handles that the next text waits for to its first list; how many, or NONE without room."""
    to = S.fixed_lists + S.free_text * S.own_lists
    S.list_length[to] = 0
    if S.code[row + 5] == NONE:
        return 0
    which = int(S.registers[t * S.width + S.code[row + 5]])
    first = int(S.registers[t * S.width + S.code[row + 5] + 1])
    n = S.list_length[which] - first
    if not has_room(S, to, n):
        return NONE
    for k in range(n):
        S.items[S.list_begin[to] + k] = S.items[S.list_begin[which] + first + k]
    S.list_length[to] = n
    return n


def take(S: State, t: int, row: int) -> int:
    """Obey a TAKE or a FOLLOW at the text's place: DONE, SIZES_DIFFER, or NONE if the text waits."""
    rank = S.text_rank[t]
    at = t * S.width + S.code[row + 1]
    follows: bool = S.code[row] == op.FOLLOW
    flags = op.NEWEST | op.SIZED if follows else S.code[row + 5]
    frm = int(value(S, t, S.code[row + 2]))
    k = frm
    if follows and (frm < 0 or frm >= S.ranks):
        return op.NO_SUCH_RANK
    if S.events + 4 * S.texts + 8 > S.event_room:
        return op.SHORT_OF_EVENTS
    message = found(S, t, flags & op.NEWEST != 0)
    if message == NONE and is_short_of_pauses(S, rank):
        return op.SHORT_OF_PAUSES
    if message == NONE:
        S.text_due[t] = -1.0
        S.text_count[t] += 1
        if follows:
            if not may_come(S, t):
                S.registers[at] = 0.0
                return op.DONE
            if not S.code[row + 4]:
                S.registers[at] = 1.0
                S.registers[at + 1] = NONE
                return op.DONE
            S.rank_followed[frm] = 1
        elif flags & op.LASTS:
            if not may_come(S, t):
                S.registers[at] = -1.0
                return op.DONE
            while k < value(S, t, S.code[row + 3]):
                S.rank_followed[k] = 1
                k += int(value(S, t, S.code[row + 4]))
        elif flags & op.UNTIL:
            if value(S, t, S.code[row + 6]) <= S.now:
                S.registers[at] = -1.0
                return op.DONE
            goes_on_at(S, t, value(S, t, S.code[row + 6]))
        S.text_key[t] = key_of(S, rank, S.text_number[t], S.text_count[t])
        S.text_in[t] = op.FOLLOWING if follows else op.TAKING
        if S.poll_s > 0.0 and (
            follows or value(S, t, S.code[row + 2]) != rank or value(S, t, S.code[row + 3]) > rank + 1
        ):
            begins_to_poll(S, t)
        S.text_next[t] = S.rank_takers[rank]
        S.rank_takers[rank] = t
        return NONE
    if flags & op.SIZED and S.message_items[message] != value(S, t, S.code[row + (3 if follows else 7)]):
        S.about = message
        return op.SIZES_DIFFER
    if follows:
        S.registers[at] = 1.0
        S.registers[at + 1] = S.message_step[message]
        S.registers[at + 2] = S.message_share[message]
        at -= 2
    else:
        S.registers[at] = S.message_from[message]
        S.registers[at + 1] = S.message_step[message]
        S.registers[at + 2] = S.message_items[message]
        S.registers[at + 3] = S.message_samples[message]
        S.registers[at + 4] = S.message_share[message]
    S.registers[at + 5] = NONE
    if S.flow_announced[message]:
        S.registers[at + 5] = message
        S.flow_found[message] = S.now
    elif S.message_serial[message]:
        S.text_takes[t] = message
    else:
        give_back(S, message)
    return op.DONE
