"""Ring allreduces of groups that enter them alone: one loop over messages, in place of events.

A text that reaches one is held until the last member of its group has come with its text of the same number. Then each member's end is
computed from when all have come and when their ports are free, message by message: what sim.language.collectives.allreduce comes to where
nobody else uses the ports. A ring has its ports until it needs them no more: a message that is posted meanwhile goes behind all of it, and
two rings go one behind the other. Its members' bytes move from then to their ends, with the gaps of latency between messages. A text
that is stopped once all have come does not hinder the others.
"""

from __future__ import annotations

from sim.language.engine import layout as op
from sim.language.engine.heap import goes_on_at
from sim.language.engine.idle import moves
from sim.language.engine.layout import NONE, OPERANDS, State
from sim.language.engine.mail import value
from sim.language.engine.plain import compiled, double, integer
from sim.language.engine.ports import begins_at, climb_of, later


@compiled
def part(items: double, k: integer, n: integer) -> double:
    """Where the k-th of n parts begins."""
    whole: integer = int(items)
    return whole * k // n


@compiled
def items_of(S: State, t: integer) -> double:
    """Items of the piece that a text in a ring sums."""
    row: integer = S.text_at[t] * OPERANDS
    return value(S, t, S.code[row + 3]) - value(S, t, S.code[row + 2])


@compiled
def is_member(S: State, one: integer, t: integer) -> bool:
    """Whether a text that is held is in the ring of text t."""
    row: integer = S.text_at[one] * OPERANDS
    other: integer = S.text_at[t] * OPERANDS
    if S.text_number[one] != S.text_number[t]:
        return False
    return row == other or (
        value(S, one, S.code[row + 4]) == value(S, t, S.code[other + 4])
        and value(S, one, S.code[row + 5]) == value(S, t, S.code[other + 5])
        and value(S, one, S.code[row + 6]) == value(S, t, S.code[other + 6])
    )


@compiled
def joins(S: State, t: integer) -> integer:
    """Text t reaches a RING: a: where to go on; the piece's start and stop, the group's start, stop and stride. DONE or SIZES_DIFFER."""
    row: integer = S.text_at[t] * OPERANDS
    first: integer = int(value(S, t, S.code[row + 4]))
    stride: integer = int(value(S, t, S.code[row + 6]))
    n: integer = (int(value(S, t, S.code[row + 5])) - first + stride - 1) // stride
    came: integer = 1
    before: integer = NONE
    one: integer = S.ringing
    while one != NONE:
        if is_member(S, one, t):
            came += 1
            if items_of(S, one) != items_of(S, t):
                S.about = one
                return op.SIZES_DIFFER
        one = S.text_next[one]
    S.text_in[t] = op.RINGING
    S.text_due[t] = -1.0
    S.text_count[t] += 1
    S.text_work[t] = S.now
    S.text_next[t] = S.ringing
    S.ringing = t
    if came == n:
        one = S.ringing
        while one != NONE:
            if is_member(S, one, t):
                S.ring_text[(S.text_rank[one] - first) // stride] = one
                if before == NONE:
                    S.ringing = S.text_next[one]
                else:
                    S.text_next[before] = S.text_next[one]
            else:
                before = one
            one = S.text_next[one]
        go_around(S, n)
    return op.DONE


@compiled
def comes_no_more(S: State, t: integer) -> None:
    """Text t is stopped: if it is held it does not come."""
    before: integer = NONE
    one: integer = S.ringing
    while one != t and one != NONE:
        before = one
        one = S.text_next[one]
    if one == NONE:
        return
    if before == NONE:
        S.ringing = S.text_next[t]
    else:
        S.text_next[before] = S.text_next[t]


@compiled
def go_around(S: State, n: integer) -> None:
    """All n members have come: when each of them ends."""
    items: double = items_of(S, S.ring_text[0])
    turn: integer
    k: integer
    left: integer
    rank: integer
    t: integer
    sent: integer
    at: double
    seconds: double
    for k in range(n):
        S.ring_at[k] = S.text_work[S.ring_text[k]]
        S.ring_until[k] = S.now
        S.ring_idle[k] = 0.0
        S.ring_items[k] = part(items, k + 1, n) - part(items, k, n)
    for turn in range(2 * n - 2):
        sent = (2 * n - 1 - turn) % n  # by the first
        for k in range(n):
            send_on(S, k, k + 1 if k + 1 < n else 0, S.ring_items[sent])
            sent = sent + 1 if sent + 1 < n else 0
        for k in range(n):
            left = k - 1 if k > 0 else n - 1
            rank = S.text_rank[S.ring_text[k]]
            items = S.ring_items[sent - 1 if sent > 0 else n - 1]  # the one before sends it
            at = later(S.ring_at[k], S.ring_there[k])
            if S.rank_host[rank] == S.rank_host[S.text_rank[S.ring_text[left]]]:
                seconds = S.local_overhead_s + S.local_copy_s * (S.header_bytes + items * S.item_bytes)
            else:
                seconds = S.overhead_s
            at = later(at + seconds / S.rank_speed[rank], S.ring_left[k])
            if turn < n - 1:
                at += (S.mix_base_s + S.mix_s * items) / S.rank_speed[rank]
            S.ring_at[k] = at
            S.ring_until[k] = later(S.ring_until[k], S.ring_left[k])
            if S.ring_begin[k] > S.ring_until[k]:
                S.ring_idle[k] += S.ring_begin[k] - S.ring_until[k]
            S.ring_until[k] = later(S.ring_until[k], later(at, S.ring_there[k]))
            sent = sent + 1 if sent + 1 < n else 0
    for k in range(n):
        t = S.ring_text[k]
        moves(S, S.text_rank[t], S.ring_at[k] - S.ring_idle[k])
        S.text_at[t] = S.code[S.text_at[t] * OPERANDS + 1]
        goes_on_at(S, t, S.ring_at[k])


@compiled
def send_on(S: State, k: integer, right: integer, items: double) -> None:
    """The k-th member sends the one on its right a part: when it goes on, when the part has left, and when it is there."""
    frm: integer = S.text_rank[S.ring_text[k]]
    to: integer = S.text_rank[S.ring_text[right]]
    size: double = S.header_bytes + items * S.item_bytes
    at: double = S.ring_at[k]
    passed: double = 0.0
    climb: integer
    hop: integer
    level: integer
    port: integer
    if S.rank_host[frm] == S.rank_host[to]:
        S.ring_begin[right] = later(at, S.local_free[frm])
        S.local_free[frm] = S.ring_begin[right] + size / S.local_bandwidth
        S.ring_left[k] = S.local_free[frm]
        S.ring_there[right] = S.local_free[frm] + S.local_latency_s
        return
    at += S.overhead_s / S.rank_speed[frm]
    S.ring_at[k] = at
    climb = 1 if S.levels == 1 else climb_of(S, frm, to)
    for hop in range(2 * climb):
        level = hop if hop < climb else 2 * climb - 1 - hop
        port = 2 * (level * S.ranks + S.place[level * S.ranks + (frm if hop < climb else to)]) + (0 if hop < climb else 1)
        at = begins_at(S, port, level, size, at)
        passed = later(passed, S.port_free[port])
        if hop == 0:
            S.ring_left[k] = passed
        S.ring_begin[right] = at
        S.ring_there[right] = passed
        at = (passed if S.whole_messages else at) + S.latency_s
        passed += S.latency_s
