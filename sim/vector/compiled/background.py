"""The background threads of a step in each replication, as sim.vector.background has them for all at once, with requests up a tree."""

from __future__ import annotations

import numpy as np

from sim.vector.compiled import loop
from sim.vector.compiled.by_tree import ask

# How a replication ends: with a step, or because something cannot be told, or is not known.
DONE, NEAR, UNSETTLED, UNDECIDED = 0, 1, 2, 3
ENDS, IN_FREE, LAST_REACH, WAITS, FIRST, LAST, TOLD = range(7)  # columns of decisions, see sim.vector.decided.CLOCKS
IDLE = 8  # and the first of those of idle ports


@loop
def play_steps(
    rows, tree, link, cycle_s, near_s, apart_s, now_s, ready_s, everywhere_s, speeds, decided, moments_s, state, found
):
    """A step of each replication.

    Args:
        rows: replications to play, shape (rows,).
        tree: children and parents, see sim.vector.compiled.by_tree.ask.
        link: latency and the seconds that a request passes a port.
        cycle_s: seconds from one cycle to the next at least.
        near_s: a gradient that becomes ready so near to a cycle's begin cannot be told from one that is, or is not, in it.
        apart_s: messages that are further apart than the first and not further than the second may come in either order.
        now_s: when the step begins, shape (replications, ranks).
        ready_s: when gradients are ready, shape (gradients, replications, ranks).
        everywhere_s: when each is so at all ranks, shape (gradients, replications).
        speeds: overhead of a message, shape (1 or replications, ranks); the kind of each replication.
        decided: table, shape (decisions, columns, ranks); numbers of decisions by kind, first and last gradient, or -1, shape (kinds,
            gradients, gradients + 1); when each is over, shape (decisions,).
        moments_s: between which waits count, shape (2, replications).
        state: when each rank's last cycle began, and has computed, shape (replications, ranks); the last decision and its moment, shape
            (replications,); whether nobody has begun a cycle before. All but the second are overwritten, of what is DONE.
        found: when each thread has ended, and idle seconds to be added to, shape (replications, ranks); how each ends, and the decision
            that is missing, shape (replications, 3); moments among the waits of decisions: row, rank, number, sign, shape (many, 4), and
            seconds, shape (many,); overwritten.

    Returns:
        How many moments are among the waits of decisions.
    """
    overhead_s, kinds = speeds
    table, numbers, last_s = decided
    from_s, computed_s, after, after_s, fresh = state
    ended_s, idle_s, ends, among, among_s = found
    gradients, ranks = len(ready_s), now_s.shape[1]
    begin_s, clock_s, own_from_s, left_s, sum_s, cycle_idle_s = (
        np.empty(ranks),
        np.empty(ranks),
        np.empty(ranks),
        np.empty(ranks),
        np.empty(ranks),
        np.empty(ranks),
    )
    waits_s, count_among = np.empty((2, ranks)), 0
    times = (table.shape[1] - IDLE) // 2
    for row in rows:
        clock_s[:], own_from_s[:], sum_s[:] = now_s[row], from_s[row], 0.0
        number, root_s, kind, first_s = after[row], after_s[row], kinds[row], computed_s[row].min()
        overhead, mark, end, count = overhead_s[row % len(overhead_s)], count_among, DONE, 0
        while count < gradients and end == DONE:
            certain_s, begins = everywhere_s[count, row], fresh and count == 0
            in_turn = begins and _all_alike(clock_s, clock_s[0])
            may_be = _begin_cycle(clock_s, own_from_s, certain_s, cycle_s, near_s, begin_s)
            in_turn = in_turn or _all_alike(begin_s, certain_s)
            last = _agreed(begin_s, ready_s[:, row], everywhere_s[:, row], count, near_s)
            if last < 0 or not may_be:
                end = NEAR
                break
            own = table[number]
            idle = own[IDLE : IDLE + times], own[IDLE + times :], root_s
            ports = own[IN_FREE], own[LAST_REACH], root_s
            root_s = ask(tree, begin_s, overhead, link, ports, idle, in_turn, apart_s, waits_s, left_s)
            if np.isnan(root_s):
                end = UNSETTLED
                break
            number = numbers[kind, count, last]
            if number < 0:
                end = UNDECIDED
                ends[row, 1], ends[row, 2] = count, last
                break
            own = table[number]
            if root_s + last_s[number] > first_s:
                _add_inside(
                    tree[1],
                    clock_s,
                    begin_s,
                    waits_s,
                    left_s,
                    root_s,
                    own[TOLD],
                    computed_s[row],
                    moments_s[0, row],
                    moments_s[1, row],
                    cycle_idle_s,
                )
                later = count_among, among, among_s
                own_moments_s = computed_s[row], moments_s[0, row], moments_s[1, row]
                count_among = _add_after(own, row, number, root_s, own_moments_s, cycle_idle_s, later)
                if count_among < 0:
                    return -1
                sum_s += cycle_idle_s
            for rank in range(ranks):
                clock_s[rank] = root_s + own[ENDS, rank]
            count = last
        ends[row, 0] = end
        if end == DONE:
            ended_s[row], from_s[row], after[row], after_s[row] = clock_s, own_from_s, number, root_s
            idle_s[row] += sum_s
        else:
            count_among = mark
    return count_among


@loop
def _add_inside(parents, clock_s, begin_s, waits_s, left_s, root_s, told_s, computed_s, from_s, until_s, found_s):
    """Waits of a cycle until ranks are told, between two moments."""
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
        near += (abs(cycles - np.rint(cycles)) * cycle_s < near_s) & (cycles > -0.5) & (cycles != 0)
        begin_s[rank] = from_s[rank] = max(is_ready_s, least_s + max(np.ceil(cycles), 0.0) * cycle_s)
    return near == 0


@loop
def _agreed(begin_s, ready_s, everywhere_s, count, near_s):
    """How many gradients are ready at all ranks when each begins; -1 where one becomes so as a rank begins."""
    gradients, last = len(everywhere_s), 0
    least_s, most_s = begin_s.min(), begin_s.max()
    for gradient in range(gradients):
        last += everywhere_s[gradient] <= least_s - near_s
    last = max(count + 1, last)
    asks = last < gradients and everywhere_s[last] <= most_s + near_s
    while asks:
        behind_s = (ready_s[last] - begin_s).max()
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
