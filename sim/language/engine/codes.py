"""The small machine that obeys a text's op-codes until it must wait."""

from __future__ import annotations

import math

from sim.language.engine import layout as op
from sim.language.engine.cores import begins_to_poll, compute
from sim.language.engine.events import cold, drawn, goes_on_at, is_drawn, is_full, works
from sim.language.engine.flows import ask, send
from sim.language.engine.layout import NONE, OPERANDS, State
from sim.language.engine.mail import found, give_back, new_message, operand, part, value
from sim.language.engine.rings import joins
from sim.language.engine.texts import (
    beside,
    done_at,
    end,
    gets_in_line,
    made,
    may_come,
    pass_on,
    stop,
    took,
    wait,
)


def is_short_of_pauses(S: State, rank: int) -> bool:
    """Whether more pauses must be drawn before a rank that polls waits once more."""
    return S.poll_s > 0.0 and not is_drawn(S, op.PAUSES, rank, S.rank_pauses[rank] + S.rank_polling[rank])


def stops_at(S: State, t: int, status: int) -> int:
    """Text t goes on where it is, once what is short is there."""
    S.running = t
    return status


def go_on(S: State, t: int) -> int:
    """Obey the op-codes of text t until it waits or ends (DONE), or something is short."""
    base = t * S.width
    at = S.text_at[t]
    jumps = 0
    while True:
        row = at * OPERANDS
        code = S.code[row]
        at += 1
        if code < op.JUMP:
            y = value(S, t, row + 3)
            if code >= op.DIVIDE and code <= op.MODULO and y == 0.0:
                S.text_at[t] = at - 1
                return stops_at(S, t, op.WRONG)
            x = reckon(code, value(S, t, row + 2), y)
            if op.MOVE < code <= op.EXCLUSIVE_OR and op.EXACT < abs(x) < math.inf:
                S.text_at[t] = at - 1
                return stops_at(S, t, op.INEXACT)
            S.registers[base + S.code[row + 1]] = x
        elif code == op.JUMP:
            at = S.code[row + 1]
            jumps += 1
        elif code == op.JUMP_IF_NOT:
            if value(S, t, row + 2) == 0.0:
                at = S.code[row + 1]
        elif code == op.REPEAT:  # to; the register that is counted; its end
            k = base + S.code[row + 2]
            S.registers[k] += 1.0
            if S.registers[k] < value(S, t, row + 3):
                at = S.code[row + 1]
            jumps += 1
        else:
            S.text_at[t] = at - 1
            status = obey(S, t, code, row)
            if status != op.DONE:
                return op.DONE if status == op.WAITS else stops_at(S, t, status)
        if jumps > op.MOST_JUMPS:
            S.text_at[t] = at
            return stops_at(S, t, op.ENDLESS)


def obey(S: State, t: int, code: int, row: int) -> int:
    """An op-code that is no arithmetic: DONE, WAITS if the text waits or has ended, or what is short or wrong."""
    if code >= op.POST:
        return request(S, t, code, row)
    if code >= op.WORK:
        return work(S, t, code, row)
    return counts(S, t, code, row) if code >= op.BEGIN_STEP else gives(S, t, code, row)


