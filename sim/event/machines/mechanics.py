"""How one rank's work and messages take time: what is alike whether others need its cores and ports or not."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from sim.event.machines.queues import Queues
from sim.event.ranks.message import Inbox, Message
from sim.model.costs import WARMING
from sim.recording.traces import NOBODY


class Mechanics:
    """The mechanics of one rank, whose text's verbs take time by them.

    There are two kinds: time is added to the rank's clock (sim.event.machines.free), or it passes until an event (contended). Each says
    how long a core takes (`_spend`), how a message is sent (`post`) and received, and how the rank waits until one has left (`until`).

    Args:
        rank: sim.event.ranks.rank.Rank.
    """

    def __init__(self, rank):
        world = rank.world
        self.rank, self.env, self.machine = rank, world.env, rank.machine
        self.link, self.local = world.link, world.local
        self.queues, self.inbox = Queues(self), Inbox()  # type: Any, Any
        self.everyone: list[Any] = []  # the mechanics of all ranks, once all are there
        self._ahead: list[Any] = []  # departures of messages that were sent ahead
        self._posted: Any = None  # the departure of the last message after which the next may leave

    def join(self, everyone: list) -> None:
        """Take note of the mechanics of all ranks."""
        self.everyone = everyone

    def fall_apart(self) -> None:
        """Drop all references to others, so that memory is free at once."""
        self.rank = self.queues = self.inbox = None
        self.everyone.clear()

    def end(self) -> None:
        """The rank's text has ended: what nobody takes leaves its sender all the same, as at the end of a real run."""
        self.inbox.end(self._leave)

    # ---- what each kind has

    def _spend(self, seconds: float, computing: bool = False) -> Any:
        """Work for some seconds of a core; `computing` may be done by another device."""
        raise NotImplementedError

    def _busy_s(self, seconds: float, start_s: float) -> float:
        """For how long some work has kept the rank busy, which began then and has ended now."""
        raise NotImplementedError

    def post(self, peer: int, message: Message) -> Any:
        """Give one message to the link, at a core's expense; its departure."""
        raise NotImplementedError

    def _departure(self) -> Any:
        """The departure of a message that leaves when its receiver has taken it."""
        raise NotImplementedError

    def when_left(self, departure: Any, call: Callable[[float], object]) -> None:
        """Call call(time_s) when a message has left, or as soon as that time is known."""
        raise NotImplementedError

    def until(self, departure: Any) -> Any:
        """Wait until a message has left."""
        raise NotImplementedError

    def receive(self, frm, until_s: float = math.inf, variable: int | None = None) -> Any:
        """The next message from one of `frm`, if it begins to come by a time."""
        raise NotImplementedError

    def _leave(self, message: Message) -> None:
        """A message leaves its sender, and nobody takes it."""
        raise NotImplementedError

    # ---- work

    def work(self, activity: str, seconds: float, samples=0, size_bytes=0, peer=NOBODY, version=None):
        """Work for some seconds of a core."""
        rank, start_s = self.rank, self.rank.clock_s
        yield from self._spend(seconds, activity == "compute")
        rank.applied_s += self._busy_s(seconds, start_s)
        rank.record(activity, start_s, samples, size_bytes, peer, version)

    def works(self, works):
        """One after another: (activity, seconds, samples, bytes); seconds may be known only when it begins."""
        rank = self.rank
        for activity, seconds, samples, size_bytes in works:
            start_s = rank.clock_s
            yield from self.spend(seconds() if callable(seconds) else seconds, activity == "compute")
            rank.record(activity, start_s, samples, size_bytes)
            if activity in WARMING:
                rank.warm()

    def spend(self, seconds: float, computing: bool = False):
        """Work for some seconds of a core, or of the rank's GPU where it computes on one; nothing is recorded."""
        rank, start_s = self.rank, self.rank.clock_s
        yield from self._spend(seconds, computing)
        rank.computed_s += self._busy_s(seconds, start_s)

    # ---- messages

    def send_all(self, peers, letter):
        """Send a message to each of `peers`, made by letter(peer), in order; go on when all have left."""
        rank, start_s, left = self.rank, self.rank.clock_s, []
        for peer, message in [(peer, letter(peer)) for peer in peers]:
            left.append((peer, message, (yield from self.post(peer, message))))
        for peer, message, departure in left:
            yield from self.until(departure)
            rank.record("send", start_s, 0, message.size_bytes, peer)
            start_s = rank.clock_s

    def post_all(self, peers, letter, record: bool = False, one: bool = False):
        """Send a message to each of `peers`, made by letter(peer), in order; go on at once.

        Args:
            record: whether to record them, when they have left.
            one: whether each waits until the one before has left, which it has once its receiver has taken it.
        """
        rank = self.rank
        for peer in peers:
            message = letter(peer)
            if one and self._posted is not None:
                yield from self._until_posted(peer)
            if one:
                self._hold(message)
            start_s = rank.clock_s
            departure = yield from self.post(peer, message)
            if one:
                self._posted = departure
            if record:
                self.record_left(departure, start_s, message, peer)

    def _hold(self, message: Message) -> None:
        """Have a message leave when its receiver has taken it, as a long one does on a fair link, where it is asked for."""
        if not self.link.fair:
            message.departure = self._departure()

    def _until_posted(self, peer: int):
        """Wait until the message before has left."""
        rank, start_s = self.rank, self.rank.clock_s
        yield from self.until(self._posted)
        if rank.clock_s > start_s:
            rank.waited(start_s, rank.clock_s, peer)

    def swap(self, message: Message | None, to, source: int | None, ahead: bool):
        """Send a piece and receive one at the same time, either of which may be none; return the received one."""
        departure = taken = None
        if message is not None:
            start_s = self.rank.clock_s
            departure = yield from self.post(to, message)
            self.record_left(departure, start_s, message, to)
        if source is not None:
            taken = yield from self.receive(source)
        if departure is not None and ahead:
            self._ahead.append(departure)
        elif departure is not None:
            yield from self.until(departure)
        return taken

    # ---- records

    def received(self, message: Message, start_s: float, moving_s: float) -> None:
        """Record a message that has been received: the rank waited for it from start_s until its bytes began to move."""
        rank = self.rank
        rank.waited(min(moving_s, max(start_s, rank.idle_from_s)), moving_s, message.sender)
        rank.record("receive", moving_s, 0, message.size_bytes, message.sender)

    def record_left(self, departure: Any, start_s: float, message: Message, peer: int, step: int | None = None) -> None:
        """Record a message when it has left; it is of this step of the rank, or of another."""
        rank = self.rank
        if rank.rows:
            step = rank.step if step is None else step
            about = (rank.rank, step, "send", 0, message.size_bytes, peer, message.version)
            self.when_left(departure, lambda time_s: rank.recorder.row(start_s, time_s, *about))
