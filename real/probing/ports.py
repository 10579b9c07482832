"""The sharing of a host's port by messages, from three ranks on three hosts."""

from __future__ import annotations

import time

import numpy as np

from real.launching.clock import common_clock
from real.launching.polling import TAG, arrived, poll
from real.probing import link_from_times as wire
from real.probing.links import ROUNDS, WAITED_S, WARM_UP, rounds
from sim.platform.polling import SHORTEST_S

SHARED_ROUNDS = 60  # of messages of 1 MB
SHARED_S = 5.0  # seconds for which it lasts at least
LATE_ROUNDS = 20  # of messages of 4 MB, one of them late


def unfairness(trio) -> float:
    """The unfairness of messages at a port, from one rank to two and from two to one. At all ranks.

    See real.probing.link_from_times.unfairness.
    """
    clock, times = common_clock(trio), []
    data = np.ones((2, wire.SHARED_BYTES), np.uint8)
    for number in rounds(trio, WARM_UP + SHARED_ROUNDS, SHARED_S):
        from_one = number % 2 == 0
        trio.Barrier()
        time.sleep(WAITED_S)
        start_s = clock()
        move = trio.Isend if from_one == (trio.rank == 0) else trio.Irecv
        pending = (
            {peer: move(data[peer - 1], peer, TAG) for peer in (1, 2)} if trio.rank == 0 else {0: move(data[0], 0, TAG)}
        )
        ended_s = dict.fromkeys(pending, 0.0)
        poll(lambda p=pending, e=ended_s: _settle(p, e, clock), "messages that share a port")
        known = trio.allgather((start_s, ended_s))
        begin_s = known[0][0] if from_one else min(known[1][0], known[2][0])
        ends_s = [known[k][1][0] for k in (1, 2)] if from_one else list(known[0][1].values())
        times.append(sorted(end_s - begin_s for end_s in ends_s))
    return wire.unfairness(*np.array(times[WARM_UP:]).T)


def _settle(pending: dict, ended_s: dict, clock) -> bool:
    """Note when each message has passed; whether all have."""
    for peer, request in list(pending.items()):
        if request.Test():
            ended_s[peer] = clock()
            del pending[peer]
    return not pending


def ramp_bytes(trio, link: dict) -> float:
    """The bytes until a late message over a `link` has its share of a port that another uses. At all ranks.

    See real.probing.link_from_times.ramp_bytes.

    Of every two messages to rank 1 one leaves alone. Half-way through the other, one to rank 2 begins.
    """
    clock, times, size = common_clock(trio), {True: [], False: []}, wire.LARGE_BYTES[-1]
    bandwidth = trio.bcast(link)["bandwidth_bytes_per_s"]
    data = np.ones((2, size), np.uint8)
    for number in rounds(trio, 2 * (WARM_UP + LATE_ROUNDS), SHARED_S):
        both, start_s, second_s = number % 2 == 0, 0.0, 0.0
        trio.Barrier()
        time.sleep(WAITED_S)
        if trio.rank == 0:
            start_s = clock()
            pending, half_s = {1: trio.Isend(data[0], 1, TAG)}, start_s + size / bandwidth / 2
            if both:
                poll(
                    lambda p=pending, h=half_s: _moved(p.values()) and clock() > h,
                    "half of a message",
                    longest_s=SHORTEST_S,
                )
                second_s, pending[2] = clock() - start_s, trio.Isend(data[1], 2, TAG)
        else:
            pending = {0: trio.Irecv(data[0], 0, TAG)} if both or trio.rank == 1 else {}
        ended_s = dict.fromkeys(pending, 0.0)
        poll(lambda p=pending, e=ended_s: _settle(p, e, clock), "messages one of which is late")
        known = trio.allgather((start_s, second_s, ended_s))
        times[both].append((known[1][2][0] - known[0][0], known[0][1]))
    alone_s = np.median([end_s for end_s, _ in times[False][WARM_UP:]])
    first_s, second_s = np.array(times[True][WARM_UP:]).T
    return wire.ramp_bytes((alone_s - second_s) * bandwidth, (first_s - alone_s) * bandwidth)


def queue_bytes(trio, link: dict) -> float:
    """The queue before a busy port: bytes that pass a `link` while a control message of rank 0 waits beside a long message. At all ranks.

    That is latency under load. Rank 0 sends the long message to rank 1. For comparison it receives one, which keeps it as busy and
    its port free. The control message goes to rank 2, because a connection keeps its own order.
    """
    clock, times, size = common_clock(trio), {True: [], False: []}, wire.LARGE_BYTES[-1]
    link = trio.bcast(link)
    message, word = np.ones(size, np.uint8), np.ones(wire.SMALL_BYTES, np.uint8)
    for number in rounds(trio, 2 * (WARM_UP + ROUNDS), SHARED_S):
        leaves, pending, stamp_s = number % 2 == 0, [], None
        trio.Barrier()
        if trio.rank < 2:
            move = trio.Isend if leaves == (trio.rank == 0) else trio.Irecv
            pending = [move(message, 1 - trio.rank, TAG)]
        if trio.rank == 0:
            half_s = clock() + size / link["bandwidth_bytes_per_s"] / 2
            poll(lambda p=pending, h=half_s: _moved(p) and clock() > h, "half of a message", longest_s=SHORTEST_S)
            stamp_s = clock()
            pending += [trio.Isend(word, 2, TAG)]
        elif trio.rank == 2:
            poll(lambda: arrived(trio, 0, TAG), "a word", longest_s=SHORTEST_S)
            stamp_s = clock()
            trio.Recv(word, 0, TAG)
        poll(lambda p=pending: all(request.Test() for request in p), "what shares a port")
        stamps_s = trio.allgather(stamp_s)
        times[leaves].append(stamps_s[2] - stamps_s[0])
    waited_s = np.median(times[True][WARM_UP:]) - np.median(times[False][WARM_UP:])
    return wire.left_behind(waited_s, link["bandwidth_bytes_per_s"], size)


def _moved(pending) -> bool:
    """Let MPI move pending messages; always true."""
    for request in pending:
        request.Test()
    return True
