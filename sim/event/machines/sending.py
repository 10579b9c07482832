"""Messages of one rank to several others, by a port of its own."""

from __future__ import annotations

import math
from typing import Any

from sim.event.ranks.message import Message

DONE = ()


class Sending:
    """How they leave, one after another.

    Args:
        mechanics: sim.event.machines.free.Free, of the rank.
    """

    __slots__ = ("_mechanics", "_posted")

    def __init__(self, mechanics):
        self._mechanics = mechanics
        self._posted: Any = None  # when the last one has left of those after which the next may leave

    def send_all(self, peers, letter):
        """Send a message to each of `peers`, in order; go on when all have left.

        Args:
            letter: letter(peer) makes the message.
        """
        mechanics, rank = self._mechanics, self._mechanics.rank
        start_s = rank.clock_s
        if rank.serves and mechanics.slow is None and not rank.rows:
            return self._send_alike(peers, letter)
        left, last_s = [], -math.inf
        for peer in peers:
            message = letter(peer)
            leave_s = mechanics.post(peer, message)
            last_s = leave_s if leave_s > last_s else last_s
            if rank.rows:
                left.append((peer, leave_s, message))
        clock_s = rank.clock_s
        rank.clock_s = max(clock_s, last_s)
        for peer, leave_s, message in left:
            clock_s = max(clock_s, leave_s)
            record_left(rank, start_s, clock_s, message, peer)
            start_s = clock_s
        return DONE

    def _send_alike(self, peers, letter):
        """A server's, which sends the same to all."""
        mechanics, message, posted = self._mechanics, None, 0
        rank, port, link, others = mechanics.rank, mechanics.port, mechanics.link, mechanics.others
        clock_s, free_s, latency_s = rank.clock_s, port.free_s, link.latency_s
        for peer in peers:
            if message is None:
                message = letter(peer)
                called_s = len(message.sizes_bytes) * link.overhead_s / rank.speed
                message.occupancy_s = occupancy_s = link.gap_s + message.size_bytes * rank.amounts.byte_s
            clock_s += called_s
            begin_s = clock_s if clock_s > free_s else free_s
            free_s = begin_s + occupancy_s
            posted += 1
            others[peer].comes(begin_s + latency_s, message)
        if posted:
            port.free_s, rank.clock_s = free_s, max(free_s, clock_s)
            port.busy_s += posted * occupancy_s
        return DONE

    def post_all(self, peers, letter, record: bool, one: bool):
        """Send a message to each of `peers`, in order; go on at once.

        Args:
            letter: letter(peer) makes the message.
            record: whether to record them, when they have left.
            one: whether each waits until the one before has left.
        """
        rank = self._mechanics.rank
        for peer in peers:
            if one and self._posted is not None and self._posted > rank.clock_s:
                start_s, rank.clock_s = rank.clock_s, self._posted
                rank.waited(start_s, rank.clock_s, peer)
            start_s, message = rank.clock_s, letter(peer)
            departure = self._mechanics.post(peer, message)
            if one:
                self._posted = departure
            if record and rank.rows:
                record_left(rank, start_s, departure, message, peer)
        return DONE


def record_left(rank, start_s: float, departure_s: float, message: Message, peer: int) -> None:
    """A row for a message that has left."""
    about = (rank.rank, rank.step, "send", 0, message.size_bytes, peer, message.version)
    rank.recorder.row(start_s, departure_s, *about)
