"""Steps of workers that sum in cycles while they compute, in each replication; sim.vector.lowered says when it is used."""

from __future__ import annotations

import numpy as np

from sim.vector.compiled import loop
from sim.vector.compiled.background import DONE
from sim.vector.compiled.background import play_steps as play_one

FULL = 4  # how a replication ends besides: there is no room for moments


@loop
def play_steps(rows, first, warmup, jobs, by_rank, decided, works, state, found):
    """Some steps, one after another, from where each replication is.

    Args:
        rows: replications to play, shape (rows,).
        first: the number of the first step.
        warmup: steps before waits count.
        jobs: tree, link, cycle_s, near_s and apart_s, see sim.vector.compiled.background.play_steps.
        by_rank: overhead of a message, shape (1 or kinds, ranks), and the kind of each replication.
        decided: as there.
        works: until ranks begin to sum, until they begin to compute, for the update, and after that, shape (steps, replications, ranks or
            1); for all layers, shape (steps, replications, ranks); and the share of them after which each gradient is ready.
        state: the next step, shape (replications,); when rank 0's step begins, and when the warm-up ended, likewise; from when rank 0's
            step begins: where ranks are, and when their last cycle began, shape (2, replications, ranks), and the moment of the last
            decision; this decision, shape (replications,). All are overwritten.
        found: when each step ends, shape (steps, replications); idle seconds, to be added to, and moments among the waits of decisions:
            of all steps but the last, of that if the run goes on, and if it ends there, one after another, shape (3 * replications,
            ranks), (many, 4) and (many,); how each replication's last step ends, and the decision that is missing, shape (replications,
            3).

    Returns:
        How many moments are among the waits of decisions.
    """
    at, begins_s, low_s, clocks, after_s, after = state
    ends_s, idle_s = found[0], found[1]
    before_s, input_s, update_s, rest_s, layers_s, shares = works
    steps, replications = ends_s.shape
    ranks, count = clocks.shape[2], np.int64(0)
    gradients = np.empty((1, ranks)), np.empty((len(shares), 1, ranks)), np.empty((len(shares), 1))
    own_state = np.empty((1, ranks)), np.empty((1, ranks)), np.empty(1, np.int64), np.empty(1)
    waited_s, moments_s, ended_s = np.empty((2, ranks)), np.empty((2, 1)), np.empty((1, ranks))
    for row in rows:
        while at[row] < steps:
            turn = at[row]
            number = first + turn
            begin_s = clocks[0, row, 0]
            begins_s[row] += begin_s
            clocks[:, row] -= begin_s
            after_s[row] -= begin_s
            _begin(clocks[0, row], (before_s[turn, row], input_s[turn, row], layers_s[turn, row], shares), gradients)
            moments_s[0, 0], moments_s[1, 0] = low_s[row] - begins_s[row] if number >= warmup else np.inf, np.inf
            which = row, number == 0, number == warmup - 1, turn == steps - 1
            own = own_state, moments_s, waited_s, ended_s
            more = _step(which, jobs, by_rank, decided, gradients, update_s[turn, row, 0], state, own, found, count)
            if more < 0:
                break
            count = more
            idle_s[row + (replications if turn == steps - 1 else 0)] += waited_s[0]
            idle_s[row + 2 * replications] += waited_s[1]
            from_s, computed_s, own_after, own_after_s = own_state
            ends_s[turn, row] = begins_s[row] + max(computed_s[0, 0], ended_s[0, 0]) + update_s[turn, row, 0]
            clocks[0, row] = np.maximum(computed_s[0], ended_s[0]) + (update_s[turn, row] + rest_s[turn, row])
            clocks[1, row], after[row], after_s[row] = from_s[0], own_after[0], own_after_s[0]
            at[row] += 1
    return count


@loop
def _step(which, jobs, by_rank, decided, gradients, update_s, state, own, found, count):
    """One step, once more where it ends a window, and once more where it begins one; how many moments there are then, or -1."""
    row, fresh, begins_window, ends_window = which
    _, begins_s, low_s, clocks, after_s, after = state
    now_s, ready_s, everywhere_s = gradients
    (from_s, computed_s, own_after, own_after_s), moments_s, waited_s, ended_s = own
    _, _, among, among_s, ends = found
    kind, idle_s, end = by_rank[1][row : row + 1], np.empty((1, len(clocks[0, row]))), np.zeros((1, 3), np.int64)
    overhead_s = by_rank[0][kind[0] : kind[0] + 1] if len(by_rank[0]) > 1 else by_rank[0]
    steps = now_s, ready_s, everywhere_s, (overhead_s, kind), decided, moments_s
    computed_s[0] = ready_s[len(ready_s) - 1, 0]
    waited_s[:], into, again = 0.0, 0, True
    while again:
        from_s[0], own_after[0], own_after_s[0], idle_s[:] = clocks[1, row], after[row], after_s[row], 0.0
        own_state = from_s, computed_s, own_after, own_after_s, fresh
        own_found = ended_s, idle_s, end, among[count:], among_s[count:]
        more = play_one(np.zeros(1, np.int64), *jobs, *steps, own_state, own_found)
        ends[row] = end[0]
        if more < 0:
            ends[row, 0] = FULL
            return -1
        if end[0, 0] != DONE:
            return -1
        among[count : count + more, 0] = row + (2 if into else ends_window) * len(after)
        count += more
        waited_s[into] += idle_s[0]
        end_s, again = max(computed_s[0, 0], ended_s[0, 0]) + update_s, False
        if begins_window and moments_s[0, 0] == np.inf:  # it is known by now from when waits count
            moments_s[0, 0], low_s[row], again = end_s, begins_s[row] + end_s, True
        elif ends_window and not into:  # and until when
            moments_s[1, 0], into, again = end_s, 1, True
    return count


@loop
def _begin(clock_s, works, gradients):
    """When each rank begins to sum, when each gradient is ready, and when it is so everywhere."""
    before_s, input_s, layers_s, shares = works
    now_s, ready_s, everywhere_s = gradients
    begin_s = now_s[0]
    begin_s[:] = clock_s + input_s + before_s
    everywhere_s[:] = -np.inf
    for gradient in range(len(shares)):
        for rank in range(len(clock_s)):
            ready_s[gradient, 0, rank] = shares[gradient] * layers_s[rank] + begin_s[rank]
    for rank in range(len(clock_s)):
        for gradient in range(len(shares)):
            here_s = shares[gradient] * layers_s[rank] + begin_s[rank]
            everywhere_s[gradient, 0] = max(everywhere_s[gradient, 0], here_s)
    begin_s[:] = clock_s + before_s
