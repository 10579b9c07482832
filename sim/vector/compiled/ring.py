"""All rounds of a ring in each replication, as sim.vector.calls has them for all at once; sim.vector.compiled says when it is used."""

from __future__ import annotations

import numpy as np

from sim.vector.compiled import loop


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
    hindered,
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
        hindered: whether some message may have to wait for its port.
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
            sent, taken = port[steps[turn, 0] :], port[steps[turn, 1] :]
            for rank in range(ranks):
                now[rank] += overhead[rank]
            if turn == 0:
                for rank in range(ranks):
                    begin_s = max(now[rank], out_free[rank])
                    come_s[rank] = begin_s + latency_s
                    out_free[rank] = begin_s + sent[rank]
            else:
                for rank in range(ranks):
                    come_s[rank] = now[rank] + latency_s
                    out_free[rank] = now[rank] + sent[rank]
            last = come_s[ranks - 1]
            for rank in range(ranks - 1, 0, -1):
                come_s[rank] = come_s[rank - 1]
            come_s[0] = last
            number = turn - (len(steps) - known)
            if number >= 0:
                asked_s[0, number, row] = in_free
                asked_s[1, number, row] = come_s
            if listed:
                listed_s[0, turn, row] = now
            if turn == len(steps) - 1:
                reach_s[row] = come_s
            for rank in range(ranks):
                pass_s = max(come_s[rank], in_free[rank]) if hindered else come_s[rank]
                idle[rank] += max(min(pass_s, high_s) - max(now[rank], low_s), 0.0)
                in_free[rank] = pass_s + taken[rank]
                now[rank] = max(max(now[rank], in_free[rank]) + overhead[rank], out_free[rank])
                come_s[rank] = pass_s
            if listed:
                listed_s[1, turn, row] = come_s
            if steps[turn, 2]:
                adding = add[steps[turn, 1] :]
                for rank in range(ranks):
                    now[rank] += adding[rank] / speed[rank]
