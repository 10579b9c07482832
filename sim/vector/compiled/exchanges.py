"""A collective call in each replication, as sim.vector.exchanges has it for all at once; sim.vector.compiled says when it is used."""

from __future__ import annotations

import numpy as np

from sim.vector.compiled import loop
from sim.vector.compiled.arrays import copy_rows
from sim.vector.compiled.constants import LEAVE, NONE, POST, TIE_S


@loop
def take_turns(operations, clocks, first_free_s, known, later_s, costs, latency_s, left_s, waits_s, idle_from_s):
    """All operations of one replication, in an order in which every message is handed over before it is taken.

    Args:
        operations: kind, rank, message, its slot, the message that must have left before, and whether to add; shape (operations, 6).
        clocks: of ranks, and of their ports out and in; they are overwritten; shape (3, ranks).
        first_free_s: when ports in were free before the call, shape (ranks,).
        known: when messages reach their ports, when they have passed them, overwritten; and their sources; shape (slots, ranks) each.
        later_s: when the first message reaches its port that is taken after each one, or none; shape (slots or 0, ranks).
        costs: of each message at its ports, and to be added up, shape (messages,); of a message at each rank, and speeds, shape (ranks,).
        latency_s: of the link.
        left_s: scratch: when each message reaches its port, and when it has left; shape (2, messages).
        waits_s: from when to when each message is waited for, in the order of operations; overwritten; shape (2, takes).
        idle_from_s: when each port had been free before its last message; overwritten, shape (ranks,).
    """
    now_s, out_free_s, in_free_s = clocks
    reach_s, passed_s, sources = known
    occupancy_s, add_s, overhead_s, speeds = costs
    arrives_s, leaves_s = left_s
    come_s, take = np.full(len(now_s), -np.inf), 0
    for number in range(len(operations)):
        kind, rank, message, slot, own, adds = operations[number]
        if kind == POST:
            now_s[rank] += overhead_s[rank]
            begin_s = max(now_s[rank], out_free_s[rank])
            arrives_s[message] = begin_s + latency_s
            leaves_s[message] = out_free_s[rank] = begin_s + occupancy_s[message]
        elif kind == LEAVE:
            now_s[rank] = max(now_s[rank], leaves_s[message])
        else:
            from_s, free_s, comes_s = now_s[rank], in_free_s[rank], arrives_s[message]
            reach_s[slot, rank] = comes_s
            pass_s = max(comes_s, free_s)
            if comes_s <= come_s[rank] + TIE_S or (len(later_s) and later_s[slot, rank] <= comes_s + TIE_S):
                pass_s, sender = max(comes_s, first_free_s[rank]), sources[slot, rank]
                for other in range(len(reach_s)):
                    here_s = reach_s[other, rank]
                    together = (here_s <= comes_s + TIE_S) & (sources[other, rank] < sender)
                    before = (here_s < comes_s - TIE_S) | together
                    pass_s = max(pass_s, passed_s[other, rank] if before else -np.inf)
            come_s[rank] = max(come_s[rank], comes_s)
            here_s = pass_s + occupancy_s[message]
            passed_s[slot, rank] = here_s
            idle_from_s[rank] = free_s
            in_free_s[rank] = max(free_s, here_s)
            waits_s[0, take], waits_s[1, take] = from_s, pass_s
            take += 1
            goes_s = max(from_s, here_s) + overhead_s[rank]
            if own != NONE:
                goes_s = max(goes_s, leaves_s[own])
            if adds:
                goes_s += add_s[message] / speeds[rank]
            now_s[rank] = goes_s


@loop
def overtakes(reach_s, within_s):
    """Whether one message of a port comes before another that it takes earlier, or not `within_s` after that."""
    for slot in range(1, len(reach_s)):
        for rank in range(reach_s.shape[1]):
            if reach_s[slot, rank] < np.inf and reach_s[slot, rank] <= reach_s[slot - 1, rank] + within_s:
                return True
    return False


@loop
def earliest_after(reach_s, later_s):
    """When the first of the messages comes that are taken after each one."""
    later_s[-1] = np.inf
    for slot in range(len(reach_s) - 2, -1, -1):
        for rank in range(reach_s.shape[1]):
            later_s[slot, rank] = min(later_s[slot + 1, rank], reach_s[slot + 1, rank])


@loop
def differ(passed_s, before_s, settled_s):
    """Whether some message passes at another time than before."""
    for slot in range(len(passed_s)):
        for rank in range(passed_s.shape[1]):
            if abs(passed_s[slot, rank] - before_s[slot, rank]) > settled_s:
                return True
    return False


