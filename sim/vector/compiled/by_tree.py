"""Requests up a binomial tree in each replication, as sim.vector.cycles.by_tree has it for all at once."""

from __future__ import annotations

import numpy as np

from sim.vector.compiled import loop
from sim.vector.compiled.arrays import copy
from sim.vector.compiled.constants import NONE, SETTLED_S, TIE_S


@loop
def ask(tree, begin_s, overhead_s, link, ports, idle, in_turn, near_s, waits_s, left_s):
    """When rank 0 has taken all requests of a replication; nan where it cannot be told which message passes a port first.

    Args:
        tree: of each rank its children, in the order in which it takes their requests, padded by NONE, shape (ranks, most); and its parent.
        begin_s, overhead_s, in_turn: of each rank, see sim.vector.cycles.negotiation.Begun.
        link: latency and the seconds that a request passes a port.
        ports: when they are free, and when the last message reached them, both counted from a moment, and that moment.
        idle: from when and until when ports were idle, shape (times, ranks), likewise.
        near_s: messages that are further apart than the first and not further than the second may come in either order.
        waits_s: from when to when the parent waits for each rank's request, shape (2, ranks); overwritten.
        left_s: when each rank's request has left it, shape (ranks,); overwritten.
    """
    children, parents = tree
    ranks = len(begin_s)
    clock_s, reach_s, pass_s, turn = begin_s.copy(), np.empty(ranks), np.empty(ranks), np.empty(ranks, np.int64)
    in_free_s, last_reach_s = ports[2] + ports[0], ports[2] + ports[1]
    _unhindered(clock_s, overhead_s, link, reach_s, waits_s)
    if not _hindered(children, parents, reach_s, link[1], in_free_s, turn):
        for rank in range(ranks):
            left_s[rank] = reach_s[rank] + (link[1] - link[0])
        return clock_s[0]
    copy(begin_s, clock_s)
    held = in_free_s, last_reach_s
    if not _in_order(children, clock_s, overhead_s, link, held, idle, in_turn, near_s, reach_s, pass_s, turn, waits_s):
        return np.nan
    for rank in range(ranks):
        left_s[rank] = clock_s[rank] + overhead_s[rank] + link[1]
    return clock_s[0]


@loop
def _unhindered(clock_s, overhead_s, link, reach_s, waits_s):
    """As if every port were free."""
    ranks, apart = len(clock_s), 1
    reach_s[0] = np.inf
    waits_s[:, 0] = 0.0
    while apart < ranks:
        for parent in range(0, ranks - apart, 2 * apart):
            child = parent + apart
            come_s = clock_s[child] + (overhead_s[child] + link[0])
            reach_s[child] = come_s
            waits_s[0, child], waits_s[1, child] = clock_s[parent], come_s
            clock_s[parent] = max(clock_s[parent], come_s + link[1]) + overhead_s[parent]
        apart *= 2


@loop
def _hindered(children, parents, reach_s, occupancy_s, in_free_s, turn):
    """Whether some request waits at a port."""
    for rank in range(1, len(parents)):
        if reach_s[rank] < in_free_s[parents[rank]]:
            return True
    for rank in range(len(children)):
        count, in_turn = 0, True
        while count < children.shape[1] and children[rank, count] != NONE:
            if count:
                in_turn &= reach_s[children[rank, count]] >= reach_s[children[rank, count - 1]] + occupancy_s
            count += 1
        if in_turn:
            continue
        _sort(children[rank], reach_s, count, turn)
        for place in range(1, count):
            before, after = children[rank, turn[place - 1]], children[rank, turn[place]]
            if reach_s[after] < reach_s[before] + occupancy_s:
                return True
    return False


@loop
def _sort(ranks, times_s, count, turn):
    """The order of some ranks' times; equal ones stay in order."""
    for place in range(count):
        at = place
        while at > 0 and times_s[ranks[turn[at - 1]]] > times_s[ranks[place]]:
            turn[at] = turn[at - 1]
            at -= 1
        turn[at] = place


@loop
def _sort_numbers(turn):
    """Sort a few numbers."""
    for place in range(1, len(turn)):
        number, at = turn[place], place
        while at > 0 and turn[at - 1] > number:
            turn[at] = turn[at - 1]
            at -= 1
        turn[at] = number


@loop
def _in_order(children, clock_s, overhead_s, link, ports, idle, in_turn, near_s, reach_s, pass_s, turn, waits_s):
    """Requests pass each port in the order in which they come; False where that cannot be told."""
    in_free_s, last_reach_s = ports
    for rank in range(len(children) - 1, -1, -1):
        count, early = 0, 0
        while count < children.shape[1] and children[rank, count] != NONE:
            child = children[rank, count]
            reach_s[child] = clock_s[child] + (overhead_s[child] + link[0])
            pass_s[child] = 0.0
            if reach_s[child] <= last_reach_s[rank] + 2 * TIE_S:
                early += 1
                pass_s[child] = _between(reach_s[child], link[1], idle, rank)
                if early > 1 or pass_s[child] == np.inf:
                    return False
                reach_s[child] = -np.inf
            count += 1
        if not _queued(children[rank], count, link[1], in_free_s[rank], in_turn, near_s, reach_s, pass_s, turn):
            return False
        for place in range(count):
            child = children[rank, place]
            waits_s[0, child], waits_s[1, child] = clock_s[rank], pass_s[child]
            clock_s[rank] = max(clock_s[rank], pass_s[child] + link[1]) + overhead_s[rank]
    return True


@loop
def _between(reach_s, occupancy_s, idle, rank):
    """When a message passes that comes before the last of an earlier call; never, where it is not over when the next comes."""
    from_before_s, to_before_s, root_s = idle
    found_s, before_s = np.inf, np.inf
    for time in range(len(from_before_s)):
        from_s, to_s = root_s + from_before_s[time, rank], root_s + to_before_s[time, rank]
        begin_s = max(reach_s, from_s)
        after_others = reach_s > before_s + SETTLED_S or reach_s >= from_s
        if after_others and begin_s + occupancy_s <= to_s - SETTLED_S and reach_s < to_s and from_s < np.inf:
            found_s = min(found_s, begin_s)
        before_s = to_s
    return found_s


@loop
def _queued(ranks, count, occupancy_s, in_free_s, in_turn, near_s, reach_s, pass_s, turn):
    """When messages begin to pass a port that serves the first to come first; those that have passed before come never.

    Those that come together pass in the order of their senders.
    """
    _sort(ranks, reach_s, count, turn)
    begin = 0
    for place in range(1, count + 1):
        ends = place == count
        if not ends:
            first_s, next_s = reach_s[ranks[turn[place - 1]]], reach_s[ranks[turn[place]]]
            apart_s = next_s - first_s
            served = first_s > -np.inf
            if served and near_s[0] < abs(apart_s) <= near_s[1] and not (in_turn and apart_s == 0):
                return False
            ends = not apart_s <= TIE_S
        if ends:
            _sort_numbers(turn[begin:place])
            begin = place
    passed_s, free_s = 0.0, -np.inf
    for place in range(count):
        child = ranks[turn[place]]
        if reach_s[child] == -np.inf:
            free_s = max(free_s, in_free_s)
            continue
        passed_s += occupancy_s
        before_s = passed_s - occupancy_s
        free_s = max(free_s, max(reach_s[child], in_free_s) - before_s)
        pass_s[child] = free_s + before_s
    return True
