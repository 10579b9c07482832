"""Background work of a runtime's other threads, which slows ranks that need the cores: sim.event.machines.other_threads, on arrays."""

from __future__ import annotations

from sim.engine.kernel import state
from sim.engine.kernel.compiling import compiled
from sim.engine.kernel.cores import NOTHING, work
from sim.engine.kernel.heap import schedule
from sim.engine.kernel.layout import PIECE, PIECE_DONE, PIECES, ROUND_OFF_S


@compiled
def begin_background(S, rank, r):
    """A step's background work begins, in pieces at random moments, spread over as long as the step before took."""
    span_s, rank.begun_s = S.now_s - rank.begun_s - rank.slept_s, S.now_s
    if S.background_s <= ROUND_OFF_S:
        return
    if S.backgrounds_left == 0:
        S.short = 1
        return
    S.backgrounds_left -= 1
    b = state.free_background(S, S.backgrounds_left).value
    of = state.background(S, b)
    of.begun_s, of.span_s, of.rank, of.piece, of.first = S.now_s, span_s, r, 0, rank.begun * PIECES
    rank.begun += 1
    await_moment(S, b)


@compiled
def await_moment(S, b):
    """The next piece begins at its moment, or now if that is over."""
    of = state.background(S, b)
    moment_s = of.begun_s + of.span_s * state.moment(S, of.rank, of.first + of.piece).value
    schedule(S, S.now_s + max(0.0, moment_s - S.now_s), PIECE, b, 0)


@compiled
def begin_piece(S, b):
    """A piece needs a core."""
    group = state.rank(S, state.background(S, b).rank).group
    work(S, group, S.background_s / PIECES, S.ranks, b, PIECE_DONE)


@compiled
def end_piece(S, b):
    """A piece is done; so is the step's work after the last one."""
    of = state.background(S, b)
    of.piece += 1
    if of.piece < PIECES:
        await_moment(S, b)
        return
    state.free_background(S, S.backgrounds_left).value = b
    S.backgrounds_left += 1


@compiled
def carry(S, sender, receiver, seconds):
    """The work of other threads for a message, at both ends."""
    if seconds > ROUND_OFF_S:
        work(S, sender.group, seconds, S.ranks, 0, NOTHING)
        work(S, receiver.group, seconds, S.ranks, 0, NOTHING)
