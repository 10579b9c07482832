"""Ring allreduces of groups that enter them alone: one loop over their messages, in place of events.

A text is held until the last of its group has come with its text of the same number. They end when collectives.allreduce does where
nobody else uses the ports; a message that is posted meanwhile, or another ring, goes behind all of the ring.
"""

from __future__ import annotations

from sim.language.engine import layout as op
from sim.language.engine.events import goes_on_at, without, works
from sim.language.engine.layout import NONE, OPERANDS, State
from sim.language.engine.mail import begins_at, climb_of, level_of, part, port_of, value


def items_of(S: State, t: int) -> float:
    """Items of the piece that a text in a ring sums."""
    row = S.text_at[t] * OPERANDS
    return value(S, t, row + 3) - value(S, t, row + 2)


def is_member(S: State, one: int, t: int) -> bool:
    """Whether a text that is held is in the ring of text t, of the same number and group."""
    group = S.code[S.text_at[one] * OPERANDS + 7]
    return S.text_number[one] == S.text_number[t] and group == S.code[S.text_at[t] * OPERANDS + 7]


def joins(S: State, t: int) -> int:
    """Text t reaches a RING: where it goes on; the piece's start and stop; a group's first, stride, size, number."""
    row = S.text_at[t] * OPERANDS
    stride = int(value(S, t, row + 5))
    missing = int(value(S, t, row + 6)) - 1
    k = S.text_rank[t] - int(value(S, t, row + 4))
    one = S.ringing
    if k < 0 or k % stride or k // stride > missing:
        return op.WRONG
    while one != NONE:
        if is_member(S, one, t):
            missing -= 1
            if items_of(S, one) != items_of(S, t):
                return op.WRONG
        one = S.text_next[one]
    works(S, S.text_rank[t], S.text_of_rank[t])
    S.text_in[t] = op.RINGING
    S.text_count[t] += 1
    S.text_work[t] = S.now
    S.text_next[t] = S.ringing
    S.ringing = t
    if missing == 0:
        one = t
        while one != NONE:
            if is_member(S, one, t):
                S.ring_text[(S.text_rank[one] - S.text_rank[t] + k) // stride] = one
                lets_go(S, one)
            one = S.text_next[one]
        go_around(S, int(value(S, t, row + 6)))
    return op.WAITS


def lets_go(S: State, t: int) -> None:
    """Text t is held no more: all have come, or it is stopped, which hinders nobody once all have come."""
    S.rank_busy[S.text_rank[t]] -= 1
    S.ringing = without(S, S.ringing, t)


def go_around(S: State, n: int) -> None:
    """All n members have come: when each of them ends. What they are idle meanwhile lies at their end."""
    items = items_of(S, S.ring_text[0])
    for k in range(n):
        S.ring_rank[k] = S.text_rank[S.ring_text[k]]
        S.ring_near[k] = S.rank_host[S.ring_rank[k]] == S.rank_host[S.text_rank[S.ring_text[k + 1 if k + 1 < n else 0]]]
        S.ring_at[k] = S.text_work[S.ring_text[k]]
        S.ring_until[k] = S.ring_at[k]
        S.ring_idle[k] = 0.0
        S.ring_rested[k] = 0.0
        mine = part(items, k + 1, n) - part(items, k, n)
        S.ring_bytes[k] = S.header_bytes + mine * S.item_bytes
        S.ring_sum[k] = S.mix_base_s + S.mix_s * mine
    S.happened += n * (n - 1) // 4  # as eight messages take about as long as an event
    for turn in range(2 * n - 2):
        sent = (2 * n - 1 - turn) % n  # by the first; of each rank the part that the one before it has sent comes
        for k in range(n):
            passes_on(S, k, k + 1 if k + 1 < n else 0, S.ring_bytes[sent])
            sent = sent + 1 if sent + 1 < n else 0
        for k in range(n):
            takes_in(S, k, k - 1 if k > 0 else n - 1, S.ring_bytes[sent - 1 if sent > 0 else n - 1])
            sent = sent + 1 if sent + 1 < n else 0
        for k in range(n):
            adds_up(S, k, S.ring_sum[sent - 1 if sent > 0 else n - 1] if turn < n - 1 else 0.0)
            sent = sent + 1 if sent + 1 < n else 0
    for k in range(n):
        rank = S.ring_rank[k]
        S.rank_since[rank] = max(S.rank_since[rank], S.ring_at[k] - S.ring_idle[k])
        S.text_at[S.ring_text[k]] = S.code[S.text_at[S.ring_text[k]] * OPERANDS + 1]
        goes_on_at(S, S.ring_text[k], S.ring_at[k])


def passes_on(S: State, k: int, right: int, size: float) -> None:
    """The k-th member sends the one on its right a part: when that has left, and when it comes."""
    frm = S.ring_rank[k]
    at = S.ring_at[k]
    passed = 0.0
    if S.ring_near[k]:
        at = max(at, S.local_free[frm])
        S.ring_begin[right] = at
        at += size / S.local_bandwidth
        S.local_free[frm] = at
        S.ring_until[k] = max(S.ring_until[k], at)
        S.ring_there[right] = at + S.local_latency_s
        return
    to = S.ring_rank[right]
    at += S.overhead_s / S.rank_speed[frm]
    S.ring_at[k] = at
    for hop in range(2 * climb_of(S, frm, to)):
        port = port_of(S, frm, to, hop)
        begin = begins_at(S, port, 0 if S.levels == 1 else level_of(S, port), size, at)
        passed = max(passed, S.port_free[port])
        if hop == 0:
            S.ring_left[k] = passed
        S.ring_begin[right] = begin
        S.ring_there[right] = passed
        at = (passed if S.whole_messages else begin) + S.latency_s
        passed += S.latency_s
    S.ring_until[k] = max(S.ring_until[k], S.ring_left[k])


def takes_in(S: State, k: int, left: int, size: float) -> None:
    """The k-th member takes a part from the one on its left, which waits for that on the same host."""
    seconds = S.local_overhead_s + S.local_copy_s * size if S.ring_near[left] else S.overhead_s
    at = max(S.ring_at[k], S.ring_there[k]) + seconds / S.rank_speed[S.ring_rank[k]]
    came = min(S.ring_there[k], S.ring_rested[k]) - max(S.ring_begin[k], S.ring_rest[k])
    S.ring_idle[k] -= max(0.0, came)
    rests(S, k, S.ring_begin[k])
    S.ring_at[k] = at
    S.ring_until[k] = max(S.ring_until[k], at)
    if S.ring_near[left]:
        S.ring_left[left] = at


def rests(S: State, k: int, until: float) -> None:
    """The k-th member is idle until then, if it has no more to do."""
    seconds = until - S.ring_until[k]
    if seconds > 0.0:
        S.ring_rest[k] = S.ring_until[k]
        S.ring_rested[k] = until
        S.ring_idle[k] += seconds
        S.ring_until[k] = until


def adds_up(S: State, k: int, seconds: float) -> None:
    """The k-th member's own part has left, or was taken: it sums, and goes on."""
    at = max(S.ring_at[k], S.ring_left[k])
    rests(S, k, at)
    if seconds > 0.0:
        at += seconds / S.rank_speed[S.ring_rank[k]]
    S.ring_at[k] = at
    S.ring_until[k] = max(S.ring_until[k], at)
