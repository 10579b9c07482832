"""Ranks that poll while they wait: polls take cores, and what has come is seen at the next poll (real/worlds/polling.py)."""

from __future__ import annotations

import math

from sim.engine.kernel import state
from sim.engine.kernel.compiling import compiled, in_place
from sim.engine.kernel.cores import take_cores
from sim.engine.kernel.heap import schedule
from sim.engine.kernel.layout import STAGE

LEAST_S, MOST_S, POLLS_OF_A_WAIT = 50e-6, 400e-6, 20  # the time between two polls is a share of the wait so far
STAGES = 8  # more than there are
STAGE_S = (50e-6, 71e-6, 141e-6, 283e-6, 400e-6)  # between polls, in stages of waiting
STAGE_ENDS_S = (1e-3, 1e-3, 2e-3, 4e-3, 1e300)
WATCHES = 0xFFFFF  # numbers of waits, as events have them
NOT_POLLING, POLLS, NOTICES = range(3)


@compiled
def set_polls(S, rank, stage):
    """The polls of a waiting rank take as many cores as in a stage of waiting."""
    cores = S.poll_s * (1 / (STAGE_S[stage] + S.oversleep_s))
    if cores != rank.taken:
        take_cores(S, rank.group, cores - rank.taken)
        rank.taken = cores


@in_place
def begin_polling(S, strand, rank, r):
    """A rank begins to wait."""
    strand.polls, rank.since_s = POLLS, S.now_s
    if S.cores_suffice == 0:
        set_polls(S, rank, 0)
        watch = (rank.watch & WATCHES) * STAGES + 1
        schedule(S, S.now_s + STAGE_ENDS_S[0], STAGE, r, watch)


@compiled
def next_stage(S, r, watch):
    """A rank has waited for so long that it polls less often."""
    rank, stage = state.rank(S, r), watch % STAGES
    if watch // STAGES == rank.watch & WATCHES:
        set_polls(S, rank, stage)
        if stage + 1 < len(STAGE_S):
            schedule(S, S.now_s + STAGE_ENDS_S[stage], STAGE, r, watch + 1)


@in_place
def end_polls(S, rank):
    """A rank has been woken: its polls take no core any more."""
    rank.watch += 1  # the number of the next wait
    if rank.taken != 0.0:
        take_cores(S, rank.group, -rank.taken)
        rank.taken = 0.0


@in_place
def sleeps_between(S, strand):
    """Whether a rank sleeps between its polls, as all do but those that wait in a library."""
    return S.in_library == 0 or strand.meets == 1


@compiled
def late_s(S, rank, r, waited_s):
    """Seconds until the poll that sees what has come; negative if no random share is left."""
    if rank.shares >= S.poll_width:
        return -1.0
    rank.shares += 1
    between_s = min(max(LEAST_S, waited_s / POLLS_OF_A_WAIT), MOST_S) + S.oversleep_s
    return state.poll(S, r, rank.shares - 1).value * between_s


@in_place
def go_on_with(S, strand, rank):
    """The rank has seen what it waited for."""
    if strand.polls != NOT_POLLING:
        rank.since_s = math.inf
        if strand.polls == POLLS:
            rank.polled_s = S.now_s
    elif S.fair and strand.woken:
        rank.polled_s = S.now_s
    strand.polls, strand.woken, strand.clock_s = NOT_POLLING, 0, S.now_s