def gives(S: State, t: int, code: int, row: int) -> int:
    """An op-code of pieces and lists."""
    to = t * S.width + S.code[row + 1]  # the first register of what comes of it
    if code == op.PART:  # start and stop; the piece's start and stop, k, of n
        x = value(S, t, row + 2)
        y = value(S, t, row + 3) - x
        k = int(value(S, t, row + 4))
        n = int(value(S, t, row + 5))
        if n == 0:
            return op.WRONG
        S.registers[to] = x + part(y, k, n)
        S.registers[to + 1] = x + part(y, k + 1, n)
    elif code == op.SLICE:  # start and stop; the piece's start and stop, from, to
        x = value(S, t, row + 2)
        y = value(S, t, row + 3) - x
        S.registers[to] = x + within(value(S, t, row + 4), y)
        S.registers[to + 1] = max(S.registers[to], x + within(value(S, t, row + 5), y))
    elif code == op.STEP:
        S.registers[to] = S.rank_step[S.text_rank[t]]
    elif code == op.NOW:
        S.registers[to] = S.now
    elif code == op.GET:  # registers; the list, which one, how many numbers it has
        n = S.code[row + 4]
        at = place_in(S, int(value(S, t, row + 2)), int(value(S, t, row + 3)), n)
        if at == NONE:
            return op.WRONG
        for k in range(n):
            S.registers[to + k] = S.items[at + k]
    elif code == op.SET or code == op.REMOVE:  # a number; the list, which one
        which = int(value(S, t, row + 2))
        at = place_in(S, which, int(value(S, t, row + 3)), 1)
        if at == NONE:
            return op.WRONG
        if code == op.SET:
            S.items[at] = value(S, t, row + 1)
        else:
            S.registers[to] = S.items[at]
            S.list_length[which] -= 1
            for k in range(at, S.list_begin[which] + S.list_length[which]):
                S.items[k] = S.items[k + 1]
    elif code == op.LENGTH:
        S.registers[to] = S.list_length[int(value(S, t, row + 2))] // S.code[row + 3]
    elif code == op.NEW_LIST:
        which = S.fixed_lists + t * S.own_lists + S.code[row + 2]
        S.list_length[which] = 0
        S.registers[to] = which
    elif code == op.APPEND:  # the list; what, how many numbers it has
        which = int(value(S, t, row + 1))
        n = S.code[row + 3]
        if not has_room(S, which, S.list_length[which] + n):
            return op.SHORT_OF_ITEMS
        for k in range(n):
            S.items[S.list_begin[which] + S.list_length[which] + k] = operand(S, t, S.code[row + 2] + k)
        S.list_length[which] += n
    return op.DONE


def counts(S: State, t: int, code: int, row: int) -> int:
    """An op-code that counts steps or samples."""
    rank = S.text_rank[t]
    step = S.rank_step[rank]
    if code == op.BEGIN_STEP:
        S.rank_leads[rank] |= S.code[row + 2]
        S.rank_step[rank] = int(value(S, t, row + 1))
        S.rank_round[rank] += 1
        if S.rank_round[rank] > 0:
            S.rank_calls[rank] = 0
    elif code == op.END_STEP:
        S.step_end[step] = max(S.step_end[step], S.now)
        if step == S.warmup - 1:
            S.measured_from = S.now
        if step >= S.last_step:
            S.last_step = step
            S.measured_to = S.now
    elif code == op.COMPUTED:  # samples; of how many items
        x = value(S, t, row + 1) * value(S, t, row + 2)
        adds(S, rank, x)
        S.step_computed[step] += x
        S.rank_last[rank] = step
    elif code == op.ADDED:
        adds(S, rank, value(S, t, row + 1) * S.vector_items)
    elif code == op.ANEW:
        S.rank_used[rank] = 1
    elif code == op.UPDATED:  # samples; of how many items
        S.rank_used[rank] = 1
        x = value(S, t, row + 1) * value(S, t, row + 2)
        if S.rank_last[rank] == step:
            S.step_replicated[step] += x
        else:
            S.step_served[step] += x
    elif code == op.SAME_SIZE:
        if value(S, t, row + 1) != value(S, t, row + 2):
            return op.WRONG
    elif code == op.IN_STEP:
        k = int(value(S, t, row + 1))
        if k < 0 or k > S.steps:
            return op.WRONG
        S.rank_step[rank] = k
    elif code == op.IS_WARM:
        S.rank_warm[rank] = S.now
    return op.DONE


