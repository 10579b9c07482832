"""Steps that are over when the last rank has ended them: sim.event.all_ranks, on arrays."""

from __future__ import annotations

import math

from sim.engine.kernel import state
from sim.engine.kernel.compiling import compiled
from sim.engine.kernel.records import note_step


@compiled
def note_computed(S, rank, samples):
    """A rank has computed a gradient, or a part of one."""
    state.round(S, int(rank.step)).computed += samples


@compiled
def note_updated(S, rank, samples, at_s):
    """A rank has made an update."""
    state.round(S, int(rank.step)).applied += samples
    rank.updated_s = at_s


@compiled
def end_round(S, strand, rank, r):
    """A rank has ended its round: with its last update, or now if it has made none."""
    step = int(rank.step)
    of, made = state.round(S, step), rank.updated_s >= 0.0
    end_s = rank.updated_s if made else strand.clock_s
    rank.updated_s, of.at_s = -math.inf, max(of.at_s, end_s)
    state.own_end(S, r, step).value = end_s
    if r == 0 and not made:
        of.unmade = 1
    of.ended += 1
    if of.ended == S.ranks and of.unmade == 0:
        note_step(S, of.at_s, min(of.applied, of.computed))
