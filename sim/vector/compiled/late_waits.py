"""Waits of a background thread in each replication, as sim.vector.late_waits has them for all at once."""

from __future__ import annotations

import numpy as np

from sim.vector.compiled import loop


@loop
def add_inside(ranks, from_s, to_s, low_s, high_s, found_s):
    """Add what is inside of two moments of waits.

    Args:
        ranks: that wait, shape (waits,).
        from_s, to_s: shape (replications, waits).
        low_s, high_s: the moments, shape (replications, ranks).
        found_s: seconds, to be added to; likewise.
    """
    for row in range(len(from_s)):
        for number in range(len(ranks)):
            rank = ranks[number]
            inside_s = min(to_s[row, number], high_s[row, rank]) - max(from_s[row, number], low_s[row, rank])
            found_s[row, rank] += max(inside_s, 0.0)


@loop
def find_after(table, numbers, columns, from_s, root_s, found_s):
    """Seconds that ranks wait after a moment: all of a decision's waits, none, or nan where the moment is among them.

    Args:
        table: of decisions, shape (decisions, columns, ranks); `columns` are those of the waits, the first and the last moment.
        numbers: of each replication's decision.
        from_s: the moments, shape (replications, ranks).
        root_s: from which the table counts, shape (replications, 1).
        found_s: overwritten; shape (replications, ranks).

    Returns:
        Whether there is a nan.
    """
    among = False
    for row in range(len(from_s)):
        own = table[numbers[row]]
        for rank in range(from_s.shape[1]):
            moment_s = from_s[row, rank] - root_s[row, 0]
            if moment_s <= own[columns[1], rank]:
                found_s[row, rank] = own[columns[0], rank]
            elif moment_s < own[columns[2], rank]:
                found_s[row, rank], among = np.nan, True
            else:
                found_s[row, rank] = 0.0
    return among
