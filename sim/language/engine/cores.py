"""Devices that texts compute on, and ranks that poll there while they wait.

Cores serve one text after another (first come, first served), or in turns as Linux does (sim.language.event.cores.InTurns: texts stay on
the core where they began), or are shared evenly by all. Ranks that poll see what has happened at their next poll, and their polls take
cores (sim.language.event.ranks).
"""

from __future__ import annotations

import math

from sim.language.engine import layout as op
from sim.language.engine.events import drawn, ending, goes_on_at, is_busy, is_done, key_of, push, without
from sim.language.engine.layout import KINDS, NONE, State


def has_slept(S: State, t: int) -> None:
    """Text t has slept, or is stopped."""
    is_done(S, t)
    S.rank_slept[S.text_rank[t]] += S.now - S.text_work[t]


def compute(S: State, t: int, device: int, seconds: float) -> None:
    """Text t computes for so many seconds of a core, or of a GPU."""
    is_busy(S, t)
    S.text_device[t] = device
    if S.device_turn[device] == 0.0:
        share(S, device, t, seconds)
    elif S.device_turn[device] != math.inf:
        take_turns(S, device, t, seconds)
    elif S.device_busy[device] < S.device_cores[device]:
        S.device_busy[device] += 1
        serve(S, t, seconds)
    else:
        S.text_in[t] = op.QUEUED
        S.text_work[t] = seconds
        S.device_first[device] = ending(S, S.device_first[device], t)


def serve(S: State, t: int, seconds: float) -> None:
    """Text t has a core."""
    S.text_in[t] = op.COMPUTING
    goes_on_at(S, t, S.now + seconds)


def computed(S: State, t: int, stopped: bool) -> None:
    """Text t has computed, or is stopped: its core is free for the next."""
    device = S.text_device[t]
    is_done(S, t)
    if S.text_in[t] == op.QUEUED:
        S.device_first[device] = without(S, S.device_first[device], t)
    elif S.text_in[t] == op.SHARING:
        unshare(S, device, t, stopped)
    elif S.text_in[t] == op.TURNING:
        leaves_core(S, t)
    else:
        other = S.device_first[device]
        if other == NONE:
            S.device_busy[device] -= 1
        else:
            S.device_first[device] = S.text_next[other]
            serve(S, other, S.text_work[other])


def poll(S: State, rank: int, stage: int, more: int) -> None:
    """So many ranks more, or less, are in a stage of waiting on the cores of this one."""
    device = S.rank_device[rank]
    before = S.device_polls[device]
    polls = 0.0
    if S.device_turn[device] == 0.0:
        count(S, device)
    S.device_polling[device * S.stages + stage] += more
    for k in range(S.stages):
        polls += S.device_polling[device * S.stages + k] * S.poll_rate[k]
    S.device_polls[device] = polls
    if S.device_turn[device] == 0.0:
        plan(S, device)
    elif S.device_turn[device] != math.inf:
        repace(S, device, S.device_busy[device], before, NONE)


def count(S: State, device: int) -> None:
    """Count what sharers have had until now, when the first of them is to be planned anew."""
    S.device_done[device] += (S.now - S.device_since[device]) * pace(S, device)
    S.device_since[device] = S.now
    if S.device_first[device] != NONE:
        S.text_due[S.device_first[device]] = -1.0


def plan(S: State, device: int) -> None:
    """The sharer that is done first goes on when it is done; who else did is planned later."""
    first = S.device_first[device]
    if first != NONE:
        left = S.text_work[first] - S.device_done[device]
        goes_on_at(S, first, S.now + max(0.0, left) / pace(S, device))


def share(S: State, device: int, t: int, seconds: float) -> None:
    """Text t shares the device; those that are done at the same time stand in the order of their keys."""
    before = NONE
    one = S.device_first[device]
    count(S, device)
    end = S.device_done[device] + seconds
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


def unshare(S: State, device: int, t: int, stopped: bool) -> None:
    """Text t is done, or stopped; the others go faster."""
    count(S, device)
    if not stopped:
        S.device_done[device] = S.text_work[t]  # without what rounding leaves
    S.device_first[device] = without(S, S.device_first[device], t)
    S.device_busy[device] -= 1
    plan(S, device)


def pace_of(S: State, device: int, works: int, polls: float) -> float:
    """The pace of each of so many works; see sim.language.hosts.Device."""
    cores = S.device_cores[device]
    busy = works + polls
    share = cores * op.MOST_POLLS
    if polls == 0.0 and busy <= cores and (works == 1 or S.device_switching[device] == 0.0):  # a core for each
        return 1.0 if S.device_contention[device] == 0.0 else 1.0 / (1 + S.device_contention[device] * (busy - 1))
    share = (cores - min(polls, share)) / (1.0 * works)
    if works > 1:
        share /= 1 + S.device_switching[device]
    return min(1.0, share) / (1 + S.device_contention[device] * (min(busy, 1.0 * cores) - 1))


def pace(S: State, device: int) -> float:
    """The present pace."""
    return pace_of(S, device, max(1, S.device_busy[device]), S.device_polls[device])


def take_turns(S: State, device: int, t: int, seconds: float) -> None:
    """Text t computes on the core where it has just worked; else on that with the fewest."""
    best = S.text_worked[t]
    k = S.device_core[device]
    stop = k + S.device_cores[device]
    S.text_in[t] = op.TURNING
    S.text_work[t] = seconds
    if best != NONE and S.text_worked_until[t] == S.now:
        put(S, best, t, S.text_worked_since[t])
        return
    if best == NONE:
        best = k
    while k < stop and S.core_works[best]:
        if S.core_works[k] < S.core_works[best]:
            best = k
        k += 1
    put(S, best, t, -1.0)


