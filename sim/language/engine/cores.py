"""Devices that texts compute on: cores one after another (first come, first served), in turns, or shared evenly by all."""

from __future__ import annotations

import math

from sim.language.engine.heap import goes_on_at, key_of
from sim.language.engine.idle import is_busy, is_done
from sim.language.engine.layout import COMPUTING, NONE, QUEUED, SHARING, SLEEPING, TURNING, State
from sim.language.engine.turns import leave_turns, pace, repace, take_turns


def sleep(S: State, t: int, seconds: float) -> None:
    """Text t sleeps."""
    is_busy(S, t)
    S.text_work[t] = S.now
    S.text_in[t] = SLEEPING
    goes_on_at(S, t, S.now + seconds)


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
        S.text_in[t] = QUEUED
        S.text_work[t] = seconds
        S.text_next[t] = NONE
        if S.device_first[device] == NONE:
            S.device_first[device] = t
        else:
            S.text_next[S.device_last[device]] = t
        S.device_last[device] = t


def serve(S: State, t: int, seconds: float) -> None:
    """Text t has a core."""
    S.text_in[t] = COMPUTING
    goes_on_at(S, t, S.now + seconds)


def computed(S: State, t: int, stopped: bool) -> None:
    """Text t has computed, or is stopped: its core is free for the next."""
    device = S.text_device[t]
    is_done(S, t)
    if S.text_in[t] == QUEUED:
        unqueue(S, device, t)
    elif S.text_in[t] == SHARING:
        unshare(S, device, t, stopped)
    elif S.text_in[t] == TURNING:
        if stopped:
            leave_turns(S, t)
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
        if S.device_first[device] != NONE:
            S.text_due[S.device_first[device]] = -1.0
        plan(S, device)
    elif S.device_turn[device] != math.inf:
        repace(S, device, S.device_busy[device], before, NONE)


def unqueue(S: State, device: int, t: int) -> int:
    """Take a text out of a device's chain; the one before it."""
    before = NONE
    one = S.device_first[device]
    while one != t:
        before = one
        one = S.text_next[one]
    if before == NONE:
        S.device_first[device] = S.text_next[t]
    else:
        S.text_next[before] = S.text_next[t]
    if S.device_last[device] == t:
        S.device_last[device] = before
    return before


def count(S: State, device: int) -> None:
    """Count what sharers have had until now."""
    S.device_done[device] += (S.now - S.device_since[device]) * pace(S, device)
    S.device_since[device] = S.now


def plan(S: State, device: int) -> None:
    """The sharer that is done first goes on when it is done; who else did is planned later."""
    first = S.device_first[device]
    if first != NONE:
        left = S.text_work[first] - S.device_done[device]
        goes_on_at(S, first, S.now + (left if left > 0.0 else 0.0) / pace(S, device))


def share(S: State, device: int, t: int, seconds: float) -> None:
    """Text t shares the device; those that are done at the same time stand in the order of their keys."""
    before = NONE
    one = S.device_first[device]
    count(S, device)
    end = S.device_done[device] + seconds
    S.text_key[t] = key_of(S, S.text_rank[t], S.text_number[t], S.text_count[t])
    while one != NONE and (S.text_work[one] < end or (S.text_work[one] == end and S.text_key[one] < S.text_key[t])):
        before = one
        one = S.text_next[one]
    if S.device_first[device] != NONE:
        S.text_due[S.device_first[device]] = -1.0
    S.text_in[t] = SHARING
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
    if S.device_first[device] != NONE:
        S.text_due[S.device_first[device]] = -1.0
    unqueue(S, device, t)
    S.device_busy[device] -= 1
    plan(S, device)
