"""Devices that texts compute on, and ranks that poll there while they wait.

Cores serve one text after another (first come, first served), or in turns as Linux does (sim.language.event.cores.InTurns: texts stay on
the core where they began), or are shared evenly by all. Ranks that poll see what has happened at their next poll, and their polls take
cores (sim.language.event.ranks).
"""

from __future__ import annotations

import math

from sim.language.engine import layout as op
from sim.language.engine.events import drawn, ending, goes_on_at, key_of, push, without, works
from sim.language.engine.layout import KINDS, NONE, State


def compute(S: State, t: int, device: int, seconds: float) -> None:
    """Text t computes for so many seconds of a core, or of a GPU."""
    works(S, S.text_rank[t], S.text_of_rank[t])
    S.text_device[t] = device
    S.text_work[t] = seconds
    if S.device_turn[device] == 0.0:
        share(S, device, t)
    elif S.device_turn[device] != math.inf:
        take_turns(S, device, t)
    else:
        S.text_in[t] = op.QUEUED
        S.device_first[device] = ending(S, S.device_first[device], t)
        serve(S, device)


def serve(S: State, device: int) -> None:
    """The first text that waits has a core, if one is free."""
    t = S.device_first[device]
    if t != NONE and S.device_busy[device] < S.device_cores[device]:
        S.device_first[device] = S.text_next[t]
        S.device_busy[device] += 1
        S.text_in[t] = op.COMPUTING
        goes_on_at(S, t, S.now + S.text_work[t])


def computed(S: State, t: int) -> None:
    """Text t has computed, or is stopped: its core is free for the next."""
    device = S.text_device[t]
    if S.text_in[t] == op.QUEUED:
        S.device_first[device] = without(S, S.device_first[device], t)
    elif S.text_in[t] == op.SHARING:
        unshare(S, device, t)
    elif S.text_in[t] == op.TURNING:
        leaves_core(S, t)
    else:
        S.device_busy[device] -= 1
        serve(S, device)


def count(S: State, device: int, pace: float) -> None:
    """Count what sharers have had until now, at a pace, when the first of them is to be planned anew."""
    S.device_done[device] += (S.now - S.device_since[device]) * pace
    S.device_since[device] = S.now
    if S.device_first[device] != NONE:
        S.text_due[S.device_first[device]] = -1.0


def plan(S: State, device: int) -> None:
    """The sharer that is done first goes on when it is done; who else did is planned later."""
    first = S.device_first[device]
    if first != NONE:
        left = S.text_work[first] - S.device_done[device]
        goes_on_at(S, first, S.now + max(0.0, left) / pace(S, device))


def share(S: State, device: int, t: int) -> None:
    """Text t shares the device; those that are done at the same time stand in the order of their keys."""
    before = NONE
    one = S.device_first[device]
    count(S, device, pace(S, device))
    end = S.device_done[device] + S.text_work[t]
    while one != NONE and (S.text_work[one] < end or (S.text_work[one] == end and key_of(S, one) < key_of(S, t))):
        before = one
        one = S.text_next[one]
    S.text_in[t] = op.SHARING
    S.text_work[t] = end
    S.text_next[t] = one
    if before == NONE:
        S.device_first[device] = t
    else:
        S.text_next[before] = t
    S.device_busy[device] += 1
    plan(S, device)


def unshare(S: State, device: int, t: int) -> None:
    """Text t is done, or stopped before; the others go faster."""
    is_over: bool = S.text_due[t] == S.now
    count(S, device, pace(S, device))
    if is_over:
        S.device_done[device] = S.text_work[t]  # without what rounding leaves
    S.device_first[device] = without(S, S.device_first[device], t)
    S.device_busy[device] -= 1
    plan(S, device)


