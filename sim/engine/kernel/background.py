"""What a thread beside the computation needs: a second strand of its rank, cycles, and gradients that are summed together."""

from __future__ import annotations

import math

from sim.engine.kernel import state
from sim.engine.kernel.compiling import compiled, in_place
from sim.engine.kernel.heap import schedule
from sim.engine.kernel.layout import GO, NEXT, TIE_S, WAITS
from sim.engine.kernel.memo import end_noting
from sim.engine.kernel.records import note_wait

NOBODY = -1
ALWAYS_S, ITEM_BYTES = 1e300, 4.0


@compiled
def cycle(S, strand, rank, s, r, line):
    """Wait for the next cycle in which the rank has a gradient that all ranks have."""
    if strand.phase == 0:
        end_noting(S, strand)
    n, cycle_s = rank.reduced, state.register(S, s, line.a).value
    ready = state.gradient(S, n)
    if strand.phase == 0:
        strand.t0_s, strand.began_s = max(strand.clock_s, strand.cycle_s + cycle_s), strand.clock_s
        if ready.ranks < S.ranks:
            return await_gradient(S, strand, n)
    if strand.phase != 2:
        begin_s = begin_in_turn(strand.t0_s, max(strand.clock_s, ready.at_s), cycle_s)
        schedule(S, S.now_s + max(0.0, begin_s - S.now_s), GO, s, 0)
        strand.phase = 2
        return WAITS
    strand.cycle_s = strand.clock_s
    note_wait(S, r, max(strand.began_s, rank.idle_s), strand.clock_s)
    return NEXT


@in_place
def begin_in_turn(begin_s, ready_s, cycle_s):
    """When the first cycle begins, of those after one another, in which a gradient is ready."""
    left_s = ready_s - TIE_S - begin_s
    if left_s > 0.0:
        begin_s = begin_s + math.ceil(left_s / cycle_s) * cycle_s if cycle_s > 0.0 else ready_s
    return max(ready_s, begin_s)


@compiled
def await_gradient(S, strand, n):
    """Wait until all ranks have a gradient."""
    strand.phase, strand.waits_for = 1, n
    state.gradient(S, n).waiting += 1
    return WAITS


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
def fuse(S, s, line):
    """The next gradients that fit into one buffer: where they begin and stop, and whether they are several."""
    n, last = int(state.register(S, s, line.a).value), int(state.register(S, s, line.a + 1).value)
    n, start, stop, count = next_buffer(S, n, last)
    state.register(S, s, line.a).value, state.register(S, s, line.a + 2).value = n, start
    state.register(S, s, line.a + 3).value, state.register(S, s, line.a + 4).value = stop, count > 1
    return NEXT


@compiled
def fork(S, strand, rank, s, r, line):
    """The rank's other strand begins; both go on."""
    k = S.ranks + r
    other = state.strand(S, k)
    other.pc, other.phase, other.waits_for = line.a, 0, NOBODY
    strand.left, rank.idle_s, other.clock_s = 2, ALWAYS_S, strand.clock_s
    strand.pc += 1
    schedule(S, S.now_s, GO, s, 0)
    schedule(S, S.now_s, GO, k, 0)
    return WAITS


@compiled
def join(S, strand, rank, s, line):
    """A strand is done; when both are, the one that computes goes on."""
    computes = line.a == 1
    if not computes and strand.phase == 0:
        end_noting(S, strand)
    if strand.phase == 0:
        if computes:
            rank.idle_s = strand.clock_s
        strand.phase, first = 1, state.strand(S, strand.rank)
        first.left -= 1
        if first.left == 0:
            schedule(S, S.now_s, GO, strand.rank, 0)
        return WAITS
    rank.ready_before += S.variables
    rank.ready = 0
    return NEXT
