"""Idle seconds of ranks: a rank is idle while none of its texts works or sleeps, and no bytes of it move."""

from __future__ import annotations

from sim.language.engine.layout import State


def settle(S: State, rank: int) -> None:
    """Count until now; where nothing is to be counted, what was counted before is put in its place later."""
    if S.rank_busy[rank] or S.rank_since[rank] >= S.now:
        return
    if S.rank_from[rank] != S.measured_from:  # all that was counted lies before
        S.rank_from[rank] = S.measured_from
        S.rank_idle[rank] = 0.0
        S.rank_idle_after[rank] = 0.0
    if S.rank_to[rank] != S.measured_to:
        S.rank_to[rank] = S.measured_to
        S.rank_idle[rank] += S.rank_idle_after[rank]
        S.rank_idle_after[rank] = 0.0
    begin = S.rank_since[rank] if S.rank_since[rank] > S.measured_from else S.measured_from
    S.rank_since[rank] = S.now
    if S.rank_main[rank]:
        if begin < S.measured_to:
            S.rank_idle[rank] += (S.now if S.now < S.measured_to else S.measured_to) - begin
            begin = S.measured_to
        if begin < S.now:
            S.rank_idle_after[rank] += S.now - begin


def is_busy(S: State, t: int) -> None:
    """Text t, which is none of background work, sleeps, computes or waits for a core."""
    settle(S, S.text_rank[t])
    S.rank_busy[S.text_rank[t]] += S.text_of_rank[t]


def is_done(S: State, t: int) -> None:
    """It does no more."""
    rank = S.text_rank[t]
    S.rank_busy[rank] -= S.text_of_rank[t]
    if S.text_of_rank[t] and S.rank_since[rank] < S.now:
        S.rank_since[rank] = S.now


def moves(S: State, rank: int, until: float) -> None:
    """Bytes of the rank move from now until then."""
    settle(S, rank)
    if S.rank_since[rank] < until:
        S.rank_since[rank] = until
