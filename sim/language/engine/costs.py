"""What is drawn for each rank, and what it takes a rank that has gone cold; sim.language.event.costs says what is charged."""

from __future__ import annotations

import math

from sim.language.engine.layout import State


def is_drawn(S: State, of: int, rank: int, k: int) -> bool:
    """Whether the k-th number of a kind is there for a rank."""
    return S.factor_sole[of] >= 0.0 or k < S.factor_room[of * S.ranks + rank]


def drawn(S: State, of: int, rank: int, k: int) -> float:
    """The k-th number of a kind for a rank."""
    if S.factor_sole[of] >= 0.0:
        return S.factor_sole[of]
    return S.factors[S.factor_begin[of * S.ranks + rank] + k * S.factor_far[of]]


def cold(S: State, rank: int, seconds: float) -> float:
    """Seconds more of a rank that takes so many where it is all cold."""
    idle = S.now - S.rank_warm[rank]
    if seconds == 0.0:
        return 0.0
    if idle < S.cold_from_s:
        idle = S.cold_from_s
    if idle > S.cold_after_s:
        idle = S.cold_after_s
    return seconds * (math.log(idle / S.cold_from_s) / math.log(S.cold_after_s / S.cold_from_s))
