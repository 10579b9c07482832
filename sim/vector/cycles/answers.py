"""The answer of a negotiation and the first call after it, where data come to a port before the answer does.

A rank high in the tree has been told, and sends, before others have. What each is told and what it is sent pass its port in the order in
which they come. Both are played in turn, each with what is known of the other, until nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sim.collectives.schedule import Schedule
from sim.platform.cluster import Link
from sim.vector.cycles.tails import NEVER_S, Ended, Meeting, Tail
from sim.vector.exchanges import MOST_ROUNDS, Ports, Unsettled, play_among
from sim.verbs.book import TIE_S


class Met(NamedTuple):
    """An answer and a call, from when rank 0 has all requests.

    Args:
        ended: the call.
        told_s: when the answer begins to pass each rank's port, -infinity at rank 0; shape (1, ranks).
        idle_s: from when until when ports were idle before the last messages, shape (2, 1, ranks).
    """

    ended: Ended
    told_s: np.ndarray
    idle_s: np.ndarray


def met_answer(
    plan: Schedule,
    entered: Callable[[Ports], tuple[Ports, np.ndarray]],
    call: Callable[[Ports, np.ndarray], Tail],
    link: Link,
    speeds: np.ndarray,
) -> Met:
    """Play an answer and the call after it.

    Args:
        plan: of the answer, by which each rank but 0 is told once.
        entered: the clocks when ranks begin the call, from those when they have been told; and what they copy after it.
        call: the call, from these.
        link: between hosts.
        speeds: of each rank's core, shape (1, ranks).

    Raises:
        Unsettled: which message passes a port first cannot be told.
    """
    ranks, never_s = speeds.shape[1], np.full(speeds.shape, NEVER_S)
    now_s, hit, before_s, floors_s = never_s.copy(), np.zeros(ranks, bool), None, np.full((1, ranks, 1), NEVER_S)
    now_s[:, 0] = 0.0
    occupancy_s = link.occupancy_s(plan.size_bytes[plan.order[:, 0]])
    for _ in range(MOST_ROUNDS):
        played, arrivals = play_among(
            plan, Ports(now_s, *[never_s] * 3), link, speeds, np.zeros(len(plan.size_bytes)), None, floors_s
        )
        told, come_s = played.ports, arrivals.reach_s[0, :, 0]
        begun, copy_s = entered(told._replace(in_free_s=np.where(hit, NEVER_S, told.in_free_s), last_reach_s=never_s))
        ended = call(begun, copy_s).play(before_s, 1)
        first_s = ended.come_s[:, 0].min(axis=0, initial=np.inf)
        early, meeting = (first_s <= come_s + 2 * TIE_S) & (come_s < np.inf), Meeting(ended, np.zeros((1, 1)))
        who, held_s = np.flatnonzero(early), np.full((1, ranks, 1), NEVER_S)
        request = come_s[who, None], occupancy_s[who, None], plan.sources[:1, who].T, np.zeros(len(who), bool)
        held_s[0, who] = meeting.passing_s(np.zeros(len(who), int), who, *request, link.latency_s)
        if before_s is not None and (early == hit).all() and (held_s == floors_s).all() and meeting.is_near(before_s):
            return Met(ended, _told_s(played.waits, ranks), _idle_s(ended, told))
        hit, floors_s, before_s = early, held_s, meeting.floors_s
    raise Unsettled


def _told_s(waits, ranks: int) -> np.ndarray:
    found_s = np.full((1, ranks), NEVER_S)
    for takers, _, to_s in waits:
        found_s[:, takers] = to_s
    return found_s


def _idle_s(ended: Ended, told: Ports) -> np.ndarray:
    """Without the time in which the answer passes."""
    from_s, to_s = ended.idle_s[:, 0]
    return np.stack([np.maximum(from_s, told.in_free_s), to_s])
