"""What a run leaves behind: when steps ended, and when ranks waited."""

from __future__ import annotations

import math

from sim.engine.kernel import state
from sim.engine.kernel.compiling import compiled, in_place
from sim.engine.kernel.ports import taken_s


@in_place
def note_wait(S, rank, from_s, to_s):
    """Note a wait, where waits are kept."""
    if S.wait_count > 0 and to_s > from_s:
        if S.waits == S.wait_count:
            add_up_waits(S)
        wait = state.wait(S, S.waits)
        wait.rank, wait.from_s, wait.to_s = rank, from_s, to_s
        S.waits += 1


@compiled
def add_up_waits(S):
    """Waits that were over when the last step ended are added up, from the end of the warm-up on; others are kept."""
    last_s, kept = state.step_end(S, S.ends - 1).at_s if S.ends > 0 else 0.0, 0
    warm_s, early_s = warm_from_s(S, S.warm_ends), warm_from_s(S, S.least_ends)
    for i in range(S.waits):
        wait = state.wait(S, i)
        if wait.to_s > last_s:
            other = state.wait(S, kept)
            other.rank, other.from_s, other.to_s = wait.rank, wait.from_s, wait.to_s
            kept += 1
        else:
            rank = state.rank(S, wait.rank)
            rank.waited_s += max(0.0, wait.to_s - max(wait.from_s, warm_s))
            rank.early_s += max(0.0, wait.to_s - max(wait.from_s, early_s))
    if kept == S.wait_count:
        S.short, kept = 1, 0
    S.waits = kept


@compiled
def warm_from_s(S, ends):
    """When so many updates had been made."""
    if ends > S.ends:
        return math.inf
    return state.step_end(S, ends - 1).at_s if ends > 0 else 0.0


@compiled
def note_step(S, at_s, samples):
    """Note an update of rank 0."""
    if S.ends < S.step_end_count:
        step = state.step_end(S, S.ends)
        step.at_s, step.samples = at_s, samples
    S.ends += 1
    if S.meters and S.ends == S.warm_ends:
        begin_measuring(S)


@compiled
def begin_measuring(S):
    """How busy parts have been until the end of the warm-up."""
    for r in range(S.rank_count):
        rank = state.rank(S, r)
        rank.computed_before_s, rank.applied_before_s = rank.computed_s, rank.applied_s
    for h in range(S.port_count):
        port = state.port(S, h)
        port.busy_before_s = taken_s(S, port)


@in_place
def note_missed(S, updates):
    """Rank 0 adds a gradient that has missed so many updates."""
    if S.meters and S.ends >= S.warm_ends:
        state.missed(S, min(updates, S.missed_count - 1)).value += 1
