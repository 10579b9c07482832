"""Mechanics of ranks whose cores are their own: work and messages are arithmetic on the rank's clock, arrivals are the only events."""

from __future__ import annotations

import math

from sim.event.message import Inbox, Message
from sim.tcp import Connection
from sim.traces import NOBODY, Activity

ROUND_OFF_S = 1e-12
DONE = ()


class Copied:
    """The departure of a message within a host: when its receiver has copied it."""

    __slots__ = ("calls", "time_s")

    def __init__(self):
        self.time_s, self.calls = None, []

    def fire(self, time_s: float) -> None:
        """It has been copied."""
        self.time_s = time_s
        for call in self.calls:
            call(time_s)


class Free:
    """How one rank's work, messages and waits take time where nothing that ranks share makes its work longer.

    A rank's text runs ahead on its own clock. Messages queue at the ports of hosts in the order in which they come there: a receiver's
    port takes them at events; a sender's port that is the rank's own needs none, and one that ranks share is come to in turn.
    """

    def __init__(self, rank):
        world = rank.world
        self.rank, self.env, self.link, self.local = rank, world.env, world.link, world.local
        self.machine, self.speed = rank.machine, rank.machine.speed
        self.inbox, self.shared_port = Inbox(), rank.machine.ranks > 1
        self._overhead_s = self.link.overhead_s / self.speed
        self._latency_s, self._gap_s = self.link.latency_s, self.link.gap_s
        self._byte_s = 1 / self.link.bandwidth_bytes_per_s
        self._plain = not (self.link.sustained_bytes_per_s or self.link.tcp or self.link.store_and_forward)
        self._ahead, self._posted, self._connections = [], None, {}
        self._to = None  # the ranks' mechanics, once all are there

    # ---- work

    def work(self, activity: str, seconds: float, samples=0, size_bytes=0, peer=NOBODY, version=None):
        """Some seconds of a core."""
        rank = self.rank
        start_s = rank.clock_s
        if seconds > ROUND_OFF_S:
            rank.clock_s = start_s + seconds / self.speed
        if rank.rows:
            rank.record(activity, start_s, samples, size_bytes, peer, version)
        return DONE

    def works(self, works):
        """One after another: (activity, seconds, samples, bytes); seconds may be known only when it begins."""
        rank = self.rank
        for activity, seconds, samples, size_bytes in works:
            start_s = rank.clock_s
            if callable(seconds):
                seconds = seconds()
            if seconds > ROUND_OFF_S:
                rank.clock_s = start_s + seconds / self.speed
            if activity == "compute":
                rank.warm()
            if rank.rows:
                rank.record(activity, start_s, samples, size_bytes)
        return DONE

    def work_on(self, parts_s: list[float], activity: str, samples=0, size_bytes=0, peer=NOBODY, version=None):
        """Parts that would each take a core; here there is one."""
        return self.work(activity, parts_s[0], samples, size_bytes, peer, version)

    def spend(self, seconds: float, computing: bool = False):
        """Seconds of a core, of which nothing is recorded."""
        if seconds > ROUND_OFF_S:
            self.rank.clock_s += seconds / self.speed
        return DONE

    def rest(self, seconds: float):
        """Asleep."""
        self.rank.clock_s += seconds
        return DONE

    def rest_until(self, time_s: float):
        """Asleep until then; whoever shares the rank's clock is at rest too."""
        self.rank.clock_s = max(self.rank.clock_s, time_s)
        return DONE

    def begin_step(self, slept_s: float) -> None:
        """No other threads work beside."""

    def come_together(self):
        """Ranks that wait are woken at once."""
        return DONE

    def at(self, time_s: float, call) -> None:
        """Call then."""
        self.env.timeout(max(0.0, time_s - self.env.now)).callbacks.append(lambda _: call())

    def sync(self):
        """Wait until the world is where this rank is."""
        ahead_s = self.rank.clock_s - self.env.now
        if ahead_s > 0:
            yield self.env.timeout(ahead_s)

    # ---- messages that leave

    def post(self, peer: int, message: Message):
        """Give one message to the link, at a core's expense; when it has left: seconds, or Copied."""
        to = self._to[peer]
        if to.machine is self.machine:
            return self._hand_over(to, message)
        self.rank.clock_s += len(message.sizes_bytes) * self._overhead_s
        if self.shared_port:
            yield from self.sync()
        return self._leave(to, message)

    def _leave(self, to: Free, message: Message) -> float:
        now_s, port = self.rank.clock_s, self.machine.egress
        message.occupancy_s = occupancy_s = self._gap_s + message.size_bytes * self._byte_s
        if self._plain:
            begin_s = now_s if now_s > port.free_s else port.free_s
            port.free_s = leave_s = begin_s + occupancy_s
            at_s = begin_s
        else:
            begin_s, leave_s, at_s = self._leave_slowly(to, message, now_s, occupancy_s)
        env = self.env
        env.timeout(at_s + self._latency_s - env.now, message).callbacks.append(to.reached)
        return leave_s

    def _leave_slowly(self, to: Free, message: Message, now_s: float, occupancy_s: float) -> tuple[float, float, float]:
        """Through a port that earns credit, within TCP's window, or whole before it goes on."""
        link = self.link
        message.credit_s = link.credit_s(message.size_bytes)
        begin_s, leave_s = self.machine.egress.take(now_s, occupancy_s, message.credit_s)
        if link.tcp:
            message.held_s = max(0.0, self._connection(to.rank.rank).send(begin_s, message.size_bytes) - leave_s)
            leave_s += message.held_s
        return begin_s, leave_s, leave_s if link.store_and_forward else begin_s

    def _connection(self, peer: int) -> Connection:
        link = self.link
        if peer not in self._connections:
            self._connections[peer] = Connection(link.tcp, link.latency_s, link.bandwidth_bytes_per_s)
        return self._connections[peer]

    def _hand_over(self, to: Free, message: Message) -> Copied:
        """To a rank of this host, which copies it."""
        message.departure = Copied()
        self.at(self.rank.clock_s + self.local.latency_s, lambda: to.handed(message))
        return message.departure

    def send_all(self, posts: list[tuple[int, Message]]):
        """Messages, in order; go on when all have left."""
        rank, start_s, departures = self.rank, self.rank.clock_s, []
        for peer, message in posts:
            departures.append((yield from self.post(peer, message)))
        for (peer, message), departure in zip(posts, departures, strict=True):
            yield from self.until(departure)
            if rank.rows:
                rank.record("send", start_s, 0, message.size_bytes, peer)
            start_s = rank.clock_s

    def post_all(self, posts: list[tuple[int, Message]], record: bool = False, one: bool = False):
        """Messages, in order; go on at once.

        Args:
            record: when they have left.
            one: the one before must have left.
        """
        rank = self.rank
        for peer, message in posts:
            if one and self._posted is not None:
                start_s = rank.clock_s
                yield from self.until(self._posted)
                if rank.clock_s > start_s:
                    rank.waited(start_s, rank.clock_s, peer)
            start_s = rank.clock_s
            departure = yield from self.post(peer, message)
            if one:
                self._posted = departure
            if record and rank.rows:
                self._record_left(start_s, departure, message, peer)

    def _record_left(self, start_s: float, departure, message: Message, peer: int) -> None:
        rank = self.rank
        about = (rank.rank, rank.step, "send", 0, message.size_bytes, peer, message.version)
        if type(departure) is Copied:
            departure.calls.append(lambda time_s: rank.recorder.rows.append(Activity(start_s, time_s, *about)))
        else:
            rank.recorder.rows.append(Activity(start_s, departure, *about))

    def until(self, departure):
        """Until a message has left."""
        rank = self.rank
        if type(departure) is Copied:
            return self._until_copied(departure)
        if departure > rank.clock_s:
            rank.clock_s = departure
        return DONE

    def _until_copied(self, departure: Copied):
        if departure.time_s is None:
            go = self.rank.thread.go
            departure.calls.append(lambda _: go())
            yield
        self.rank.clock_s = max(self.rank.clock_s, departure.time_s)

    # ---- messages that come

    def reached(self, event) -> None:
        """A message from another host begins to pass this machine's port."""
        message, port = event.value, self.machine.ingress
        if self._plain:
            now_s = self.env.now
            message.begin_s = begin_s = now_s if now_s > port.free_s else port.free_s
            message.end_s = port.free_s = begin_s + message.occupancy_s
        else:
            message.begin_s, end_s = port.take(self.env.now, message.occupancy_s, message.credit_s)
            message.end_s = end_s + message.held_s
        self.inbox.put(message)

    def handed(self, message: Message) -> None:
        """A message from a rank of this host is here."""
        message.begin_s = self.env.now
        self.inbox.put(message)

    def receive(self, frm, until_s: float = math.inf, variable=None):
        """The next message from one of `frm`."""
        rank, peers = self.rank, (frm,) if isinstance(frm, int) else frm
        if until_s < math.inf:  # it matters what has come by now
            yield from self.sync()
        start_s = rank.clock_s
        message = self.inbox.take(peers)
        if message is None:
            if until_s <= start_s:
                return None
            wake = rank.thread.go
            self.inbox.await_from(peers, wake)
            if until_s < math.inf:
                self.at(until_s, lambda: self.inbox.give_up(wake) and wake())
            message = yield
            if message is None:
                rank.clock_s = max(start_s, self.env.now)
                rank.waited(start_s, rank.clock_s)
                return None
        self._took(message, start_s)
        return message

    def _took(self, message: Message, start_s: float) -> None:
        """The bytes of a message move, and a core takes them."""
        rank, end_s = self.rank, message.end_s
        moving_s = message.begin_s if message.begin_s > start_s else start_s
        if end_s is not None:
            rank.clock_s = (end_s if end_s > start_s else start_s) + len(message.sizes_bytes) * self._overhead_s
        else:
            local = self.local
            seconds = len(message.sizes_bytes) * local.overhead_s + local.occupancy_s(message.size_bytes)
            rank.clock_s = moving_s + seconds / self.speed
            message.departure.fire(rank.clock_s)
        idle_s = rank.idle_from_s if rank.idle_from_s > start_s else start_s
        if moving_s > idle_s:
            rank.recorder.wait(rank.rank, idle_s, moving_s)
        if rank.rows:
            row, step, version = rank.recorder.row, rank.step, rank.version
            row(min(moving_s, idle_s), moving_s, rank.rank, step, "wait", 0, 0, message.sender, version)
            row(moving_s, rank.clock_s, rank.rank, step, "receive", 0, message.size_bytes, message.sender, version)

    def gather(self, missing: set[int]):
        """A gradient from each of `missing`, added up in order of arrival."""
        rank, inbox, go = self.rank, self.inbox, self.rank.thread.go
        while missing:
            start_s = rank.clock_s
            message = inbox.take(missing)
            if message is None:
                inbox.await_from(missing, go)
                message = yield
            missing.remove(message.sender)
            self._took(message, start_s)
            rank.add(message)

    # ---- exchanges

    def swap(self, message: Message | None, to: int | None, source: int | None, ahead: bool):
        """Hand one over, if any, while taking one, if any, which is returned."""
        rank, departure, taken = self.rank, None, None
        if message is not None:
            start_s = rank.clock_s
            departure = yield from self.post(to, message)
            if rank.rows:
                self._record_left(start_s, departure, message, to)
        if source is not None:
            start_s = rank.clock_s
            taken = self.inbox.take((source,))
            if taken is None:
                self.inbox.await_from((source,), rank.thread.go)
                taken = yield
            self._took(taken, start_s)
        if departure is not None and ahead:
            self._ahead.append(departure)
        elif departure is not None:
            yield from self.until(departure)
        return taken

    def departed(self):
        """Until all that was handed over ahead has left."""
        ahead, self._ahead = self._ahead, []
        for departure in ahead:
            yield from self.until(departure)
