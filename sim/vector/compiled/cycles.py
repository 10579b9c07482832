"""Steps of workers that sum in cycles while they compute, in each replication; sim.vector.lowered says when it is used."""

from __future__ import annotations

import numpy as np

from sim.vector.compiled import loop
from sim.vector.compiled.arrays import add, copy
from sim.vector.compiled.background import DONE, play, scratch


@loop
def play_steps(rows, first, warmup, jobs, by_rank, decided, works, state, found):
    """Some steps, one after another, from where each replication is.

    Args:
        rows: replications to play, shape (rows,).
        first: the number of the first step.
        warmup: steps before waits count.
        jobs, decided: see sim.vector.compiled.background.play.
        by_rank: overhead of a message, shape (1 or kinds, ranks), and the kind of each replication.
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
    ends_s, idle_s, among, among_s, ends = found
    steps, replications = ends_s.shape
    ranks, count = clocks.shape[2], np.int64(0)
    begin_s, waited_s = np.empty(ranks), np.empty((2, ranks))
    gradients = np.empty((len(works[5]), 1, ranks)), np.empty((len(works[5]), 1)), np.empty(ranks)
    room = np.empty(ranks), np.empty(ranks), np.empty(ranks), scratch(ranks)
    for row in rows:
        while at[row] < steps:
            turn = at[row]
            number, last = first + turn, turn == steps - 1
            begins_s[row] += _count_from_begin(row, clocks, after_s)
            _begin(clocks[0, row], turn, row, works, begin_s, gradients)
            from_s = low_s[row] - begins_s[row] if number >= warmup else np.inf
            which = row, number == 0, number == warmup - 1, last
            given = jobs, by_rank, decided, gradients, begin_s
            own = clocks[1, row], after[row], after_s[row]
            told = _step(which, given, own, from_s, works[2][turn, row, 0], waited_s, (count, among, among_s), room)
            ends[row, 0], ends[row, 1], ends[row, 2] = told[0], told[4], told[5]
            if told[0] != DONE:
                break
            after[row], after_s[row], count = told[1], told[2], told[3]
            add(waited_s[0], idle_s[row + (replications if last else 0)])
            add(waited_s[1], idle_s[row + 2 * replications])
            ends_s[turn, row] = begins_s[row] + told[6]
            if number == warmup - 1:
                low_s[row] = ends_s[turn, row]
            _end(turn, row, works, gradients[2], room, clocks)
            at[row] += 1
    return count


@loop
def _count_from_begin(row, clocks, after_s):
    """When rank 0's step begins, from where clocks are counted from then on."""
    begin_s = clocks[0, row, 0]
    for clock in range(len(clocks)):
        for rank in range(clocks.shape[2]):
            clocks[clock, row, rank] -= begin_s
    after_s[row] -= begin_s
    return begin_s


@loop
def _begin(clock_s, turn, row, works, begin_s, gradients):
    """When each rank begins to sum, when each gradient is ready, and when it is so everywhere; and when ranks have computed all."""
    before_s, input_s, layers_s, shares = works[0][turn, row], works[1][turn, row], works[4][turn, row], works[5]
    ready_s, everywhere_s, computed_s = gradients
    everywhere_s[:] = -np.inf
    for rank in range(len(clock_s)):
        to_sum_s, to_compute_s = before_s[min(rank, len(before_s) - 1)], input_s[min(rank, len(input_s) - 1)]
        begin_s[rank] = clock_s[rank] + to_sum_s
        computes_s = clock_s[rank] + to_compute_s + to_sum_s
        for gradient in range(len(shares)):
            here_s = shares[gradient] * layers_s[rank] + computes_s
            ready_s[gradient, 0, rank] = here_s
            everywhere_s[gradient, 0] = max(everywhere_s[gradient, 0], here_s)
        computed_s[rank] = ready_s[len(shares) - 1, 0, rank]


@loop
def _step(which, given, own, from_s, update_s, waited_s, later, room):
    """One step, once more where it begins a window, and once more where it ends one.

    Args:
        which: the replication; whether nobody has begun a cycle before; whether the step begins the window in which waits count, and
            whether it may end it.
        given: jobs, by_rank, decided, gradients, and when ranks begin to sum.
        own: when each rank's last cycle began, the last decision, and its moment.
        from_s: from when waits count, if that is known.
        update_s: for which rank 0 updates.
        waited_s: of each rank if the run goes on, and if it ends there, shape (2, ranks); overwritten.
        later: see sim.vector.compiled.background.play.
        room: when ranks have summed, and when their last cycle began, overwritten; and room for waits and for `play`.

    Returns:
        As `play`, and when the step ends.
    """
    row, fresh, begins_window, ends_window = which
    jobs, (overheads_s, kinds), decided, (ready_s, everywhere_s, computed_s), begin_s = given
    last_from_s, after, after_s = own
    count, among, among_s = later
    ended_s, cycles_s, idle_s, more_room = room
    gradients, overhead_s = (
        (ready_s[:, 0], everywhere_s[:, 0], computed_s),
        overheads_s[min(kinds[row], len(overheads_s) - 1)],
    )
    into, until_s, again = 0, np.inf, True
    waited_s[:] = 0.0
    while again:
        copy(begin_s, ended_s)
        copy(last_from_s, cycles_s)
        begun = ended_s, cycles_s, after, after_s, fresh
        among_row = row + (2 if into else ends_window) * len(kinds)
        rank = overhead_s, kinds[row], from_s, until_s
        told = play(jobs, gradients, rank, decided, begun, idle_s, (among_row, count, among, among_s), more_room)
        end_s, again = max(computed_s[0], ended_s[0]) + update_s, False
        if told[0] == DONE:
            count = told[3]
            add(idle_s, waited_s[into])
            if begins_window and from_s == np.inf:  # it is known by now from when waits count
                from_s, again = end_s, True
            elif ends_window and not into:  # and until when
                until_s, into, again = end_s, 1, True
    return told[0], told[1], told[2], count, told[4], told[5], end_s


@loop
def _end(turn, row, works, computed_s, room, clocks):
    """Where ranks are after the step, and when their last cycle began."""
    update_s, rest_s = works[2][turn, row], works[3][turn, row]
    ended_s, cycles_s = room[0], room[1]
    for rank in range(len(computed_s)):
        after_s = update_s[min(rank, len(update_s) - 1)] + rest_s[min(rank, len(rest_s) - 1)]
        clocks[0, row, rank] = max(computed_s[rank], ended_s[rank]) + after_s
        clocks[1, row, rank] = cycles_s[rank]
