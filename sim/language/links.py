"""How links between hosts may differ from plain ports: windows of TCP, and ports that messages share."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sim.base.errors import WrongSetting

LEAST_TIMEOUT_S = 0.2  # Linux, TCP_RTO_MIN: added to the round trip, it is how long a quiet connection keeps its window


@dataclass(frozen=True)
class Windows:
    """TCP's windows: bytes that a rank may have under way to another one before they are acknowledged.

    Args:
        initial_bytes: after a rest.
        most_bytes: to which they grow.
    """

    initial_bytes: float
    most_bytes: float

    def __post_init__(self):
        if not 0 < self.initial_bytes <= self.most_bytes:
            raise WrongSetting(
                "initial_bytes", self.initial_bytes, f"more than 0, up to most_bytes, {self.most_bytes:,}"
            )


@dataclass(frozen=True)
class Fair:
    """Messages that pass a port at once share it, max-min fair; each port is a token bucket.

    Args:
        ramp_bytes: while its sender's port could pass so many, a message's window doubles, from a sixteenth on; 0: it is open.
        burst_bytes: that an idle port passes at once.
        queue_bytes: the longest queue before a busy port; a message that is no longer waits behind it.
        buffer_bytes: that a sender's system keeps: a message has left when no more of it remain.
        eager_bytes: the longest message that leaves at once; a longer one is announced, and leaves when its receiver has asked for it
            (MPI's rendezvous).
    """

    ramp_bytes: float = 0.0
    burst_bytes: float = 0.0
    queue_bytes: float = 0.0
    buffer_bytes: float = 0.0
    eager_bytes: float = math.inf


class Connection:
    """The window from one rank to another.

    Args:
        round_trip_s: until bytes are acknowledged.
        rate: of the path, bytes/s.
    """

    def __init__(self, windows: Windows, round_trip_s: float, rate: float):
        self._windows, self._round_trip_s, self._rate = windows, round_trip_s, rate
        self._window, self._free_s = windows.initial_bytes, 0.0

    def send(self, now_s: float, size_bytes: float) -> float:
        """When the last byte of a message leaves that a port begins to send now.

        Cardwell, Savage and Anderson, "Modeling TCP latency", INFOCOM 2000, equations 12 to 17, without loss or delayed
        acknowledgements: one window is sent in a round trip, and each doubles it, until it is the largest or keeps the path full. It is
        halved for every timeout without a message (RFC 2861; Linux, tcp_slow_start_after_idle).
        """
        most, trip_s, rate = self._windows.most_bytes, self._round_trip_s, self._rate
        begin_s = max(now_s, self._free_s)
        timeouts = int((begin_s - self._free_s) / (LEAST_TIMEOUT_S + trip_s))
        window = max(self._windows.initial_bytes, self._window * 0.5 ** min(timeouts, 99))
        elapsed_s, left, full = 0.0, size_bytes, rate * trip_s
        while left > window and window < min(full, most):
            elapsed_s, left, window = elapsed_s + trip_s, left - window, min(2 * window, most)
        if left > window and window < full:
            rounds = math.ceil(left / window) - 1
            elapsed_s, left = elapsed_s + rounds * trip_s, left - rounds * window
        self._window, self._free_s = min(most, window + left), begin_s + (elapsed_s + left / rate)
        return self._free_s