def put(S: State, core: int, t: int, since: float) -> None:
    """Put a text on a core: last, or first in a turn that has begun."""
    device = S.core_device[core]
    first = S.core_first[core]
    advance(S, core, pace(S, device) if S.core_works[core] else 1.0)
    S.text_core[t] = core
    S.text_due[t] = -1.0
    if since >= 0.0 and first != NONE:
        S.text_due[first] = -1.0
        S.text_next[t] = first
        S.core_first[core] = t
    else:
        S.core_first[core] = ending(S, first, t)
    if S.core_first[core] == t:
        S.core_since[core] = S.now if since < 0.0 else since
    S.core_works[core] += 1
    S.device_works[device] += 1
    if S.core_works[core] == 1:
        S.device_busy[device] += 1
        repace(S, device, S.device_busy[device] - 1, S.device_polls[device], core)
    wake(S, core)


def take_away(S: State, core: int, t: int) -> None:
    """Take a text from a core."""
    advance(S, core, pace(S, S.core_device[core]))
    if S.core_first[core] == t:
        S.core_since[core] = S.now
    S.core_first[core] = without(S, S.core_first[core], t)
    S.text_due[t] = -1.0
    S.core_works[core] -= 1
    S.device_works[S.core_device[core]] -= 1
    wake(S, core)


def repace(S: State, device: int, busy: int, polls: float, besides: int) -> None:
    """So many cores were busy, or polls taken, before: all go at another pace."""
    if busy == 0:
        return
    before = pace_of(S, device, busy, polls)
    if before == pace(S, device):
        return
    for core in range(S.device_core[device], S.device_core[device] + S.device_cores[device]):
        if S.core_works[core] and core != besides:
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
    """Text t has a core: whether only its turn is over; else its work is."""
    core = S.text_core[t]
    advance(S, core, pace(S, S.core_device[core]))
    if S.text_work[t] <= max(S.now * op.ROUND_OFF, op.ROUND_OFF_S):
        return False
    S.core_since[core] = S.now
    S.text_due[t] = -1.0
    S.core_first[core] = ending(S, S.text_next[t], t)
    wake(S, core)
    return True


def leaves_core(S: State, t: int) -> None:
    """Text t, which has a core or waits for it, is done or stopped."""
    core = S.text_core[t]
    if S.text_of_rank[t]:
        S.text_worked[t] = core
        S.text_worked_until[t] = S.now
        S.text_worked_since[t] = S.core_since[core]
    take_away(S, core, t)
    if S.core_works[core] == 0:
        idles(S, core, key_of(S, t))


def idles(S: State, core: int, key: int) -> None:
    """A core has come to the end of its works: it takes over one of nobody's at once, and a rank's after a tick."""
    device = S.core_device[core]
    S.device_busy[device] -= 1
    repace(S, device, S.device_busy[device] + 1, S.device_polls[device], NONE)
    if S.device_works[device] == S.device_busy[device]:
        return
    for other in range(S.device_core[device], S.device_core[device] + S.device_cores[device]):
        one = S.text_next[S.core_first[other]] if S.core_works[other] else NONE
        while one != NONE and S.text_of_rank[one]:
            one = S.text_next[one]
        if one != NONE:
            take_away(S, other, one)
            put(S, core, one, -1.0)
            return
    push(S, S.now + op.TICK_S, key, core * KINDS + op.BALANCES)


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
        S.rank_stage[rank] = 0
        S.rank_waits_since[rank] = S.now
        enter(S, rank, key_of(S, t))


def enter(S: State, rank: int, key: int) -> None:
    """A rank polls as in this stage of its wait, while it lasts."""
    stage = S.rank_stage[rank]
    poll(S, rank, stage, 1)
    S.rank_stage_due[rank] = -1.0
    if stage + 1 < S.stages:
        S.rank_stage_due[rank] = S.now + S.poll_lasts[stage]
        push(S, S.rank_stage_due[rank], key, rank * KINDS + op.POLLS)


def next_stage(S: State, rank: int, key: int) -> None:
    """The rank has waited for so long that it polls less from now on."""
    if S.rank_stage_due[rank] == S.now:
        poll(S, rank, S.rank_stage[rank], -1)
        S.rank_stage[rank] += 1
        enter(S, rank, key)


def polls_no_more(S: State, t: int) -> None:
    """What text t has waited for has happened, or it is stopped."""
    rank = S.text_rank[t]
    if S.text_since[t] >= 0.0:
        S.rank_polling[rank] -= 1
        if S.rank_polling[rank] == 0:
            S.rank_stage_due[rank] = -1.0
            poll(S, rank, S.rank_stage[rank], -1)
        S.text_since[t] = -1.0


def late_since(S: State, rank: int, since: float) -> float:
    """Seconds until a rank sees what has happened, after waiting since then; 0 if now."""
    waited = S.now - since
    if waited <= 0.0 or S.spins:
        return 0.0
    waited = min(max(waited / S.waited_share, S.shortest_s), S.longest_s)
    S.rank_pauses[rank] += 1
    return drawn(S, op.PAUSES, rank, S.rank_pauses[rank] - 1) * (waited + S.oversleep_s)
