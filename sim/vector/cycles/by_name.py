"""Negotiation in one message to rank 0 for each gradient of each rank, and back."""

from __future__ import annotations

import numpy as np

from sim.vector.cycles.negotiation import REQUEST_BYTES, Asked, Begun, Told, idle_before, passing_s
from sim.vector.exchanges import Ports

ANSWERS = 2  # messages to each rank


class ByName:
    """Every rank but 0 names the gradients that have become ready there, and one message more ends it.

    Args:
        link: between hosts.
    """

    def __init__(self, link):
        self._link = link

    def ask(self, begun: Begun) -> Asked:
        """All to rank 0, which takes them in the order of their ranks.

        Raises:
            Unsettled: which messages pass its port first cannot be told.
        """
        messages = (begun.more() + 1)[:, 1:]
        occupancy_s = self._link.gap_s + messages * REQUEST_BYTES / self._link.bandwidth_bytes_per_s
        posted_s = begun.now_s[:, 1:] + messages * begun.overhead_s[:, 1:]
        reach_s = posted_s + self._link.latency_s
        senders = np.arange(1, begun.now_s.shape[1])[None]
        pass_s = passing_s(
            reach_s[:, None], occupancy_s[:, None], senders, begun, np.zeros(1, int), self._link.latency_s
        )[:, 0]
        busy_s = np.cumsum(messages * begun.overhead_s[:, :1], axis=1)
        taken_s = np.maximum.accumulate(pass_s + occupancy_s - np.pad(busy_s, ((0, 0), (1, 0)))[:, :-1], axis=1)
        now_s = np.concatenate([begun.now_s[:, :1], np.maximum(begun.now_s[:, :1], taken_s) + busy_s], axis=1)
        left_s = np.concatenate([now_s[:, :1], posted_s + occupancy_s], axis=1)
        waits = [(slice(0, 1), now_s[:, i : i + 1], pass_s[:, i : i + 1]) for i in range(pass_s.shape[1])]
        return Asked(now_s[:, -1:], left_s, waits)

    def answers(self) -> None:
        """They are no exchanges of one message each."""

    def tell(self, overhead_s: np.ndarray, speeds: np.ndarray) -> Told:
        """Rank 0 to all others, in the order of their ranks; it goes on when all has left."""
        order, occupancy_s = np.arange(speeds.shape[1] - 1), self._link.occupancy_s(ANSWERS * REQUEST_BYTES)
        posted_s = ANSWERS * overhead_s[:, :1] * (order + 1)
        begin_s = np.maximum.accumulate(posted_s - occupancy_s * order, axis=1) + occupancy_s * order
        pass_s, never_s = begin_s + self._link.latency_s, np.full((len(speeds), 1), -np.inf)
        free_s = pass_s + occupancy_s
        ends_s = np.maximum(posted_s, begin_s + occupancy_s)[:, -1:] if len(order) else np.zeros((len(speeds), 1))
        others_s = [free_s + ANSWERS * overhead_s[:, 1:], np.full(free_s.shape, -np.inf), free_s, pass_s]
        clocks = [
            np.concatenate(parts, axis=1) for parts in zip([ends_s, ends_s, never_s, never_s], others_s, strict=True)
        ]
        return Told(Ports(*clocks), clocks[3], idle_before(clocks[3]))
