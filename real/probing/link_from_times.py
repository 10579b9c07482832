"""The parameters of a link between two hosts, from the times of messages of several sizes, first byte to last."""

from __future__ import annotations

import numpy as np

SMALL_BYTES = 1_024  # takes no time but the link's latency and overhead
LARGE_BYTES = (262_144, 1_048_576, 4_194_304)
SHARED_BYTES = 1_048_576  # of each of two messages that share a port
TIMES = 5  # into which what was measured is cut, in its order, to see how it differs from one to another
MOST_OF_A_PORT = 0.95
LEAST_BYTES = 8_192  # less is the noise of the times
EAGER_BYTES = 65_536  # btl_tcp_eager_limit of Open MPI: a longer message leaves when its receiver has asked for it


def takes_turns(exchanged_s: float, one_way_s: float, late_s: float) -> bool:
    """Whether two ranks that exchange messages, one of them `late_s` after the other, send them one after the other.

    Args:
        exchanged_s: from the first send to the end of both.
        one_way_s: of one message alone.
    """
    together_s, in_turn_s = late_s + one_way_s, 2 * one_way_s
    return exchanged_s > (together_s + in_turn_s) / 2


def link(small_s: float, overhead_s: float, sizes, seconds, turns: bool = False) -> dict:
    """A sim.platform.cluster.Link of a network.

    The slope over the large messages is G, whatever burst a port passes at once. The burst is the time that their line at size 0 lies
    below a small message's. If they leave on request, two control messages are part of that time. Bytes share ports, as TCP's flows
    and the queues of adapters that take turns do.

    Args:
        small_s: of a small message, from the send to the end of the receive call.
        overhead_s: of the receive call of a small message that has arrived: o.
        sizes, seconds: of the large messages, likewise.
        turns: the result of `takes_turns`: the library's large messages leave on request.
    """
    sizes, seconds = np.asarray(sizes, float), np.asarray(seconds, float)
    design = np.column_stack([sizes, np.ones(len(sizes))])
    (slope, base_s), *_ = np.linalg.lstsq(design / seconds[:, None], np.ones(len(sizes)), rcond=None)  # relative errors
    slope = max(slope, 1e-14)
    words_s = 2 * max(0.0, small_s - 2 * overhead_s) if turns else 0.0
    burst_bytes = (small_s + words_s - base_s) / slope
    bursts = burst_bytes >= LEAST_BYTES
    latency_s = (small_s if bursts else base_s) - 2 * overhead_s
    return {
        "latency_s": max(0.0, latency_s) / (3 if turns and not bursts else 1),
        "overhead_s": float(overhead_s),
        "bandwidth_bytes_per_s": float(1 / slope),
        "fair": True,
        "burst_bytes": float(burst_bytes) if bursts else 0.0,
        **({"eager_bytes": EAGER_BYTES} if turns else {}),
        "message_s": {str(int(size)): float(time_s) for size, time_s in zip(sizes, seconds, strict=True)},
    }


def spread(values) -> float:
    """Standard deviation of the logarithm of what was measured at several times, from its coefficient of variation; 0 if it is all 0.

    >>> round(spread([0.9, 1.0, 1.1]), 3)
    0.1
    """
    mean = float(np.mean(values))
    return float(np.sqrt(np.log1p((np.std(values, ddof=1) / mean) ** 2))) if mean > 0 else 0.0


def spreads(links: list[dict]) -> dict[str, float]:
    """How a link differed from one time at which it was measured to another: two fields of sim.platform.cluster.Link."""
    return {
        "latency_spread": spread([one["latency_s"] for one in links]),
        "bandwidth_spread": spread([1 / one["bandwidth_bytes_per_s"] for one in links]),
    }


def left_behind(seconds: float, bandwidth_bytes_per_s: float, most_bytes: float) -> float:
    """Bytes of a busy port that pass it in so many seconds: sim.platform.cluster.Link.queue_bytes and buffer_bytes.

    Args:
        seconds: of waiting, of a control message that leaves beside a message; or from the end of a send to the last byte's leaving.
        most_bytes: of that message.
    """
    found = min(max(0.0, seconds) * bandwidth_bytes_per_s, most_bytes)
    return found if found >= LEAST_BYTES else 0.0


def unfairness(first_s, last_s) -> float:
    """The unfairness between two equal messages that leave a port at once: sim.platform.cluster.Link.unfairness.

    The first to end had the share last / (2 first). Its log odds are those of its weight over the other's: normal, with twice the
    variance of the logarithm of one weight.

    Args:
        first_s, last_s: of each round, seconds from the sends to the end of the first message, and of the last; shape (rounds,).
    """
    share = np.clip(np.asarray(last_s) / (2 * np.asarray(first_s)), 0.5, MOST_OF_A_PORT)
    variance = np.mean(np.log(share / (1 - share)) ** 2) / 2
    return float(np.sqrt(np.expm1(variance)))


def ramp_bytes(left_bytes, passed_bytes) -> float:
    """The bytes after which a late message has as much of a port as an earlier one: sim.platform.cluster.Link.ramp_bytes.

    Its share of the bytes that pass the port is w / (1 + w). Its window w doubles after so many bytes (sim.language.event.flows).

    Args:
        left_bytes: of the first message, when the second began; shape (rounds,).
        passed_bytes: of the second, when the first ended; shape (rounds,).
    """
    from scipy.optimize import brentq

    from sim.language.event.flows import DOUBLINGS

    left_bytes, passed = np.asarray(left_bytes, float), float(np.sum(passed_bytes))
    windows = 2.0 ** np.arange(-DOUBLINGS, 0)
    of_first, of_second = (np.cumsum(np.append(0, share / (1 + windows))) for share in (1, windows))

    def too_much(ramp: float) -> float:
        growing = np.interp(left_bytes, ramp * of_first, ramp * of_second)
        return float(np.sum(growing + np.maximum(0.0, left_bytes - ramp * of_first[-1]))) - passed

    most = float(left_bytes.max()) / of_first[1]
    if too_much(0.0) < 0:
        return 0.0
    return most if too_much(most) > 0 else float(brentq(too_much, 0.0, most))