def request(S: State, t: int, code: int, row: int) -> int:
    """An op-code of messages and texts."""
    rank = S.text_rank[t]
    to = t * S.width + S.code[row + 1]
    if code == op.POST:
        return post(S, t, row)
    if code == op.TAKE:
        return take(S, t, row)
    if code == op.WAIT or code == op.WAIT_ALL:
        x = done_at(S, t)
        if x < 0.0:
            return op.WRONG
        if x > S.now:
            if is_short_of_pauses(S, rank):
                return op.SHORT_OF_NOISE
            S.text_count[t] += 1
            wait(S, t, x)
            return op.WAITS
    elif code == op.START:  # the handle; its begin, first argument, how many; what it waits for, a list from a place
        if S.free_text == NONE:
            return op.SHORT_OF_TEXTS
        if is_full(S):
            return op.SHORT_OF_EVENTS
        if start_list(S, t, row) == NONE:
            return op.SHORT_OF_ITEMS
        S.rank_started[rank] += 1
        which = made(S, rank, S.rank_started[rank], S.code[row + 2], 1)
        goes_on_at(S, which, S.now)
        for k in range(S.code[row + 4]):
            S.registers[which * S.width + op.FIRST + k] = S.registers[t * S.width + S.code[row + 3] + k]
        S.registers[to] = -1.0 - which - 1.0 * op.GENERATION * S.text_generation[which]
    elif code == op.BESIDE:  # where the text of background work begins
        if S.rank_beside[rank] != S.rank_round[rank]:
            if S.free_text == NONE:
                return op.SHORT_OF_TEXTS
            if not is_drawn(S, op.MOMENTS, rank, S.rank_moments[rank] + op.PIECES - 1):
                return op.SHORT_OF_NOISE
            beside(S, rank, S.code[row + 1])
    elif code == op.RING:
        if S.rings:
            return joins(S, t)
    elif code == op.STOP:
        stop(S, value(S, t, row + 1))
    elif code == op.LAND:  # a message that was announced, or NONE
        if S.registers[to] != NONE:
            if is_short_of_pauses(S, rank):
                return op.SHORT_OF_NOISE
            message = int(S.registers[to])
            S.text_at[t] += 1
            S.text_in[t] = op.LANDING
            S.text_due[t] = -1.0
            S.text_lands[t] = message
            S.flow_taker[message] = t
            if S.poll_s > 0.0:
                begins_to_poll(S, t)
            ask(S, message, S.flow_found[message])
            return op.WAITS
    elif code == op.TOOK:
        took(S, t)
    elif code == op.END:
        if S.text_count[t] >> S.count_bits or S.text_number[t] >> S.text_bits:
            return op.WRONG
        end(S, t)
        return op.WAITS
    return op.DONE


def work(S: State, t: int, code: int, row: int) -> int:
    """WORK, OVERHEAD, COMPUTE, FETCH of some seconds, or SLEEP: the text goes on behind it, at once if it takes no time."""
    rank = S.text_rank[t]
    k = max(0, S.rank_round[rank])
    device = S.rank_device[rank]
    x = value(S, t, row + 1)
    if code == op.COMPUTE:  # seconds; more of a cold rank; which factors
        which = S.code[row + 3]
        if which == op.UPDATES:
            k = S.rank_updates[rank]
        if not is_drawn(S, which, rank, k):
            return op.SHORT_OF_NOISE
        if which == op.UPDATES:
            S.rank_updates[rank] += 1
        if which == op.PASSES:
            device = S.rank_passes[rank]
        x = x * drawn(S, which, rank, k) + cold(S, rank, value(S, t, row + 2))
    elif code == op.FETCH:  # the share of a minibatch
        if not is_drawn(S, op.INPUT, rank, k):
            return op.SHORT_OF_NOISE
        if S.rank_fetched[rank] == k:
            return op.DONE
        if x == 1.0:
            S.rank_fetched[rank] = k
        x = drawn(S, op.INPUT, rank, k) * S.input_s * x + (S.resume_s if S.rank_has_slept[rank] else 0.0)
        S.rank_has_slept[rank] = 0
    elif code == op.SLEEP:
        which = S.rank_calls[rank]
        if S.sole_sleep < 0.0 and (k >= S.sleeps or which >= S.sleep_calls):
            return op.SHORT_OF_SLEEPS
        S.rank_calls[rank] += 1
        x = S.sole_sleep if S.sole_sleep >= 0.0 else S.sleep[(which * S.sleeps + k) * S.ranks + rank]
    if x > 0.0:
        S.text_count[t] += 1
        if code == op.OVERHEAD and gets_in_line(S, t):
            return op.WAITS
        S.text_at[t] += 1
        if code == op.SLEEP:
            S.rank_has_slept[rank] = 1
            works(S, rank, S.text_of_rank[t])
            S.text_work[t] = S.now
            S.text_in[t] = op.SLEEPING
            goes_on_at(S, t, S.now + (x + S.oversleep_s))
        else:
            compute(S, t, device, x / S.rank_speed[rank])
        return op.WAITS
    return op.DONE