def pace(S: State, device: int) -> float:
    """The pace of each that computes on a device; see sim.language.hosts.Device."""
    busy = max(1, S.device_busy[device])
    cores = 1.0 * S.device_cores[device]
    polls = 0.0
    for k in range(op.STAGES if S.poll_s > 0.0 else 0):
        polls += S.device_polling[device * op.STAGES + k] * S.poll_rate[k]
    share = (cores - min(polls, cores * op.MOST_POLLS)) / busy
    if busy > 1:
        share /= 1 + S.device_switching[device]
    return min(1.0, share) / (1 + S.device_contention[device] * (min(busy + polls, cores) - 1))


def take_turns(S: State, device: int, t: int) -> None:
    """Text t computes on the core where it has just worked; else on that with the fewest."""
    first = S.device_core[device]
    best = first if S.text_core[t] == NONE else S.text_core[t]
    since = S.text_worked_since[t] if S.text_worked_until[t] == S.now and S.text_core[t] != NONE else -1.0
    S.text_in[t] = op.TURNING
    for core in range(first, first + S.device_cores[device]):
        if since >= 0.0 or S.core_works[best] == 0:
            break
        best = core if S.core_works[core] < S.core_works[best] else best
    put(S, best, t, since)


def put(S: State, core: int, t: int, since: float) -> None:
    """Put a text on a core: last, or first in a turn that has begun."""
    device = S.core_device[core]
    before = pace(S, device)
    advance(S, core, before)
    S.text_core[t] = core
    if since >= 0.0:
        S.text_next[t] = S.core_first[core]
        S.core_first[core] = t
    else:
        S.core_first[core] = ending(S, S.core_first[core], t)
    if S.core_first[core] == t:
        S.core_since[core] = S.now if since < 0.0 else since
    S.core_works[core] += 1
    S.device_works[device] += 1
    if S.core_works[core] == 1:
        S.device_busy[device] += 1
        repace(S, device, before)
    wake(S, core)


def take_away(S: State, core: int, t: int) -> None:
    """Take a text from a core."""
    advance(S, core, pace(S, S.core_device[core]))
    if S.core_first[core] == t:
        S.core_since[core] = S.now
    S.core_first[core] = without(S, S.core_first[core], t)
    S.core_works[core] -= 1
    S.device_works[S.core_device[core]] -= 1
    wake(S, core)


def repace(S: State, device: int, before: float) -> None:
    """Plan anew what computes on a device, at another pace than before."""
    if S.device_turn[device] == 0.0:
        count(S, device, before)
        plan(S, device)
    elif S.device_turn[device] != math.inf and before != pace(S, device):
        for core in range(S.device_core[device], S.device_core[device] + S.device_cores[device]):
            advance(S, core, before)
            wake(S, core)


def advance(S: State, core: int, pace: float) -> None:
    """Advance a core to now."""
    if S.core_works[core]:
        S.text_work[S.core_first[core]] -= (S.now - S.core_updated[core]) * pace
    S.core_updated[core] = S.now


def wake(S: State, core: int) -> None:
    """Plan the end of the work, or of the turn, of the one that has the core."""
    first = S.core_first[core]
    device = S.core_device[core]
    one = first
    if first == NONE:
        return
    lasts = S.text_work[first] / pace(S, device)
    if S.core_works[core] > 1:
        turn = S.text_work[first]
        while one != NONE:
            turn = min(turn, S.text_work[one])
            one = S.text_next[one]
        turn = max(turn / op.MOST_TURNS, S.device_turn[device])
        lasts = min(lasts, S.core_since[core] + turn - S.now)
    goes_on_at(S, first, S.now + max(0.0, lasts))


def has_turned(S: State, t: int) -> bool:
    """Whether a text goes on to take turns on a core: another one has it now, or only a turn of text t is over."""
    core = S.text_core[t]
    if S.core_first[core] != t:
        return True
    advance(S, core, pace(S, S.core_device[core]))
    if S.text_work[t] <= max(S.now * op.ROUND_OFF, op.ROUND_OFF_S):
        return False
    S.core_since[core] = S.now
    S.core_first[core] = ending(S, S.text_next[t], t)
    wake(S, core)
    return True


