"""Mechanics of ranks whose cores are their own: work and messages are arithmetic on the rank's clock, arrivals are the only events."""

from __future__ import annotations

import math
from typing import Any

from sim.base.errors import WrongText
from sim.event.arrivals import Arrivals
from sim.event.machines.ahead import Ahead
from sim.event.machines.own_core import OwnCore
from sim.event.machines.sending import Sending, record_left
from sim.event.machines.slow_port import SlowPort
from sim.event.ranks.message import Message
from sim.verbs.book import CLOCK_S

DONE = ()


class Free:
    """How one rank's work, messages and waits take time where nothing that ranks share makes its work longer.

    A rank's text runs ahead on its own clock. Messages queue at the ports of hosts in the order in which they come there: a receiver's
    port takes them at events. A sender's port needs no event if it is the rank's own; ranks that share one take turns.
    """

    quick = True  # works that follow one another may be joined
    own_port = True  # no other rank sends by this port
    __slots__ = (
        "_ahead", "_byte_s", "_gap_s", "_inbox", "_latency_s", "_missing", "_overhead_s", "_peers", "_plain", "_sending",
        "_timed", "_waits", "_wake", "comes", "core", "course", "env", "ingress", "link", "local", "machine", "others", "port",
        "rank", "rest", "rest_until", "slow", "speed", "spend", "work", "work_on", "works",
    )  # fmt: skip

    def __init__(self, rank):
        world, machine, link = rank.world, rank.machine, rank.world.link
        self.rank, self.env, self.link, self.local = rank, world.env, link, world.local
        self.machine, self.speed = machine, machine.speed
        self.core = core = OwnCore(rank)
        self.work, self.works, self.work_on = core.work, core.works, core.work_on
        self.spend, self.rest, self.rest_until = core.spend, core.rest, core.rest_until
        self.port, self.ingress = machine.egress, machine.ingress
        self._inbox: list[Any] = []  # messages that have come, and when their bytes move
        self._peers: Any = ()  # ranks from one of which the next message is waited for
        self._wake: Any = None  # the thread that then goes on
        self._timed = False
        self._missing: Any = None  # ranks whose gradients are still waited for, to be added up
        self._overhead_s, self._latency_s = rank.amounts.overhead_s[machine.speed], link.latency_s
        self._gap_s, self._byte_s = link.gap_s, rank.amounts.byte_s
        self.slow = SlowPort(self) if link.sustained_bytes_per_s or link.tcp or link.store_and_forward else None
        self._plain = self.slow is None
        self._ahead: list[Any] = []
        self._sending: Any = Sending(self)
        self._waits = rank.recorder.waits
        self.others: Any = []  # the mechanics of all ranks, once they are there
        self.course: Any = None  # of a call of all ranks that the rank is in (sim.event.together)
        self.comes: Any = None  # comes(reach_s, message): a message is on its way to this rank

    def join(self, everyone: list, alone: bool) -> None:
        """Take note of the mechanics of all ranks.

        Args:
            alone: rank 0 alone sends to workers, as far as is known of the protocol.
        """
        self.others = everyone
        if self.rank.serves and self.own_port:
            self.comes = Arrivals(self.env, self.deliver).add
        elif alone and self.own_port:
            self.comes = Ahead(self).add
        else:
            self.comes = self.machine.coming.to(self.reaches)

    # ---- time

    def begin_step(self, slept_s: float) -> None:
        """Do nothing: no other threads work beside the rank."""

    def come_together(self):
        """Do nothing: ranks that wait are woken at once."""
        return DONE

    def at(self, time_s: float, call) -> None:
        """Call a function at a time."""
        self.rank.world.at(time_s, call)

    def sync(self, but_s: float = 0.0):
        """Wait until the world's clock has reached this rank's, except for so many seconds."""
        clock_s = self.rank.clock_s
        ahead_s = clock_s - but_s - self.env.now
        if ahead_s > 0:
            yield self.env.timeout(ahead_s)
            self.rank.clock_s = clock_s

    # ---- messages that leave

    def send_all(self, peers, letter):
        """Send a message to each of `peers`, in order; go on when all have left.

        Args:
            letter: letter(peer) makes the message.
        """
        return self._sending.send_all(peers, letter)

    def post_all(self, peers, letter, record: bool = False, one: bool = False):
        """Send a message to each of `peers`, in order; go on at once.

        Args:
            letter: letter(peer) makes the message.
            record: whether to record them, when they have left.
            one: whether each waits until the one before has left.
        """
        return self._sending.post_all(peers, letter, record, one)

    def post(self, peer: int, message: Message) -> float:
        """Give one message to another host, at a core's expense; when it has left, seconds."""
        rank, port = self.rank, self.port
        sizes = message.sizes_bytes
        rank.clock_s = begin_s = rank.clock_s + (self._overhead_s if len(sizes) == 1 else len(sizes) * self._overhead_s)
        if self.slow is not None:
            return self.slow.leave(self.others[peer], message)
        message.occupancy_s = occupancy_s = self._gap_s + message.size_bytes * self._byte_s
        begin_s = port.free_s if port.free_s > begin_s else begin_s
        port.free_s = leave_s = begin_s + occupancy_s
        port.busy_s += occupancy_s
        self.others[peer].comes(begin_s + self._latency_s, message)
        return leave_s

    # ---- messages that come

    def waits_for(self, sender: int) -> bool:
        """Whether the rank waits for the next message of a sender, however long that takes."""
        return self._wake is not None and not self._timed and sender in self._peers

    def end(self) -> None:
        """The rank's text has ended: from now on nobody takes what comes."""

    def reaches(self, reach_s: float, message: Message) -> None:
        """A message reaches the port, at which messages of a call of all ranks may be served too."""
        if self.course is None:
            self.ingress.reached_s = reach_s
            self.deliver(reach_s, message)
        else:
            self.ingress.busy_s += message.occupancy_s
            self.put(message, *self.course.passing(self, reach_s, message))

    def deliver(self, reach_s: float, message: Message) -> None:
        """A message from another host begins to pass this machine's port, after those that came before."""
        port, occupancy_s = self.ingress, message.occupancy_s
        port.busy_s += occupancy_s
        if self._plain:
            begin_s = reach_s if reach_s > port.free_s else port.free_s
            port.free_s = end_s = begin_s + occupancy_s
        else:
            begin_s, end_s = port.take(reach_s, occupancy_s, message.credit_s)
            end_s += message.held_s
        self.put(message, begin_s, end_s)

    def put(self, message: Message, begin_s: float, end_s: float | None) -> None:
        """Deliver a message: a waiting rank takes it, or it is kept.

        Args:
            begin_s, end_s: when its bytes move; no end within a host, where the receiver copies.
        """
        wake = self._wake
        if wake is None or message.sender not in self._peers:
            self._inbox.append((message, begin_s, end_s))
        elif self._missing is None:
            self._wake = None
            wake((message, begin_s, end_s))
        else:
            self._gathered(message, begin_s, end_s)

    def take(self, peers):
        """The first kept message from one of `peers`, and when its bytes move."""
        for index, arrived in enumerate(self._inbox):
            if arrived[0].sender in peers:
                return self._inbox.pop(index)
        return None

    def receive(self, frm, until_s: float = math.inf, variable=None):
        """The next message from one of `frm`."""
        peers = (frm,) if isinstance(frm, int) else frm
        if until_s < math.inf:
            return (yield from self._receive_until(peers, until_s))
        arrived = self.take(peers) if self._inbox else None
        if arrived is None:
            self._peers, self._wake = peers, self.rank.thread.go
            arrived = yield
        message, begin_s, end_s = arrived
        rank = self.rank
        start_s = rank.clock_s
        if rank.rows or end_s is None or rank.idle_from_s > start_s:
            self._took(message, begin_s, end_s)
            return message
        if begin_s > start_s:
            self._waits += (rank.rank, start_s, begin_s)
        start_s = max(start_s, end_s)
        rank.clock_s = start_s + len(message.sizes_bytes) * self._overhead_s
        return message

    def _receive_until(self, peers, until_s: float):
        """The same, if it begins to come by a deadline. The world's clock catches up first, because messages that have come by now matter.

        A message that comes at this very moment has not come yet.
        """
        yield from self.sync(CLOCK_S)
        rank = self.rank
        start_s, arrived = rank.clock_s, self.take(peers)
        if arrived is None and until_s <= start_s:
            return None
        if arrived is None:
            wake = rank.thread.go
            self._peers, self._wake, self._timed = peers, wake, True
            self.at(until_s, lambda: self._give_up(wake))
            arrived = yield
            self._timed = False
        if arrived is None:
            rank.clock_s = max(start_s, self.env.now)
            rank.waited(start_s, rank.clock_s)
            return None
        self._took(*arrived)
        return arrived[0]

    def _give_up(self, wake) -> None:
        if self._wake is wake:
            self._wake = None
            wake()

    def _took(self, message: Message, begin_s: float, end_s: float | None) -> None:
        """The bytes of a message move, and a core takes them."""
        rank = self.rank
        start_s = rank.clock_s
        moving_s = begin_s if begin_s > start_s else start_s
        if end_s is None:
            self._copy(message, moving_s)
        else:
            rank.clock_s = (end_s if end_s > start_s else start_s) + len(message.sizes_bytes) * self._overhead_s
        idle_s = rank.idle_from_s if rank.idle_from_s > start_s else start_s
        if moving_s > idle_s:
            self._waits += (rank.rank, idle_s, moving_s)
        if rank.rows:
            row, step, version = rank.recorder.row, rank.step, rank.version
            row(min(moving_s, idle_s), moving_s, rank.rank, step, "wait", 0, 0, message.sender, version)
            row(moving_s, rank.clock_s, rank.rank, step, "receive", 0, message.size_bytes, message.sender, version)

    def _copy(self, message: Message, moving_s: float) -> None:
        """Take a message from a rank of this host."""
        local = self.local
        seconds = len(message.sizes_bytes) * local.overhead_s + local.occupancy_s(message.size_bytes)
        self.rank.clock_s = moving_s + seconds / self.speed
        message.departure.fire(self.rank.clock_s)

    def _gathered(self, message: Message, begin_s: float, end_s: float | None) -> None:
        """A gradient that was waited for has come; after the last the text goes on."""
        missing, rank = self._missing, self.rank
        start_s = rank.clock_s
        if rank.rows or end_s is None or begin_s > start_s:
            self._took(message, begin_s, end_s)
        else:
            rank.clock_s = (end_s if end_s > start_s else start_s) + len(message.sizes_bytes) * self._overhead_s
        missing.remove(message.sender)
        try:
            rank.add(message)
        except WrongText as error:  # of the text that gathers
            rank.thread.text.throw(error)
        if not missing:
            wake, self._missing, self._wake = self._wake, None, None
            wake()

    def gather(self, missing: set[int]):
        """Receive a gradient from each of `missing`, and add each up as it comes; the text goes on after the last."""
        while missing and self._inbox and (arrived := self.take(missing)):
            self._took(*arrived)
            missing.remove(arrived[0].sender)
            self.rank.add(arrived[0])
        if missing:
            self._missing, self._peers, self._wake = missing, missing, self.rank.thread.go
            yield

    # ---- exchanges

    def swap(self, message: Message | None, to, source: int | None, ahead: bool):
        """Send a piece and receive one at the same time, either of which may be none; return the received one."""
        rank = self.rank
        departure: Any = None
        taken = None
        if message is not None:
            start_s = rank.clock_s
            departure = self.post(to, message)
            if rank.rows:
                record_left(rank, start_s, departure, message, to)
        if source is not None:
            arrived = self.take((source,)) if self._inbox else None
            if arrived is None:
                self._peers, self._wake = (source,), rank.thread.go
                arrived = yield
            self._took(*arrived)
            taken = arrived[0]
        if departure is not None and ahead:
            self._ahead.append(departure)
        elif departure is not None and departure > rank.clock_s:
            rank.clock_s = departure
        return taken

    def fall_apart(self) -> None:
        """Drop all references to others, so that memory is free at once."""
        self.core.fall_apart()
        self.rank = self.comes = self._wake = self._sending = None
        self.others.clear()

    def departed(self):
        """Wait until all messages that were sent ahead have left."""
        ahead, self._ahead = self._ahead, []
        self.rank.clock_s = max(self.rank.clock_s, *ahead) if ahead else self.rank.clock_s
        return DONE