@loop
def near(reach_s, least_s, most_s, come_s):
    """Whether two messages come to a port so near to each other: more than least_s apart, and at most most_s.

    Args:
        come_s: scratch, shape (slots,).
    """
    for rank in range(reach_s.shape[1]):
        for slot in range(len(reach_s)):
            here_s, at = reach_s[slot, rank], slot
            while at > 0 and come_s[at - 1] > here_s:
                come_s[at] = come_s[at - 1]
                at -= 1
            come_s[at] = here_s
        for slot in range(1, len(reach_s)):
            apart_s = come_s[slot] - come_s[slot - 1]
            if least_s < apart_s <= most_s:
                return True
    return False


@loop
def scratch(slots, messages, ranks):
    """Room for `play`."""
    by_slot = np.empty((slots, ranks)), np.empty((slots, ranks)), np.empty((slots, ranks)), np.empty((slots, ranks))
    return np.empty((2, messages)), by_slot, np.empty((3, ranks)), np.empty(slots)


@loop
def play(operations, sources, ahead, clocks, before_s, costs, limits, room, waits_s, idle_from_s, last_s):
    """A call in one replication; False where it cannot be told which message passes a port first.

    Args:
        operations: see `take_turns`.
        sources: the sender of each port's messages, shape (slots, ranks).
        ahead: ranks that go on before a message has left, and wait for it at the end, shape (some,).
        clocks: of ranks, ports out and ports in; overwritten; shape (3, ranks).
        before_s: when the last message of the calls before reached each port, shape (ranks,).
        costs: see `take_turns`.
        limits: latency of the link; messages that are further apart than the first and not further than the second may come in either
            order; moments that differ by less are the same; how often all may be reckoned again.
        room: `scratch` of as many slots and messages, or more.
        waits_s, idle_from_s: see `take_turns`; overwritten.
        last_s: when the last message has reached each port, shape (ranks,); overwritten. It may be `before_s`.
    """
    latency_s, (least_s, most_s), settled_s, most_rounds = limits
    left_s, (reach_s, passed_s, known_s, later_s), tried_s, come_s = room
    slots, ranks = sources.shape
    reach_s, passed_s, known_s, later_s = reach_s[:slots], passed_s[:slots], known_s[:slots], later_s[:slots]
    reach_s[:], passed_s[:] = np.inf, -np.inf
    known = reach_s, passed_s, sources
    for turn in range(most_rounds + 1):
        copy_rows(clocks, tried_s)
        copy_rows(passed_s, known_s)
        if turn:
            earliest_after(reach_s, later_s)
        idle_from_s[:] = np.inf
        later = later_s if turn else later_s[:0]
        take_turns(operations, tried_s, clocks[2], known, later, costs, latency_s, left_s, waits_s, idle_from_s)
        if turn == 0:
            if not overtakes(reach_s, 2 * TIE_S):
                break
        elif not differ(passed_s, known_s, settled_s):
            idle_from_s[:] = np.inf
            if near(reach_s, least_s, most_s, come_s):
                return False
            break
        elif turn == most_rounds:
            return False
    copy_rows(tried_s, clocks)
    for rank in ahead:
        clocks[0, rank] = max(clocks[0, rank], clocks[1, rank])
    for rank in range(ranks):
        first_one_s, last_one_s = np.inf, -np.inf
        for slot in range(slots):
            first_one_s = min(first_one_s, reach_s[slot, rank])
            if reach_s[slot, rank] < np.inf:
                last_one_s = max(last_one_s, reach_s[slot, rank])
        if before_s[rank] >= first_one_s:
            return False
        last_s[rank] = max(before_s[rank], last_one_s)
    return True


@loop
def play_all(operations, sources, ahead, clocks, before_s, costs, by_rank, limits, waits_s, idle_from_s, last_s):
    """Every replication; False where it cannot be told which message passes a port first.

    Args:
        operations, sources, ahead, limits: see `play`.
        clocks: overwritten, shape (3, replications, ranks).
        before_s: shape (replications, ranks).
        costs: of each message at its ports, and to be added up; shape (2, replications or 1, messages).
        by_rank: overhead of a message, and speed; shape (2, replications or 1, ranks).
        waits_s: shape (replications, 2, takes), idle_from_s and last_s: shape (replications, ranks); overwritten.
    """
    replications, ranks = clocks.shape[1:]
    room, own_clocks = scratch(len(sources), costs.shape[2], ranks), np.empty((3, ranks))
    for row in range(replications):
        here = row % costs.shape[1], row % by_rank.shape[1]
        own = costs[0, here[0]], costs[1, here[0]], by_rank[0, here[1]], by_rank[1, here[1]]
        copy_rows(clocks[:, row], own_clocks)
        given = ahead, own_clocks, before_s[row], own, limits, room
        if not play(operations, sources, *given, waits_s[row], idle_from_s[row], last_s[row]):
            return False
        copy_rows(own_clocks, clocks[:, row])
    return True
