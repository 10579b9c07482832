"""What a run leaves behind: when steps ended, where the last rank may end them (sim.event.all_ranks), and when ranks waited."""

from __future__ import annotations

import math

from sim.engine.kernel import state
from sim.engine.kernel.compiling import compiled, in_place
from sim.engine.kernel.ports import taken_s


@in_place
def note_wait(S, rank, from_s, to_s):
    """Note a wait: it is added up if it lies before what is to come, and else kept until it does."""
    if S.wait_count > 0 and to_s > from_s and not add_up(S, rank, from_s, to_s):
        if S.waits == S.wait_count:
            add_up_waits(S)
        wait = state.wait(S, S.waits)
        wait.rank, wait.from_s, wait.to_s = rank, from_s, to_s
        S.waits += 1


@compiled
def add_up(S, r, from_s, to_s):
    """Add a wait to what its rank waited between the end of the warm-up and the last update, if it is known to lie before that or in it.

    An update that is to come ends no sooner than now, and than rank 0 has come; where a step is that of all, than the last one has.
    """
    last_s, is_over = math.inf, S.ends + 1 >= S.step_end_count
    if is_over:
        last_s = state.step_end(S, S.ends - 1).at_s
    elif to_s > (warm_from_s(S, S.ends) if S.all_ranks else max(S.now_s, state.strand(S, 0).clock_s)):
        return False
    rank = state.rank(S, r)
    rank.waited_s += max(0.0, min(to_s, last_s) - max(from_s, warm_from_s(S, S.warm_ends)))
    rank.early_s += max(0.0, min(to_s, last_s) - max(from_s, warm_from_s(S, S.least_ends)))
    return True


@compiled
def is_steady(S):
    """Whether waits count as they did before the last update, and as they will after the next one.

    Where a step is that of all, a rank may have waited since before several of them.
    """
    last, following = S.ends, S.ends + 1
    begins = last == S.warm_ends or last == S.least_ends or following == S.warm_ends or following == S.least_ends
    return not (S.all_ranks or begins or following >= S.step_end_count - 1)


@in_place
def add_steady(S, rank, seconds):
    """Add such waits of a rank."""
    rank.waited_s += seconds if S.ends >= S.warm_ends else 0.0
    rank.early_s += seconds if S.ends >= S.least_ends else 0.0


@compiled
def add_up_waits(S):
    """The same for waits that were kept."""
    kept = 0
    for i in range(S.waits):
        wait = state.wait(S, i)
        if not add_up(S, wait.rank, wait.from_s, wait.to_s):
            other = state.wait(S, kept)
            other.rank, other.from_s, other.to_s = wait.rank, wait.from_s, wait.to_s
            kept += 1
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
        port.busy_before_s = taken_s(port)


@in_place
def note_missed(S, updates):
    """Rank 0 adds a gradient that has missed so many updates."""
    if S.meters and S.ends >= S.warm_ends:
        state.missed(S, min(updates, S.missed_count - 1)).value += 1


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
