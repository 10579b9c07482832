"""Mechanics of ranks that share a host's port, but no core: they take turns at it, and copy messages from one another."""

from __future__ import annotations

from typing import Any

from sim.event.machines.copied import Copied
from sim.event.machines.free import Free
from sim.event.machines.sending import record_left
from sim.event.ranks.message import Message


class Crowded(Free):
    """Free's mechanics where other ranks are on the host: ranks take turns at its port, and a receiver copies messages within the host."""

    own_port = False
    __slots__ = ("_last", "_over", "neighbour_comes")

    def __init__(self, rank):
        super().__init__(rank)
        self._over = False  # whether the rank's text has ended
        self._last: Any = None  # the departure of the last message after which the next may leave
        # neighbour_comes(reach_s, message): a message is on its way from a rank of this host
        self.neighbour_comes: Any = self.machine.coming.to(self.copied)

    def post_now(self, peer: int, message: Message):
        """Give one message to the link; when it has left: seconds, or Copied."""
        to = self.others[peer]
        if to.machine is self.machine:
            message.departure = Copied()
            to.neighbour_comes(self.rank.clock_s + self.local.latency_s, message)
            return message.departure
        rank, clock_s = self.rank, self.rank.clock_s
        called_s, go = clock_s + len(message.sizes_bytes) * self._overhead_s, rank.thread.go
        self.machine.leaving.add(called_s, rank.rank, lambda *_: go(), None)
        yield
        rank.clock_s = clock_s
        return self.post(peer, message)

    def copied(self, reach_s: float, message: Message) -> None:
        """A message of a rank on this host comes."""
        if self._over:
            message.departure.fire(reach_s)
        else:
            self.put(message, reach_s, None)

    def end(self) -> None:
        """The rank's text has ended: what nobody takes leaves its sender all the same, as at the end of a real run."""
        self._over, left = True, self._inbox
        self._inbox = []
        for message, _, end_s in left:
            if end_s is None:
                message.departure.fire(self.rank.clock_s)

    def send_all(self, peers, letter):
        """Send a message to each of `peers`, in order; go on when all have left."""
        rank, start_s, sent = self.rank, self.rank.clock_s, []
        for peer in peers:
            message = letter(peer)
            sent.append((peer, message, (yield from self.post_now(peer, message))))
        for peer, message, departure in sent:
            yield from self.until(departure)
            if rank.rows:
                rank.record("send", start_s, 0, message.size_bytes, peer)
            start_s = rank.clock_s

    def post_all(self, peers, letter, record: bool = False, one: bool = False):
        """Send a message to each of `peers`, in order; go on at once."""
        rank = self.rank
        for peer in peers:
            if one and self._last is not None:
                start_s = rank.clock_s
                yield from self.until(self._last)
                if rank.clock_s > start_s:
                    rank.waited(start_s, rank.clock_s, peer)
            start_s, message = rank.clock_s, letter(peer)
            departure = yield from self.post_now(peer, message)
            if one:
                self._last = departure
            if record and rank.rows:
                self._row_of(start_s, departure, message, peer)

    def _row_of(self, start_s: float, departure, message: Message, peer: int) -> None:
        if type(departure) is not Copied:
            record_left(self.rank, start_s, departure, message, peer)
            return
        rank = self.rank
        about = (rank.rank, rank.step, "send", 0, message.size_bytes, peer, message.version)
        departure.calls.append(lambda time_s: rank.recorder.row(start_s, time_s, *about))

    def until(self, departure):
        """Wait until a message has left."""
        if type(departure) is not Copied:
            departure = max(departure, self.rank.clock_s)
        elif departure.time_s is None:
            go = self.rank.thread.go
            departure.calls.append(lambda _: go())
            yield
        self.rank.clock_s = max(self.rank.clock_s, departure.time_s if type(departure) is Copied else departure)

    def swap(self, message: Message | None, to, source: int | None, ahead: bool):
        """Send a piece and receive one at the same time, either of which may be none; return the received one."""
        rank, departure, taken = self.rank, None, None
        if message is not None:
            start_s = rank.clock_s
            departure = yield from self.post_now(to, message)
            if rank.rows:
                self._row_of(start_s, departure, message, to)
        if source is not None:
            taken = yield from self.receive(source)
        if departure is not None and ahead:
            self._ahead.append(departure)
        elif departure is not None:
            yield from self.until(departure)
        return taken

    def departed(self):
        """Wait until all messages that were sent ahead have left."""
        ahead, self._ahead = self._ahead, []
        for departure in ahead:
            yield from self.until(departure)
