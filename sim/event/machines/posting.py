"""Mechanics of a rank whose messages are posted without an event (sim.event.ranks.poster): nothing is asked for each of them."""

from __future__ import annotations

from sim.event.machines.free import Free
from sim.event.ranks.message import Message


class Posting(Free):
    """The same where both ports are plain queues, the rank's text is one thread, and nobody asks for a trace."""

    __slots__ = ("_answers", "_direct")

    def __init__(self, rank):
        super().__init__(rank)
        self._direct = False  # what comes moves the rank's clock before its text goes on
        self._answers = False

    def post(self, peer: int, message: Message) -> float:
        """Give one message to another host, at a core's expense; when it has left, seconds."""
        rank, port, sizes = self.rank, self.port, message.sizes_bytes
        rank.clock_s = begin_s = rank.clock_s + (self._overhead_s if len(sizes) == 1 else len(sizes) * self._overhead_s)
        message.occupancy_s = occupancy_s = self._gap_s + message.size_bytes * self._byte_s
        begin_s = port.free_s if port.free_s > begin_s else begin_s
        port.free_s = leave_s = begin_s + occupancy_s
        port.busy_s += occupancy_s
        self.others[peer].comes(begin_s + self._latency_s, message)
        return leave_s

    def deliver(self, reach_s: float, message: Message) -> None:
        """A message from another host begins to pass this machine's port, after those that came before."""
        port, occupancy_s = self.ingress, message.occupancy_s
        port.busy_s += occupancy_s
        begin_s = reach_s if reach_s > port.free_s else port.free_s
        port.free_s = end_s = begin_s + occupancy_s
        if self._direct and message.sender in self._peers:
            rank, sizes = self.rank, message.sizes_bytes
            start_s = rank.clock_s
            if begin_s > start_s:
                self._waits += (rank.rank, start_s, begin_s)
            start_s = end_s if end_s > start_s else start_s
            rank.clock_s = start_s + (self._overhead_s if len(sizes) == 1 else len(sizes) * self._overhead_s)
            if self._answers and message.note and not message.last:
                rank.answer(message.sender)
            else:
                self._wake, self._direct = None, False
                rank.thread.go(message)
        else:
            self.put(message, begin_s, end_s)

    def first(self, peers, answers: bool = False):
        """The first message from one of `peers` that lies here; if there is none, the rank's text goes on with the next.

        Args:
            answers: requests that come meanwhile are answered; the text does not go on with them.
        """
        if self._inbox and (arrived := self.take(peers)):
            self._took(*arrived)
            return arrived[0]
        self._peers, self._wake, self._direct, self._answers = peers, self, True, answers
        return None
