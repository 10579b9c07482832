"""Gradients that are summed together: those next ones that fit into one buffer, and by which collective."""

from __future__ import annotations

from sim.engine.kernel import state
from sim.engine.kernel.compiling import compiled

ITEM_BYTES = 4.0


@compiled
def next_buffer(S, n, last):
    """The next gradients, from number n on, that fit into one buffer: the number behind them, where they begin and stop, and how many."""
    room, start, stop, count, variables = -1.0, 0, 0, 0, S.variables
    while n < last:
        v = variables - 1 - n % variables
        begin, end = state.variable_bound(S, v).value, state.variable_bound(S, v + 1).value
        size_bytes = ITEM_BYTES * (end - begin)
        if count == 0:
            stop, room = end, S.fusion_bytes
        elif size_bytes > room:
            break
        room -= size_bytes
        start = begin
        count += 1
        n += 1
    return n, start, stop, count


@compiled
def table_of(S, choice, size_bytes):
    """The table of a collective for so many bytes, from the first line of choices by size on."""
    while state.choice(S, choice).below_bytes <= size_bytes:
        choice += 1
    return state.choice(S, choice).table
