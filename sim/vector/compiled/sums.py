"""Steps of workers that sum by collective calls, in each replication, as sim.vector.ring has them; sim.vector.lowered says when."""

from __future__ import annotations

import numpy as np

from sim.vector.compiled import loop
from sim.vector.compiled.arrays import copy_rows
from sim.vector.compiled.constants import TAKE
from sim.vector.compiled.exchanges import play, scratch
from sim.vector.compiled.ring import add_up, hand_over, take

RING, LAID_OUT = 0, 1  # kinds of call
NOW, OUT_FREE, IN_FREE, LAST_REACH = range(
    4
)  # clocks of ranks and their ports, and when the last message reached these


@loop
def play_steps(first, warmup, calls, ring, laid_out, limits, by_rank, works, state, found):
    """Some steps, one after another.

    Args:
        first: the number of the first step.
        warmup: steps before waits count.
        calls: of each call of a step its kind, whether the call before it was a ring too, the number of its plan, and the numbers of its
            first message and of the first of the next call, shape (calls, 5); the seconds that ranks wait before it, and work for it at
            speed 1, shape (calls, 2).
        ring: of each round the pieces that rank 0 hands over and takes, and whether it adds, shape (rounds, 3); seconds that pieces take a
            port and are added in, of each call, twice round, shape (2, calls, 2 * ranks).
        laid_out: plans' operations, sources and ranks that go ahead, one after another; where each of them begins and ends, shape
            (plans, 6); seconds that messages take a port and are added in, shape (2, messages). See sim.vector.compiled.exchanges.
        limits: see sim.vector.compiled.exchanges.play.
        by_rank: overhead of a message, and speed, shape (2, replications, ranks).
        works: until ranks sum, for the update, and after that, shape (steps, replications, ranks or 1).
        state: when rank 0's step begins, and when the warm-up ended, shape (replications,); clocks as above from when rank 0's step
            begins, shape (replications, 4, ranks). All are overwritten.
        found: when each step ends, shape (steps, replications); idle seconds, to be added to: of all steps but the last, of that if the
            run goes on, and if it ends there, shape (3, replications, ranks).

    Returns:
        False where it cannot be told which message passes a port first.
    """
    begins_s, low_s, clocks = state
    ends_s, idle_s = found
    steps, replications = ends_s.shape
    room = _room(calls[0], laid_out, clocks.shape[2])
    before_s = np.empty(clocks.shape[1:])
    for row in range(replications):
        own, costs = clocks[row], (by_rank[0, row], by_rank[1, row])
        jobs = calls, ring, laid_out, limits, costs
        for turn in range(steps):
            begin_s = own[NOW, 0]
            begins_s[row] += begin_s
            own -= begin_s
            copy_rows(own, before_s)
            number, last = first + turn, turn == steps - 1
            own_works = works[0][turn, row], works[1][turn, row], works[2][turn, row]
            from_s, until_s = low_s[row] - begins_s[row] if number >= warmup else np.inf, np.inf
            into, again = 1 if last else 0, True
            while again:
                end_s, again = _step(jobs, own_works, own, (from_s, until_s), idle_s[into, row], room), False
                if np.isnan(end_s):
                    return False
                if number == warmup - 1 and from_s == np.inf:  # once more, now that it is known from when waits count
                    from_s, low_s[row], again = end_s, begins_s[row] + end_s, True
                elif last and into == 1:  # and until when
                    until_s, into, again = end_s, 2, True
                if again:
                    copy_rows(before_s, own)
            ends_s[turn, row] = begins_s[row] + end_s
    return True


@loop
def _room(calls, laid_out, ranks):
    """Room for calls: of plans, for waits of one, and for a number of each rank, twice."""
    plans = laid_out[3]
    slots, messages, takes = 0, 0, 0
    for call in range(len(calls)):
        messages = max(messages, calls[call, 4] - calls[call, 3])
    for plan in range(len(plans)):
        slots, takes = max(slots, plans[plan, 3] - plans[plan, 2]), max(takes, plans[plan, 1] - plans[plan, 0])
    return scratch(slots, messages, ranks), np.empty((2, takes)), np.empty(ranks)


@loop
def _step(jobs, works, clocks, moments_s, idle_s, room):
    """One step; when it ends, or nan where that cannot be told."""
    (calls, spent_s), ring, laid_out, limits, costs = jobs
    now_s, speeds = clocks[NOW], costs[1]
    now_s += works[0]
    for call in range(len(calls)):
        if spent_s[call, 0]:
            for rank in range(len(now_s)):
                idle_s[rank] += max(
                    min(now_s[rank] + spent_s[call, 0], moments_s[1]) - max(now_s[rank], moments_s[0]), 0.0
                )
                now_s[rank] += spent_s[call, 0]
        for rank in range(len(now_s)):
            now_s[rank] += spent_s[call, 1] / speeds[rank]
        if calls[call, 0] == RING:
            own = ring[0], ring[1][0, call], ring[1][1, call]
            told = _ring(own, limits[0], costs, clocks, calls[call, 1], moments_s, idle_s, room[2])
        else:
            told = _laid_out(laid_out, calls[call, 2:], limits, costs, clocks, moments_s, idle_s, room)
        if not told:
            return np.nan
    now_s += works[1]
    end_s = now_s[0]
    now_s += works[2]
    return end_s


@loop
def _ring(ring, latency_s, costs, clocks, after_ring, moments_s, idle_s, come_s):
    """A call by a ring; False where a message may overtake one of the call before."""
    rounds, port_s, add_s = ring
    overhead_s, speeds = costs
    now_s, out_free_s, in_free_s, last_reach_s = clocks
    low_s, high_s = moments_s
    for turn in range(len(rounds)):
        hand_over(now_s, out_free_s, port_s[rounds[turn, 0] :], overhead_s, latency_s, come_s)
        if turn == 0 and not after_ring:
            for rank in range(len(come_s)):
                if come_s[rank] <= last_reach_s[rank]:
                    return False
        if turn == len(rounds) - 1:
            for rank in range(len(come_s)):
                last_reach_s[rank] = max(last_reach_s[rank], come_s[rank])
        take(now_s, out_free_s, in_free_s, come_s, port_s[rounds[turn, 1] :], overhead_s, idle_s, low_s, high_s)
        if rounds[turn, 2]:
            add_up(now_s, add_s[rounds[turn, 1] :], speeds)
    return True


@loop
def _laid_out(laid_out, which, limits, costs, clocks, moments_s, idle_s, room):
    """A call that is laid out; False where it cannot be told which message passes a port first."""
    operations, sources, ahead, plans, messages_s = laid_out
    plan, first, stop = which
    operations = operations[plans[plan, 0] : plans[plan, 1]]
    sources, ahead = sources[plans[plan, 2] : plans[plan, 3]], ahead[plans[plan, 4] : plans[plan, 5]]
    own = messages_s[0][first:stop], messages_s[1][first:stop], costs[0], costs[1]
    last_s, waits_s, idle_from_s = clocks[LAST_REACH], room[1], room[2]
    given = ahead, clocks[:LAST_REACH], last_s, own, limits, room[0]
    if not play(operations, sources, *given, waits_s, idle_from_s, last_s):
        return False
    number = 0
    for operation in range(len(operations)):
        if operations[operation, 0] == TAKE:
            rank, from_s, to_s = operations[operation, 1], waits_s[0, number], waits_s[1, number]
            idle_s[rank] += max(min(to_s, moments_s[1]) - max(from_s, moments_s[0]), 0.0)
            number += 1
    return True
