"""Sorting many times: by digits of their rank between the least and the greatest, and last by comparing neighbours."""

from __future__ import annotations

import math

from sim.engine.kernel import state
from sim.engine.kernel.compiling import compiled, in_place

BITS, PASSES = 11, 3  # of a digit, and digits
DIGITS = 1 << BITS
FEW = 64  # that are sorted by comparing alone


@compiled
def sort(S, count):
    """Sort so many times in `reach`."""
    least, most = math.inf, -math.inf
    for i in range(count):
        least, most = min(least, state.reach(S, i).value), max(most, state.reach(S, i).value)
    if count > FEW and most > least:
        scale = (float(1 << (BITS * PASSES)) - 1.0) / (most - least)
        for k in range(PASSES):
            distribute(S, count, least, scale, k)
        for i in range(count):
            state.reach(S, i).value = state.spare(S, i).value
    insert(S, count)


@in_place
def time(S, i, k):
    """The i-th time before the k-th pass, which goes from `reach` to `spare`, or back."""
    return state.spare(S, i).value if k & 1 else state.reach(S, i).value


@compiled
def distribute(S, count, least, scale, k):
    """Put times in order of their k-th digit, and else as they are."""
    for digit in range(DIGITS):
        state.place(S, digit).value = 0
    for i in range(count):
        state.place(S, (int((time(S, i, k) - least) * scale) >> (k * BITS)) & (DIGITS - 1)).value += 1
    place = 0
    for digit in range(DIGITS):
        several = state.place(S, digit).value
        state.place(S, digit).value = place
        place += several
    for i in range(count):
        at_s = time(S, i, k)
        to = state.place(S, (int((at_s - least) * scale) >> (k * BITS)) & (DIGITS - 1))
        if k & 1:
            state.reach(S, to.value).value = at_s
        else:
            state.spare(S, to.value).value = at_s
        to.value += 1


@compiled
def insert(S, count):
    """Each time goes before those that are greater."""
    for i in range(1, count):
        at_s, k = state.reach(S, i).value, i
        while k > 0 and state.reach(S, k - 1).value > at_s:
            state.reach(S, k).value = state.reach(S, k - 1).value
            k -= 1
        state.reach(S, k).value = at_s
