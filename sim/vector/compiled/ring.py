"""All rounds of a ring in each replication, as sim.vector.calls has them for all at once; sim.vector.compiled says when it is used."""

from __future__ import annotations

import numpy as np

from sim.vector.compiled import loop
from sim.vector.compiled.arrays import copy


@loop
def play_rounds(
    now_s,
    out_free_s,
    in_free_s,
    steps,
    overhead_s,
    latency_s,
    port_s,
    add_s,
    speeds,
    moments_s,
    idle_s,
    listed_s,
    asked_s,
    reach_s,
):
    """Play the rounds.

    Args:
        now_s, out_free_s, in_free_s: clocks when it begins, and overwritten when it ends; shape (replications, ranks).
        steps: of each round the pieces that rank 0 hands over and takes, and whether it adds; shape (rounds, 3).
        overhead_s, port_s, add_s, speeds: a row for each replication, or one for all; those of pieces go twice round.
        latency_s: of the link.
        moments_s: between which waits are counted, shape (2, replications).
        idle_s: to which the waits of each rank are added, shape (replications, ranks).
        listed_s: from when and to when each rank waits, where that is asked for; shape (2, rounds or none, replications, ranks).
        asked_s: when ports were free, and when messages reached them, in the last rounds; shape (2, last rounds, replications, ranks).
        reach_s: when the last round's messages reach their ports, shape (replications, ranks); overwritten.
    """
    replications, ranks = now_s.shape
    come_s = np.empty(ranks)
    listed, known = listed_s.shape[1] > 0, asked_s.shape[1]
    for row in range(replications):
        now, out_free, in_free, idle = now_s[row], out_free_s[row], in_free_s[row], idle_s[row]
        overhead, speed = overhead_s[row % len(overhead_s)], speeds[row % len(speeds)]
        port, add = port_s[row % len(port_s)], add_s[row % len(add_s)]
        low_s, high_s = moments_s[0, row], moments_s[1, row]
        for turn in range(len(steps)):
            hand_over(now, out_free, port[steps[turn, 0] :], overhead, latency_s, come_s)
            number = turn - (len(steps) - known)
            if number >= 0:
                copy(in_free, asked_s[0, number, row])
                copy(come_s, asked_s[1, number, row])
            if turn == len(steps) - 1:
                copy(come_s, reach_s[row])
            if listed:
                copy(now, listed_s[0, turn, row])
                for rank in range(ranks):
                    listed_s[1, turn, row, rank] = max(come_s[rank], in_free[rank])
            take(now, out_free, in_free, come_s, port[steps[turn, 1] :], overhead, idle, low_s, high_s)
            if steps[turn, 2]:
                add_up(now, add[steps[turn, 1] :], speed)


@loop
def hand_over(now_s, out_free_s, sent_s, overhead_s, latency_s, come_s):
    """Each rank hands a piece to the next; find when it comes there. A port out is free in all rounds but the first."""
    ranks = len(now_s)
    for rank in range(ranks):
        now_s[rank] += overhead_s[rank]
        out_free_s[rank] = max(now_s[rank], out_free_s[rank])
    for rank in range(ranks - 1):
        come_s[rank + 1] = out_free_s[rank] + latency_s
    come_s[0] = out_free_s[ranks - 1] + latency_s
    for rank in range(ranks):
        out_free_s[rank] += sent_s[rank]


@loop
def take(now_s, out_free_s, in_free_s, come_s, taken_s, overhead_s, idle_s, low_s, high_s):
    """Pieces pass ports in and are taken; waits between two moments are added up."""
    for rank in range(len(now_s)):
        pass_s = max(come_s[rank], in_free_s[rank])
        idle_s[rank] += max(min(pass_s, high_s) - max(now_s[rank], low_s), 0.0)
        in_free_s[rank] = pass_s + taken_s[rank]
        now_s[rank] = max(max(now_s[rank], in_free_s[rank]) + overhead_s[rank], out_free_s[rank])


@loop
def add_up(now_s, add_s, speeds):
    """Pieces are added up."""
    for rank in range(len(now_s)):
        now_s[rank] += add_s[rank] / speeds[rank]
