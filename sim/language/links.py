"""How links between hosts may differ from plain ports: windows of TCP, and ports that messages share."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sim.base.errors import WrongSetting


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
