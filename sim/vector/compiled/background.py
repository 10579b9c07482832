"""The background threads of a step in each replication, as sim.vector.cycles.background has them of all at once; requests go up a tree."""

from __future__ import annotations

import numpy as np

from sim.vector.compiled import loop
from sim.vector.compiled.arrays import add, copy
from sim.vector.compiled.by_tree import ask

# How a replication ends: with a step, or because something cannot be told, or is not known.
DONE, NEAR, UNSETTLED, UNDECIDED, FULL = range(5)  # the last: there is no room for moments
# Columns of decisions, see sim.vector.cycles.decided.CLOCKS.
ENDS, IN_FREE, LAST_REACH, WAITS, FIRST, LAST, TOLD = range(7)
IDLE = 8  # and the first of those of idle ports


@loop
def play_steps(rows, jobs, now_s, ready_s, everywhere_s, speeds, decided, moments_s, state, found):
    """A step of each replication.

    Args:
        rows: replications to play, shape (rows,).
        jobs, decided: see `play`.
        now_s: when the step begins, shape (replications, ranks).
        ready_s: when gradients are ready, shape (gradients, replications, ranks).
        everywhere_s: when each is so at all ranks, shape (gradients, replications).
        speeds: overhead of a message, shape (1 or replications, ranks); the kind of each replication.
        moments_s: between which waits count, shape (2, replications).
        state: when each rank's last cycle began, and has computed, shape (replications, ranks); the last decision and its moment, shape
            (replications,); whether nobody has begun a cycle before. All but the second are overwritten, of what is DONE.
        found: when each thread has ended, and idle seconds to be added to, shape (replications, ranks); how each ends, and the decision
            that is missing, shape (replications, 3); moments among the waits of decisions, see `play`.

    Returns:
        How many moments are among the waits of decisions.
    """
    overhead_s, kinds = speeds
    from_s, computed_s, after, after_s, fresh = state
    ended_s, idle_s, ends, among, among_s = found
    ranks, count = now_s.shape[1], np.int64(0)
    room, clock_s, own_from_s, sum_s = scratch(ranks), np.empty(ranks), np.empty(ranks), np.empty(ranks)
    for row in rows:
        copy(now_s[row], clock_s)
        copy(from_s[row], own_from_s)
        gradients = ready_s[:, row], everywhere_s[:, row], computed_s[row]
        own = overhead_s[row % len(overhead_s)], kinds[row], moments_s[0, row], moments_s[1, row]
        own_state = clock_s, own_from_s, after[row], after_s[row], fresh
        told = play(jobs, gradients, own, decided, own_state, sum_s, (row, count, among, among_s), room)
        ends[row, 0], ends[row, 1], ends[row, 2] = told[0], told[4], told[5]
        if told[0] == FULL:
            return -1
        if told[0] == DONE:
            after[row], after_s[row], count = told[1], told[2], told[3]
            copy(clock_s, ended_s[row])
            copy(own_from_s, from_s[row])
            add(sum_s, idle_s[row])
    return count


@loop
def scratch(ranks):
    """Room for `play`."""
    return np.empty(ranks), np.empty(ranks), np.empty(ranks), np.empty((2, ranks))


@loop
def play(jobs, gradients, own, decided, state, idle_s, later, room):
    """A step of one replication.

    Args:
        jobs: the tree, and latency and the seconds that a request passes a port, see sim.vector.compiled.by_tree.ask; seconds from one
            cycle to the next at least; a gradient that becomes ready so near to a cycle's begin cannot be told from one that is, or is
            not, in it; messages that are further apart than the first and not further than the second may come in either order.
        gradients: when they are ready, shape (gradients, ranks); when each is so at all ranks, shape (gradients,); when ranks have
            computed all, shape (ranks,).
        own: overhead of a message, shape (ranks,); its kind; the moments between which waits count.
        decided: table, shape (decisions, columns, ranks); numbers of decisions by kind, first and last gradient, or -1, shape (kinds,
            gradients, gradients + 1); when each is over, shape (decisions,).
        state: where ranks are, and when their last cycle began, shape (ranks,), both overwritten; the last decision and its moment;
            whether nobody has begun a cycle before.
        idle_s: what ranks wait, shape (ranks,); overwritten.
        later: the replication; how many moments there are already among the waits of decisions, and these: row, rank, number, sign,
            shape (many, 4), and seconds, shape (many,).
        room: `scratch`.

    Returns:
        How it ends; the last decision and its moment; how many moments there are then; and the decision that is missing.
    """
    tree, link, cycle_s, near_s, apart_s = jobs
    ready_s, everywhere_s, computed_s = gradients
    overhead_s, kind, low_s, high_s = own
    table, numbers, last_s = decided
    clock_s, from_s, number, root_s, fresh = state
    begin_s, left_s, cycle_idle_s, waits_s = room
    row, among_count, among, among_s = later
    times, first_s = (table.shape[1] - IDLE) // 2, np.inf
    count = last = np.int64(0)
    for rank in range(len(computed_s)):
        first_s, idle_s[rank] = min(first_s, computed_s[rank]), 0.0
    while count < len(ready_s):
        certain_s, begins = everywhere_s[count], fresh and count == 0
        in_turn = begins and _all_alike(clock_s, clock_s[0])
        may_be = _begin_cycle(clock_s, from_s, certain_s, cycle_s, near_s, begin_s)
        in_turn = in_turn or _all_alike(begin_s, certain_s)
        last = _agreed(begin_s, ready_s, everywhere_s, count, near_s)
        if last < 0 or not may_be:
            return NEAR, number, root_s, among_count, count, last
        before = table[number]
        idle = before[IDLE : IDLE + times], before[IDLE + times :], root_s
        ports = before[IN_FREE], before[LAST_REACH], root_s
        root_s = ask(tree, begin_s, overhead_s, link, ports, idle, in_turn, apart_s, waits_s, left_s)
        if np.isnan(root_s):
            return UNSETTLED, number, root_s, among_count, count, last
        number = numbers[kind, count, last]
        if number < 0:
            return UNDECIDED, number, root_s, among_count, count, last
        made = table[number]
        if root_s + last_s[number] > first_s:
            moments_s = computed_s, low_s, high_s
            _add_inside(tree[1], clock_s, begin_s, waits_s, left_s, root_s, made[TOLD], moments_s, cycle_idle_s)
            among_count = _add_after(made, row, number, root_s, moments_s, cycle_idle_s, (among_count, among, among_s))
            if among_count < 0:
                return FULL, number, root_s, among_count, count, last
            add(cycle_idle_s, idle_s)
        for rank in range(len(clock_s)):
            clock_s[rank] = root_s + made[ENDS, rank]
        count = last
    return DONE, number, root_s, among_count, count, last


