"""How ranks that poll wait: they see what has happened at their next poll, and their polls take cores (sim.language.event.polls)."""

from __future__ import annotations

from sim.language.engine.cores import poll
from sim.language.engine.heap import push
from sim.language.engine.layout import KINDS, POLLS, State


def begins_to_poll(S: State, t: int) -> None:
    """Text t waits for what its rank polls for; its event's key is that of its request."""
    rank = S.text_rank[t]
    S.text_since[t] = S.now
    S.rank_polling[rank] += 1
    if S.rank_polling[rank] == 1:
        S.rank_stage[rank] = 0
        S.rank_waits_since[rank] = S.now
        enter(S, rank, S.text_key[t])


def enter(S: State, rank: int, key: int) -> None:
    """A rank polls as in this stage of its wait, while it lasts."""
    stage = S.rank_stage[rank]
    poll(S, rank, stage, 1)
    S.rank_stage_due[rank] = -1.0
    if stage + 1 < S.stages:
        S.rank_stage_due[rank] = S.now + S.poll_lasts[stage]
        push(S, S.rank_stage_due[rank], key, rank * KINDS + POLLS)


def next_stage(S: State, rank: int, key: int) -> None:
    """The rank has waited for so long that it polls less from now on."""
    if S.rank_stage_due[rank] == S.now:
        poll(S, rank, S.rank_stage[rank], -1)
        S.rank_stage[rank] += 1
        enter(S, rank, key)


def polls_no_more(S: State, t: int) -> None:
    """What text t has waited for has happened, or it is stopped."""
    rank = S.text_rank[t]
    if S.text_since[t] >= 0.0:
        S.rank_polling[rank] -= 1
        if S.rank_polling[rank] == 0:
            S.rank_stage_due[rank] = -1.0
            poll(S, rank, S.rank_stage[rank], -1)
        S.text_since[t] = -1.0


def late(S: State, t: int) -> float:
    """Seconds until the rank sees that what text t has waited for has happened; 0 if now."""
    return late_since(S, S.text_rank[t], S.text_since[t]) if S.text_since[t] >= 0.0 else 0.0


def late_since(S: State, rank: int, since: float) -> float:
    """Seconds until a rank sees what has happened, after waiting since then; 0 if now."""
    waited = S.now - since
    if waited <= 0.0 or S.spins:
        return 0.0
    waited = waited / S.waited_share
    if waited < S.shortest_s:
        waited = S.shortest_s
    if waited > S.longest_s:
        waited = S.longest_s
    S.rank_pauses[rank] += 1
    return S.pause[(S.rank_pauses[rank] - 1) * S.ranks + rank] * (waited + S.oversleep_s)
