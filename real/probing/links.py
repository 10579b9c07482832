"""Links between two ranks, from the times of messages between them.

A send recorded in training contains its peer's lateness; a probe's does not. A rank in training sleeps between polls, and notices a
message at its next poll, on average half a sleep later. Sleeps grow with the wait (sim.platform.polling). That time is not
the link's, and is subtracted. Between hosts the link is also measured for a library's collective, which does not sleep while bytes
arrive.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np

from real.launching.clock import common_clock
from real.launching.polling import TAG, arrived, poll, receive
from real.probing import link_from_times as wire
from sim.platform.polling import late_s

SIZES_BYTES = (  # within a host
    65_536,
    262_144,
    1_048_576,
    4_194_304,
    16_777_216,
)  # what parameters and gradients are; MPI sends less eagerly
ROUNDS, WARM_UP = 10, 2
EXCHANGES, EXCHANGED_BYTES = 40, wire.LARGE_BYTES[1]  # of messages of 1 MB
LASTS_S = 15.0  # between hosts a probe lasts for so long, because a machine's bad moments last for seconds
WAITED_S = 15e-3  # a receiver that has just polled is faster than one that has slept for a while
SHORT_S = 3e-3  # between hosts, where ranks mostly wait for messages
CACHE = np.zeros(8_000_000)  # 64 MB; adding to it leaves the caches as cold as a training step does


def _asleep(pair, into) -> None:
    """Receive a message from the other rank as training does."""
    receive(pair, into, 1 - pair.rank, TAG, here=False)


def _awake(pair, into) -> None:
    """Receive a message from the other rank as MPI does."""
    pair.Recv(into, 1 - pair.rank, TAG)


def between(pair, oversleep_s: float) -> dict[str, dict]:
    """LogGP and burst of the network between two hosts, by how its messages are received; see real.probing.link_from_times.

    Args:
        oversleep_s: by which a sleep between polls is longer than asked; rank 0's counts.
    """
    clock = common_clock(pair)
    takes = {"network": _asleep, "library": _awake}
    kinds = list(product(takes, (wire.SMALL_BYTES, *wire.LARGE_BYTES)))
    parts = {kind: [] for kind in kinds}
    for _ in rounds(pair, 1, LASTS_S):
        for name, size in kinds:  # many of a size on end, as in training: TCP's window is as the last message left it
            parts[name, size].append(_one_way(pair, clock, size, takes[name], SHORT_S))
    oversleep_s, found = pair.bcast(oversleep_s), {}
    for name, take in takes.items():
        mine = {size: np.concatenate(parts[name, size], axis=1) for size in (wire.SMALL_BYTES, *wire.LARGE_BYTES)}
        one_way_s = _median(mine[EXCHANGED_BYTES]).whole_s
        late = one_way_s / 4
        turns = wire.takes_turns(_exchanged(pair, clock, EXCHANGED_BYTES, take, late), one_way_s, late)
        at_times = [_link(take, part, turns, oversleep_s) for part in _parts(mine)]
        found[name] = _link(take, mine, turns, oversleep_s) | wire.spreads(at_times)
    return found


def _parts(times: dict[int, np.ndarray]) -> Iterator[dict[int, np.ndarray]]:
    """What `_one_way` returns by size, cut into so many times."""
    cut = {size: np.array_split(of, wire.TIMES, axis=1) for size, of in times.items()}
    for number in range(wire.TIMES):
        yield {size: parts[number] for size, parts in cut.items()}


def _link(take, times: dict[int, np.ndarray], turns: bool, oversleep_s: float) -> dict:
    """The link of what `_one_way` returns by size."""
    small, *large = [_median(times[size]) for size in (wire.SMALL_BYTES, *wire.LARGE_BYTES)]
    seconds = [one.whole_s for one in large]
    seen_s = late_s(SHORT_S, oversleep_s) if take is _asleep else 0.0
    if take is _asleep:
        seconds = [_without_pauses(one_s, turns, oversleep_s) for one_s in seconds]
    made = wire.link(small.whole_s - seen_s, small.receive_s, wire.LARGE_BYTES, seconds, turns) | {"late_s": seen_s}
    behind_s = large[-1].whole_s - large[-1].send_s - made["latency_s"] - seen_s
    return made | {"buffer_bytes": wire.left_behind(behind_s, made["bandwidth_bytes_per_s"], wire.LARGE_BYTES[-1])}


def _without_pauses(seconds: float, turns: bool, oversleep_s: float) -> float:
    """Seconds of a long message, without the sleeps after which its end was seen, nor two control messages where it is asked for."""
    words_s = late_s(SHORT_S, oversleep_s) + late_s(0.0, oversleep_s) if turns else 0.0
    return seconds - late_s(seconds, oversleep_s) - words_s


def rounds(comm, least: int, for_s: float) -> Iterator[int]:
    """The numbers of `least` rounds, and of more until `for_s` have gone by. Collective."""
    start_s, number = time.monotonic(), 0
    while comm.bcast(number < least or time.monotonic() < start_s + for_s):
        yield number
        number += 1


def _exchanged(pair, clock, size: int, take, late_s: float) -> float:
    """Median seconds until two ranks have exchanged messages, of which one begins `late_s` after the other; at both ranks.

    The median is of many rounds: where ranks take turns, some messages of the late rank leave at once all the same.
    """
    out, into, times = np.ones(size, np.uint8), np.zeros(size, np.uint8), []
    for number in range(WARM_UP + EXCHANGES):
        pair.Barrier()
        start_s = clock()
        if pair.rank == number % 2:
            time.sleep(late_s)
        request = pair.Isend(out, 1 - pair.rank, TAG)
        poll(lambda: arrived(pair, 1 - pair.rank, TAG), "the other rank")
        take(pair, into)
        poll(request.Test, "the other rank")
        ends_s = pair.allgather((start_s, clock()))
        times.append(max(end for _, end in ends_s) - min(start for start, _ in ends_s))
    return float(np.median(times[WARM_UP:]))


class Times(NamedTuple):
    """Medians over the rounds, mean over the directions.

    Args:
        whole_s: of a message, from the send on to the end of the receive call.
        receive_s: of the receive call.
        send_s: of the send, until the message may be overwritten.
    """

    whole_s: float
    receive_s: float
    send_s: float


def _median(times: np.ndarray) -> Times:
    """Of what `_one_way` returns."""
    each = (times[:, :, :2].sum(axis=2), times[:, :, 1], times[:, :, 2])
    return Times(*(float(np.mean(np.median(part, axis=1))) for part in each))


def within(pair, oversleep_s: float) -> dict:
    """LogGP of the link between two ranks of a host, from messages whose receiver has waited a while, as in training.

    The receive calls give o and G, a straight line over the sizes; what passes between the send and the receive call is L, and half
    a pause.
    """
    clock = common_clock(pair)
    times = {size: _one_way(pair, clock, size, _awake, WAITED_S) for size in SIZES_BYTES}
    seen_s = late_s(WAITED_S, pair.bcast(oversleep_s))
    return _local(times, seen_s) | wire.spreads([_local(part, seen_s) for part in _parts(times)])


def _local(by_size: dict[int, np.ndarray], seen_s: float) -> dict:
    """The link of what `_one_way` returns by size.

    Args:
        seen_s: after which a rank of the probe saw a message.
    """
    from scipy.optimize import nnls

    times = [np.mean(np.median(of, axis=1), axis=0) for of in by_size.values()]
    sizes, latency_s, receive_s, _ = np.array(SIZES_BYTES, float), *np.array(times).T
    weight = 1 / receive_s  # every size weighs the same, or only the largest would count
    (slope, base_s), _ = nnls(np.stack([sizes * weight, weight], axis=1), receive_s * weight)
    return {
        "latency_s": max(0.0, float(np.median(latency_s)) - seen_s),
        "late_s": seen_s,
        "overhead_s": float(base_s),
        "bandwidth_bytes_per_s": float(1 / max(slope, 1e-14)),
        "receive_s": {str(size): time_s for size, time_s in zip(SIZES_BYTES, receive_s.tolist(), strict=True)},
    }


def _one_way(pair, clock, size: int, take, waited_s: float) -> np.ndarray:
    """Seconds from a send to the receive call, in the receive call, and in the send, shape (directions, rounds, 3); at both ranks.

    Args:
        take: receives a message that has begun to come.
        waited_s: how long the receiver has then waited.
    """
    out, into, times = np.ones(size, np.uint8), np.zeros(size, np.uint8), []
    for number in range(2 * (WARM_UP + ROUNDS)):
        np.add(CACHE, 1, out=CACHE)
        np.add(out, 1, out=out)
        pair.Barrier()
        if pair.rank == number % 2:
            time.sleep(waited_s)
            stamp_s = clock()
            poll(pair.Isend(out, 1 - pair.rank, TAG).Test, "the other rank")
            pair.send((stamp_s, clock() - stamp_s), 1 - pair.rank, TAG + 1)
        else:
            poll(lambda: arrived(pair, 1 - pair.rank, TAG), "the other rank")
            begin_s = clock()
            take(pair, into)
            end_s = clock()
            stamp_s, send_s = pair.recv(None, 1 - pair.rank, TAG + 1)
            times.append((begin_s - stamp_s, end_s - begin_s, send_s))
    return np.array(pair.allgather(times[WARM_UP:]))