@loop
def _add_inside(parents, clock_s, begin_s, waits_s, left_s, root_s, told_s, moments_s, found_s):
    """Waits of a cycle until ranks are told, between two moments."""
    computed_s, from_s, until_s = moments_s
    for rank in range(len(parents)):
        low_s = max(computed_s[rank], from_s)
        high_s = max(low_s, until_s)
        found_s[rank] = max(min(begin_s[rank], high_s) - max(clock_s[rank], low_s), 0.0)
    for child in range(1, len(parents)):
        rank = parents[child]
        low_s = max(computed_s[rank], from_s)
        high_s = max(low_s, until_s)
        found_s[rank] += max(min(waits_s[1, child], high_s) - max(waits_s[0, child], low_s), 0.0)
    for rank in range(1, len(parents)):
        low_s = max(computed_s[rank], from_s)
        high_s = max(low_s, until_s)
        found_s[rank] += max(min(root_s + told_s[rank], high_s) - max(left_s[rank], low_s), 0.0)


@loop
def _all_alike(times_s, moment_s):
    """Whether all are at one moment."""
    unlike = 0
    for rank in range(len(times_s)):
        unlike += times_s[rank] != moment_s
    return unlike == 0


@loop
def _begin_cycle(clock_s, from_s, certain_s, cycle_s, near_s, begin_s):
    """Find when each rank's cycle begins, which also becomes `from_s`; False where a gradient becomes ready as it does."""
    near = 0
    for rank in range(len(clock_s)):
        least_s, is_ready_s = max(clock_s[rank], from_s[rank] + cycle_s), max(clock_s[rank], certain_s)
        cycles = (is_ready_s - least_s) / cycle_s if cycle_s else 0.0
        awaited = certain_s > clock_s[rank] - near_s  # or else it is ready, and rounding decides nothing
        near += awaited & (abs(cycles - np.rint(cycles)) * cycle_s < near_s) & (cycles > -0.5) & (cycles != 0)
        begin_s[rank] = from_s[rank] = max(is_ready_s, least_s + max(np.ceil(cycles), 0.0) * cycle_s)
    return near == 0


@loop
def _agreed(begin_s, ready_s, everywhere_s, count, near_s):
    """How many gradients are ready at all ranks when each begins; -1 where one becomes so as a rank begins."""
    gradients, last = len(everywhere_s), 0
    least_s, most_s = np.inf, -np.inf
    for rank in range(len(begin_s)):
        least_s, most_s = min(least_s, begin_s[rank]), max(most_s, begin_s[rank])
    for gradient in range(gradients):
        last += everywhere_s[gradient] <= least_s - near_s
    last = max(count + 1, last)
    asks = last < gradients and everywhere_s[last] <= most_s + near_s
    while asks:
        behind_s = -np.inf
        for rank in range(len(begin_s)):
            behind_s = max(behind_s, ready_s[last, rank] - begin_s[rank])
        if abs(behind_s) < near_s and everywhere_s[last] > everywhere_s[count]:
            return -1
        last += behind_s <= 0
        asks = behind_s <= 0 and last < gradients
    return last


@loop
def _add_after(own, row, number, root_s, moments_s, found_s, later):
    """Waits once ranks are told; how many moments are among the waits of decisions, or -1 where there is no room for them."""
    computed_s, from_s, until_s = moments_s
    count, among, among_s = later
    for rank in range(len(found_s)):
        low_s = max(computed_s[rank], from_s)
        high_s = max(low_s, until_s)
        for sign, moment_s in ((1, low_s - root_s), (-1, high_s - root_s)):
            if moment_s <= own[FIRST, rank]:
                found_s[rank] += sign * own[WAITS, rank]
            elif moment_s < own[LAST, rank]:
                if count == len(among):
                    return -1
                among_s[count] = moment_s
                among[count, 0], among[count, 1], among[count, 2], among[count, 3] = row, rank, number, sign
                count += 1
    return count
