"""Cores as Linux gives them: texts stay on the core where they began, and have it in turn (sim.language.event.cores.InTurns)."""

from __future__ import annotations

from sim.language.engine.heap import goes_on_at, push
from sim.language.engine.layout import (
    BALANCES,
    KINDS,
    MOST_POLLS,
    MOST_TURNS,
    NONE,
    ROUND_OFF,
    ROUND_OFF_S,
    TICK_S,
    TURNING,
    State,
)


def pace_of(S: State, device: int, works: int, polls: float) -> float:
    """The pace of each of so many works; see sim.language.hosts.Device."""
    cores = S.device_cores[device]
    busy = works + polls
    share = cores * MOST_POLLS
    if polls == 0.0 and busy <= cores and (works == 1 or S.device_switching[device] == 0.0):  # a core for each
        return 1.0 if S.device_contention[device] == 0.0 else 1.0 / (1 + S.device_contention[device] * (busy - 1))
    share = (cores - (polls if polls < share else share)) / (1.0 * works)
    if busy > cores:
        busy = cores
    if works > 1:
        share /= 1 + S.device_switching[device]
    return (1.0 if share > 1.0 else share) / (1 + S.device_contention[device] * (busy - 1))


def pace(S: State, device: int) -> float:
    """The present pace."""
    return pace_of(S, device, S.device_busy[device] if S.device_busy[device] else 1, S.device_polls[device])


def take_turns(S: State, device: int, t: int, seconds: float) -> None:
    """Text t computes on the core where it has just worked; else on that with the fewest."""
    best = S.text_worked[t]
    k = S.device_core[device]
    stop = k + S.device_cores[device]
    S.text_in[t] = TURNING
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
    last = S.core_first[core]
    advance(S, core, pace(S, device) if S.core_works[core] else 1.0)
    S.text_core[t] = core
    S.text_due[t] = -1.0
    S.text_next[t] = NONE
    if last == NONE:
        S.core_first[core] = t
    elif since >= 0.0:
        S.text_due[last] = -1.0
        S.text_next[t] = last
        S.core_first[core] = t
    else:
        while S.text_next[last] != NONE:
            last = S.text_next[last]
        S.text_next[last] = t
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
    before = S.core_first[core]
    advance(S, core, pace(S, S.core_device[core]))
    if before == t:
        S.core_since[core] = S.now
        S.core_first[core] = S.text_next[t]
    else:
        while S.text_next[before] != t:
            before = S.text_next[before]
        S.text_next[before] = S.text_next[t]
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
            if S.text_work[one] < turn:
                turn = S.text_work[one]
            one = S.text_next[one]
        turn = turn / MOST_TURNS
        if turn < S.device_turn[device]:
            turn = S.device_turn[device]
        turn = S.core_since[core] + turn - S.now
        if turn < lasts:
            lasts = turn
    goes_on_at(S, first, S.now + (lasts if lasts > 0.0 else 0.0))


def has_turned(S: State, t: int) -> bool:
    """Text t has a core: whether only its turn is over; else its work is."""
    core = S.text_core[t]
    since = S.core_since[core]
    least = S.now * ROUND_OFF
    last = t
    advance(S, core, pace(S, S.core_device[core]))
    S.core_since[core] = S.now
    S.text_due[t] = -1.0
    S.core_first[core] = S.text_next[t]
    if S.text_work[t] > (least if least > ROUND_OFF_S else ROUND_OFF_S):
        while S.text_next[last] != NONE:
            last = S.text_next[last]
        S.text_next[t] = NONE
        if last == t:
            S.core_first[core] = t
        else:
            S.text_next[last] = t
        wake(S, core)
        return True
    if S.text_of_rank[t]:
        S.text_worked[t] = core
        S.text_worked_until[t] = S.now
        S.text_worked_since[t] = since
    S.core_works[core] -= 1
    S.device_works[S.core_device[core]] -= 1
    if S.core_works[core] == 0:
        idles(S, core, S.text_key[t])
    wake(S, core)
    return False


def leave_turns(S: State, t: int) -> None:
    """Text t is stopped."""
    core = S.text_core[t]
    take_away(S, core, t)
    if S.core_works[core] == 0:
        idles(S, core, S.text_key[t])


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
    push(S, S.now + TICK_S, key, core * KINDS + BALANCES)


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