def post(S: State, t: int, row: int) -> int:
    """POST: the handle; the receiver, items, share, whether of the gradient, and done when taken."""
    rank = S.text_rank[t]
    to = int(value(S, t, row + 2))
    if S.free_message == NONE:
        return op.SHORT_OF_MESSAGES
    if is_full(S):
        return op.SHORT_OF_EVENTS
    if S.window_room > 0 and 2 * S.windows >= S.window_room:
        return op.SHORT_OF_WINDOWS
    if not is_drawn(S, op.SHARES, rank, S.rank_flows[rank]):
        return op.SHORT_OF_NOISE
    if to < 0 or to >= S.ranks:
        return op.WRONG
    near: bool = S.rank_host[rank] == S.rank_host[to]
    seconds = S.local_background_s if near else S.message_background_s
    if seconds > 0.0:
        if S.free_text == NONE or S.text_next[S.free_text] == NONE:
            return op.SHORT_OF_TEXTS
        pass_on(S, rank, seconds)
        pass_on(S, to, seconds)
    S.text_count[t] += 1
    message = new_message(S, t, to, value(S, t, row + 3), value(S, t, row + 4), S.code[row + 5] != 0)
    handle = send(S, message)
    S.message_serial[message] = 0
    if near or S.code[row + 6]:
        S.message_serial[message] = 1 + S.posted % (op.GENERATION - 1)
        handle = 1.0 * op.GENERATION * (op.GENERATION + S.message_serial[message]) + message
    S.registers[t * S.width + S.code[row + 1]] = handle
    return op.DONE


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
        return x / y
    if code == op.FLOOR_DIVIDE:
        return math.floor((x - x % y) / y + 0.5)  # as Python: 1.0 // 0.1 is 9
    if code == op.MODULO:
        return x % y
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


def place_in(S: State, which: int, k: int, n: int) -> int:
    """Where the k-th n numbers of a list begin, from its end on if k is below 0; NONE if there are none."""
    at = k * n + (S.list_length[which] if k < 0 else 0)
    return NONE if at < 0 or at + n > S.list_length[which] else S.list_begin[which] + at


def within(at: float, items: float) -> float:
    """An end of a slice: from the end if below 0, and never outside."""
    if at < 0.0:
        at += items
    return min(max(0.0, at), items)


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
    """TAKE: a message's registers; the first, the end and the stride of senders, flags, until when, the size."""
    rank = S.text_rank[t]
    at = t * S.width + S.code[row + 1]
    first = int(value(S, t, row + 2))
    flags = S.code[row + 5]
    lasts: bool = flags & op.LASTS != 0
    if lasts and (first < 0 or value(S, t, row + 3) > S.ranks):
        return op.WRONG
    if is_full(S):
        return op.SHORT_OF_EVENTS
    message = found(S, t, flags & op.NEWEST != 0)
    if message == NONE:
        if is_short_of_pauses(S, rank):
            return op.SHORT_OF_NOISE
        S.text_due[t] = -1.0
        S.text_count[t] += 1
        S.registers[at] = NONE
        if lasts:
            if not may_come(S, t):
                return op.DONE
            if flags & op.AT_ONCE:
                S.registers[at] = op.NOT_YET
                return op.DONE
            while first < value(S, t, row + 3):
                S.rank_followed[first] = 1
                first += int(value(S, t, row + 4))
        elif flags & op.UNTIL:
            if value(S, t, row + 6) <= S.now:
                return op.DONE
            goes_on_at(S, t, value(S, t, row + 6))
        S.text_in[t] = op.TAKING
        if S.poll_s > 0.0 and (value(S, t, row + 2) != rank or value(S, t, row + 3) > rank + 1):
            begins_to_poll(S, t)
        S.text_next[t] = S.rank_takers[rank]
        S.rank_takers[rank] = t
        return op.WAITS
    if flags & op.SIZED and S.message_items[message] != value(S, t, row + 7):
        return op.WRONG
    S.registers[at] = S.message_from[message]
    S.registers[at + 1] = S.message_step[message]
    S.registers[at + 2] = S.message_items[message]
    S.registers[at + 3] = S.message_samples[message]
    S.registers[at + 4] = S.message_share[message]
    S.registers[at + 5] = NONE
    if S.flow_announced[message]:
        S.registers[at + 5] = message
        S.flow_found[message] = S.now
    elif S.message_serial[message] and S.message_from[message] != S.text_rank[t]:
        S.text_takes[t] = message
    else:
        give_back(S, message)
    return op.DONE
