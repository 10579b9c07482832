"""TCP's settings of a link; sim.platform.slow_start is what they do."""

from __future__ import annotations

from pydantic import model_validator

from sim.base.models import Checked
from sim.base.ranges import Ranks, Window


class Tcp(Checked):
    """Windows: bytes that a sender may have in flight before they are acknowledged.

    Args:
        initial_window_bytes: ten segments of an Ethernet (RFC 6928).
        window_bytes: the most: half of the receive buffer's limit (Linux: tcp_rmem to 6 MiB, tcp_adv_win_scale 1).
        connections: over which a message is spread evenly; each has such windows.
    """

    initial_window_bytes: Window = 10 * 1460
    window_bytes: Window = 3 * 2**20
    connections: Ranks = 1

    @model_validator(mode="after")
    def _grows(self):
        if self.initial_window_bytes > self.window_bytes:
            raise ValueError("initial_window_bytes up to window_bytes")
        return self