def leaves_core(S: State, t: int) -> None:
    """Text t is done or stopped: its core, if it has no works left, takes over one of nobody's at once, and a rank's after a tick."""
    core = S.text_core[t]
    device = S.core_device[core]
    first = S.device_core[device]
    before = pace(S, device)
    S.text_worked_until[t] = S.now
    S.text_worked_since[t] = S.core_since[core]
    take_away(S, core, t)
    if not S.text_of_rank[t]:
        S.text_core[t] = NONE
    if S.core_works[core]:
        return
    S.device_busy[device] -= 1
    repace(S, device, before)
    if S.device_works[device] == S.device_busy[device]:  # none waits
        return
    for other in range(first, first + S.device_cores[device]):
        one = S.text_next[S.core_first[other]] if S.core_works[other] else NONE
        while one != NONE and S.text_of_rank[one]:
            one = S.text_next[one]
        if one != NONE:
            take_away(S, other, one)
            put(S, core, one, -1.0)
            return
    push(S, S.now + op.TICK_S, key_of(S, t), core * KINDS + op.BALANCES)


def balance(S: State, core: int) -> None:
    """A core that is still idle takes over the work with most left that waits in the longest queue."""
    device = S.core_device[core]
    longest = S.device_core[device]
    for other in range(longest, longest + S.device_cores[device]):
        if S.core_works[other] > S.core_works[longest]:
            longest = other
    if S.core_works[core] == 0 and S.core_works[longest] > 1:
        most = S.text_next[S.core_first[longest]]
        one = most
        while one != NONE:
            if S.text_work[one] > S.text_work[most]:
                most = one
            one = S.text_next[one]
        take_away(S, longest, most)
        put(S, core, most, -1.0)


def begins_to_poll(S: State, t: int) -> None:
    """Text t waits for what its rank polls for."""
    rank = S.text_rank[t]
    S.text_since[t] = S.now
    S.rank_polling[rank] += 1
    if S.rank_polling[rank] == 1:
        S.rank_waits_since[rank] = S.now
        polls_as(S, rank, 0, key_of(S, t))


def polls_as(S: State, rank: int, stage: int, key: int) -> None:
    """A rank polls on its cores as in a stage of its wait from now on, while that lasts; NONE: no more."""
    device = S.rank_device[rank]
    before = pace(S, device)
    if S.rank_stage[rank] != NONE:
        S.device_polling[device * op.STAGES + S.rank_stage[rank]] -= 1
    S.rank_stage[rank] = stage
    S.rank_stage_due[rank] = -1.0
    if stage != NONE:
        S.device_polling[device * op.STAGES + stage] += 1
        if stage + 1 < op.STAGES:
            S.rank_stage_due[rank] = S.now + S.poll_lasts[stage]
            push(S, S.rank_stage_due[rank], key, rank * KINDS + op.POLLS)
    repace(S, device, before)


def next_stage(S: State, rank: int, key: int) -> None:
    """The rank has waited for so long that it polls less from now on."""
    stage = S.rank_stage[rank] + 1
    if S.rank_stage_due[rank] == S.now:
        polls_as(S, rank, NONE, key)
        polls_as(S, rank, stage, key)


def polls_no_more(S: State, t: int) -> None:
    """What text t has waited for has happened, or it is stopped."""
    rank = S.text_rank[t]
    if S.text_since[t] >= 0.0:
        S.text_since[t] = -1.0
        S.rank_polling[rank] -= 1
        if S.rank_polling[rank] == 0:
            polls_as(S, rank, NONE, 0)


def late_since(S: State, rank: int, since: float) -> float:
    """Seconds until a rank sees what has happened, after waiting since then; 0 if now."""
    waited = S.now - since
    if waited <= 0.0 or S.spins:
        return 0.0
    waited = min(max(waited / op.SHARE, op.SHORTEST_S), op.LONGEST_S)
    S.rank_pauses[rank] += 1
    return drawn(S, op.PAUSES, rank, S.rank_pauses[rank] - 1) * (waited + S.oversleep_s)
