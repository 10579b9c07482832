"""Steps of a master and its workers in each replication, as sim.vector.hub has the verbs; sim.vector.lowered says when it is used."""

from __future__ import annotations

import numpy as np

from sim.vector.compiled import loop

NOW, OUT_FREE, IN_FREE = range(3)  # clocks of ranks, and of their ports


@loop
def play_steps(first, warmup, link, costs, works, state, found):
    """Some steps, one after another: the master sends to all workers, these work and send, and it adds up and updates.

    Args:
        first: the number of the first step.
        warmup: steps before waits count.
        link: latency, and the seconds that a message takes a port.
        costs: of the master: to hand over a message, and to take one and add it up; shape (replications,).
        works: of the master until it has handed over the first message, for its update and after that, shape (steps, replications); of
            workers from having a message to having handed one over, shape (steps, replications, workers).
        state: when rank 0's step begins, and when the warm-up ended, shape (replications,); from when rank 0's step begins: clocks of
            the master and its ports and when the last message reached it, shape (replications, 4); clocks of workers and their ports,
            shape (replications, 3, workers). All are overwritten.
        found: when each step ends, shape (steps, replications); idle seconds, to be added to, shape (replications, ranks).

    Returns:
        False where a worker overtakes another one's message of the step before.
    """
    latency_s, port_s = link
    hand_over_s, add_s = costs
    before_s, update_s, after_s, own_s = works
    begins_s, low_s, masters, workers = state
    ends_s, idle_s = found
    steps, replications, count = own_s.shape
    reach_s = np.empty(count)
    for row in range(replications):
        now_s, out_free_s, in_free_s, last_reach_s = masters[row]
        clocks, idle = workers[row], idle_s[row]
        nows_s, outs_s, ins_s = clocks[NOW], clocks[OUT_FREE], clocks[IN_FREE]
        hand_s, added_s = hand_over_s[row], add_s[row]
        for turn in range(steps):
            begins_s[row] += now_s
            clocks -= now_s
            out_free_s, in_free_s, last_reach_s, now_s = (
                out_free_s - now_s,
                in_free_s - now_s,
                last_reach_s - now_s,
                0.0,
            )
            counts = first + turn >= warmup
            from_s = low_s[row] - begins_s[row] if counts else np.inf
            called_s = now_s + before_s[turn, row]
            begin_s = max(called_s, out_free_s)
            for worker in range(count):
                leave_s = max(begin_s + worker * port_s, called_s + worker * hand_s)
                come_s = leave_s + latency_s
                pass_s = max(come_s, ins_s[worker])
                ins_s[worker] = pass_s + port_s
                idle[1 + worker] += max(pass_s - max(nows_s[worker], from_s), 0.0)
                done_s = max(nows_s[worker], ins_s[worker]) + own_s[turn, row, worker]
                sent_s = max(done_s, outs_s[worker])
                outs_s[worker] = nows_s[worker] = sent_s + port_s
                reach_s[worker] = sent_s + latency_s
                out_free_s = leave_s + port_s
            now_s = out_free_s
            reach_s.sort()
            if reach_s[0] < last_reach_s or (port_s and reach_s[0] <= last_reach_s):
                return False
            last_reach_s = max(last_reach_s, reach_s[-1])
            own_idle_s = 0.0
            for worker in range(count):
                pass_s = max(reach_s[worker], in_free_s)
                in_free_s = pass_s + port_s
                own_idle_s += max(pass_s - now_s, 0.0)
                now_s = max(now_s, in_free_s) + added_s
            if counts:
                idle[0] += own_idle_s
            now_s += update_s[turn, row]
            ends_s[turn, row] = begins_s[row] + now_s
            if first + turn == warmup - 1:
                low_s[row] = ends_s[turn, row]
            now_s += after_s[turn, row]
        masters[row, 0], masters[row, 1], masters[row, 2], masters[row, 3] = now_s, out_free_s, in_free_s, last_reach_s
    return True
