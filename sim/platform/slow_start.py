"""TCP on a path without loss: slow start, slow start again after idling, and no more on the way than a window."""

from __future__ import annotations

import math

LEAST_TIMEOUT_S = 0.2  # Linux, TCP_RTO_MIN: added to the round trip, it is how long a quiet connection keeps its window


def transfer_s(size_bytes: float, window_bytes: float, most_bytes: float, round_trip_s: float, rate: float):
    """Seconds until the last of so many bytes has left, and the window then.

    Cardwell, Savage and Anderson, "Modeling TCP latency", INFOCOM 2000, equations 12 to 17, without loss or delayed acknowledgements.
    One window is sent in a round trip, and each doubles it, until it is the largest or keeps the path full.

    Args:
        window_bytes: at the start.
        most_bytes: that a window may have.
        rate: of the path, bytes a second.
    """
    elapsed_s, left, full = 0.0, size_bytes, rate * round_trip_s
    while left > window_bytes and window_bytes < min(full, most_bytes):
        elapsed_s, left, window_bytes = elapsed_s + round_trip_s, left - window_bytes, min(2 * window_bytes, most_bytes)
    if left > window_bytes and window_bytes < full:
        rounds = math.ceil(left / window_bytes) - 1
        elapsed_s, left = elapsed_s + rounds * round_trip_s, left - rounds * window_bytes
    return elapsed_s + left / rate, min(most_bytes, window_bytes + left)


class Connection:
    """A connection from one rank to another.

    Args:
        initial_bytes, most_bytes: of its window, after a rest and at most.
        round_trip_s: until bytes are acknowledged.
        rate: of the path, bytes a second.
    """

    def __init__(self, initial_bytes: float, most_bytes: float, round_trip_s: float, rate: float):
        self._initial, self._most, self._round_trip_s, self._rate = initial_bytes, most_bytes, round_trip_s, rate
        self._window, self._free_s = self._initial, 0.0

    def send(self, now_s: float, size_bytes: float) -> float:
        """When the last byte of a message leaves that a port begins to send now.

        The window is halved for every timeout without a message (RFC 2861; Linux, tcp_slow_start_after_idle).
        """
        begin_s = max(now_s, self._free_s)
        timeouts = int((begin_s - self._free_s) / (LEAST_TIMEOUT_S + self._round_trip_s))
        self._window = max(self._initial, self._window * 0.5 ** min(timeouts, 99))
        seconds, self._window = transfer_s(size_bytes, self._window, self._most, self._round_trip_s, self._rate)
        self._free_s = begin_s + seconds
        return self._free_s
