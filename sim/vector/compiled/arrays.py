"""Arrays that become others: loops, because numba takes a second or more to compile `array[:] = other`, whose error names both shapes."""

from __future__ import annotations

from sim.vector.compiled import loop


@loop
def copy(of, to):
    """Copy numbers, shape (some,)."""
    for place in range(len(of)):
        to[place] = of[place]


@loop
def add(of, to):
    """Add numbers, shape (some,)."""
    for place in range(len(of)):
        to[place] += of[place]


@loop
def copy_rows(of, to):
    """Copy numbers, shape (rows, some)."""
    for row in range(len(of)):
        for place in range(of.shape[1]):
            to[row, place] = of[row, place]
