"""Mechanics of ranks whose cores are their own: work and messages are arithmetic on the rank's clock, arrivals are the only events."""

from __future__ import annotations

import math

from sim.costs import WARMING
from sim.event.message import Message
from sim.tcp import Connection
from sim.traces import NOBODY
from sim.verbs.book import CLOCK_S

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

    quick = True  # works that follow one another may be one
    own_port = True  # nobody else's messages leave by it

    def __init__(self, rank):
        world = rank.world
        self.rank, self.env, self.link, self.local = rank, world.env, world.link, world.local
        self.machine, self.speed = rank.machine, rank.machine.speed
        self.port = self.machine.egress
        self._inbox, self._peers, self._wake = (
            [],
            (),
            None,
        )  # what has come, from whom the next is waited for, and who goes on then
        self._overhead_s = self.link.overhead_s / self.speed
        self._latency_s, self._gap_s = self.link.latency_s, self.link.gap_s
        self._byte_s = 1 / self.link.bandwidth_bytes_per_s
        self._plain = not (self.link.sustained_bytes_per_s or self.link.tcp or self.link.store_and_forward)
        self._ahead, self._posted, self._connections = [], None, {}
        self._waits = rank.recorder.waits
        self._to = None  # the ranks' mechanics, once all are there

    # ---- work

    def work(self, activity: str, seconds: float, samples=0, size_bytes=0, peer=NOBODY, version=None):
        """Some seconds of a core."""
        rank = self.rank
        start_s = rank.clock_s
        if seconds > ROUND_OFF_S:
            rank.clock_s = start_s + seconds / self.speed
            rank.applied_s += seconds
        if rank.rows:
            rank.record(activity, start_s, samples, size_bytes, peer, version)
        return DONE

    def works(self, works):
        """One after another: (activity, seconds, samples, bytes); seconds may be known only when it begins."""
        rank = self.rank
        for activity, seconds, samples, size_bytes in works:
            start_s = rank.clock_s
            takes_s = seconds() if callable(seconds) else seconds
            if takes_s > ROUND_OFF_S:
                rank.clock_s = start_s + takes_s / self.speed
                rank.computed_s += takes_s
            if activity in WARMING:
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
            self.rank.computed_s += seconds
        return DONE

    def rest(self, seconds: float):
        """Asleep."""
        self.rank.clock_s += seconds
        self.rank.computed_s += seconds
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

    def sync(self, but_s: float = 0.0):
        """Wait until the world is where this rank is, but for so many seconds."""
        clock_s = self.rank.clock_s
        ahead_s = clock_s - but_s - self.env.now
        if ahead_s > 0:
            yield self.env.timeout(ahead_s)
            self.rank.clock_s = clock_s

    # ---- messages that leave

    def send_all(self, peers, letter):
        """A message to each of `peers`, in order; go on when all have left.

        Args:
            letter: letter(peer) makes the message.
        """
        rank, env, port, overhead_s = self.rank, self.env, self.port, self._overhead_s
        to, latency_s, rows, message, start_s = self._to, self._latency_s, rank.rows, None, rank.clock_s
        same = rank.serves and self._plain
        clock_s, left_s, last_s = rank.clock_s, [], -math.inf
        for peer in peers:
            if message is None or not same:  # a server sends the same to all
                message = letter(peer)
            clock_s += len(message.sizes_bytes) * overhead_s
            if self._plain:
                message.occupancy_s = occupancy_s = self._gap_s + message.size_bytes * self._byte_s
                begin_s = clock_s if clock_s > port.free_s else port.free_s
                port.free_s = leave_s = begin_s + occupancy_s
                self.machine.sent_s += occupancy_s
                env.timeout(begin_s + latency_s - env.now, message).callbacks.append(to[peer].reached)
            else:
                rank.clock_s = clock_s
                leave_s = self._leave_slowly(to[peer], message)
            last_s = leave_s if leave_s > last_s else last_s
            if rows:
                left_s.append((peer, leave_s, message.size_bytes))
        rank.clock_s = last_s if last_s > clock_s else clock_s
        if rows:
            self._record_sent(start_s, clock_s, left_s)
        return DONE

    def _record_sent(self, start_s: float, clock_s: float, left_s) -> None:
        rank = self.rank
        for peer, leave_s, size_bytes in left_s:
            clock_s = max(clock_s, leave_s)
            rank.recorder.row(start_s, clock_s, rank.rank, rank.step, "send", 0, size_bytes, peer, rank.version)
            start_s = clock_s

    def post_all(self, peers, letter, record: bool = False, one: bool = False):
        """A message to each of `peers`, in order; go on at once.

        Args:
            letter: letter(peer) makes the message.
            record: when they have left.
            one: the one before must have left.
        """
        rank = self.rank
        for peer in peers:
            if one and self._posted is not None and self._posted > rank.clock_s:
                start_s, rank.clock_s = rank.clock_s, self._posted
                rank.waited(start_s, rank.clock_s, peer)
            start_s, message = rank.clock_s, letter(peer)
            departure = self.post(peer, message)
            if one:
                self._posted = departure
            if record and rank.rows:
                self._record_left(start_s, departure, message, peer)
        return DONE

    def post(self, peer: int, message: Message) -> float:
        """Give one message to another host, at a core's expense; when it has left, seconds."""
        rank, port = self.rank, self.port
        rank.clock_s = now_s = rank.clock_s + len(message.sizes_bytes) * self._overhead_s
        if not self._plain:
            return self._leave_slowly(self._to[peer], message)
        message.occupancy_s = occupancy_s = self._gap_s + message.size_bytes * self._byte_s
        begin_s = now_s if now_s > port.free_s else port.free_s
        port.free_s = leave_s = begin_s + occupancy_s
        self.machine.sent_s += occupancy_s
        env = self.env
        env.timeout(begin_s + self._latency_s - env.now, message).callbacks.append(self._to[peer].reached)
        return leave_s

    def _leave_slowly(self, to: Free, message: Message) -> float:
        """Through a port that earns credit, within TCP's window, or whole before it goes on; when it has left."""
        link, env = self.link, self.env
        message.occupancy_s, message.credit_s = link.occupancy_s(message.size_bytes), link.credit_s(message.size_bytes)
        self.machine.sent_s += message.occupancy_s
        begin_s, leave_s = self.port.take(self.rank.clock_s, message.occupancy_s, message.credit_s)
        if link.tcp:
            message.held_s = max(0.0, self._connection(to.rank.rank).send(begin_s, message.size_bytes) - leave_s)
            leave_s += message.held_s
        at_s = leave_s if link.store_and_forward else begin_s
        env.timeout(at_s + self._latency_s - env.now, message).callbacks.append(to.reached)
        return leave_s

    def _connection(self, peer: int) -> Connection:
        link = self.link
        if peer not in self._connections:
            self._connections[peer] = Connection(link.tcp, link.latency_s, link.bandwidth_bytes_per_s)
        return self._connections[peer]

    def _record_left(self, start_s: float, departure: float, message: Message, peer: int) -> None:
        rank = self.rank
        rank.recorder.row(
            start_s, departure, rank.rank, rank.step, "send", 0, message.size_bytes, peer, message.version
        )

    # ---- messages that come

    def reached(self, event) -> None:
        """A message from another host begins to pass this machine's port."""
        message, machine = event.value, self.machine
        port, occupancy_s = machine.ingress, message.occupancy_s
        machine.received_s += occupancy_s
        if self._plain:
            now_s = self.env.now
            begin_s = now_s if now_s > port.free_s else port.free_s
            port.free_s = end_s = begin_s + occupancy_s
        else:
            begin_s, end_s = port.take(self.env.now, occupancy_s, message.credit_s)
            end_s += message.held_s
        wake = self._wake
        if wake is not None and message.sender in self._peers:
            self._wake = None
            wake((message, begin_s, end_s))
        else:
            self._inbox.append((message, begin_s, end_s))

    def put(self, message: Message, begin_s: float, end_s: float | None) -> None:
        """A message is here: it is for who waits for it, or lies here.

        Args:
            begin_s, end_s: when its bytes move; no end within a host, where the receiver copies.
        """
        wake = self._wake
        if wake is not None and message.sender in self._peers:
            self._wake = None
            wake((message, begin_s, end_s))
        else:
            self._inbox.append((message, begin_s, end_s))

    def take(self, peers):
        """The first message from one of `peers` that lies here, and when its bytes move."""
        for index, arrived in enumerate(self._inbox):
            if arrived[0].sender in peers:
                return self._inbox.pop(index)
        return None

    def receive(self, frm, until_s: float = math.inf, variable=None):
        """The next message from one of `frm`."""
        rank, peers = self.rank, (frm,) if isinstance(frm, int) else frm
        if until_s < math.inf:
            return (yield from self._receive_until(peers, until_s))
        arrived = self.take(peers) if self._inbox else None
        start_s = rank.clock_s
        if arrived is None:
            self._peers, self._wake = peers, rank.thread.go
            arrived = yield
        self._took(arrived, start_s)
        return arrived[0]

    def _receive_until(self, peers, until_s: float):
        """The same, if it begins to come by then: what has come by now matters, so the world catches up first.

        What comes at this very moment has not come yet.
        """
        yield from self.sync(CLOCK_S)
        rank = self.rank
        start_s, arrived = rank.clock_s, self.take(peers)
        if arrived is None and until_s <= start_s:
            return None
        if arrived is None:
            wake = rank.thread.go
            self._peers, self._wake = peers, wake
            self.at(until_s, lambda: self._give_up(wake))
            arrived = yield
        if arrived is None:
            rank.clock_s = max(start_s, self.env.now)
            rank.waited(start_s, rank.clock_s)
            return None
        self._took(arrived, start_s)
        return arrived[0]

    def _give_up(self, wake) -> None:
        if self._wake is wake:
            self._wake = None
            wake()

    def _took(self, arrived, start_s: float) -> None:
        """The bytes of a message move, and a core takes them."""
        message, begin_s, end_s = arrived
        rank = self.rank
        moving_s = begin_s if begin_s > start_s else start_s
        if end_s is None:
            self._copy(message, moving_s)
        else:
            rank.clock_s = (end_s if end_s > start_s else start_s) + len(message.sizes_bytes) * self._overhead_s
        idle_s = rank.idle_from_s if rank.idle_from_s > start_s else start_s
        if moving_s > idle_s:
            self._waits.append((rank.rank, idle_s, moving_s))
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

    def gather(self, missing: set[int]):
        """A gradient from each of `missing`, added up in order of arrival."""
        rank, go = self.rank, self.rank.thread.go
        while missing:
            start_s, arrived = rank.clock_s, self.take(missing) if self._inbox else None
            if arrived is None:
                self._peers, self._wake = missing, go
                arrived = yield
            self._took(arrived, start_s)
            missing.remove(arrived[0].sender)
            rank.add(arrived[0])

    # ---- exchanges

    def swap(self, message: Message | None, to: int | None, source: int | None, ahead: bool):
        """Hand one over, if any, while taking one, if any, which is returned."""
        rank, departure, taken = self.rank, None, None
        if message is not None:
            start_s = rank.clock_s
            departure = self.post(to, message)
            if rank.rows:
                self._record_left(start_s, departure, message, to)
        if source is not None:
            start_s, arrived = rank.clock_s, self.take((source,)) if self._inbox else None
            if arrived is None:
                self._peers, self._wake = (source,), rank.thread.go
                arrived = yield
            self._took(arrived, start_s)
            taken = arrived[0]
        if departure is not None and ahead:
            self._ahead.append(departure)
        elif departure is not None and departure > rank.clock_s:
            rank.clock_s = departure
        return taken

    def departed(self):
        """Until all that was handed over ahead has left."""
        ahead, self._ahead = self._ahead, []
        self.rank.clock_s = max(self.rank.clock_s, *ahead) if ahead else self.rank.clock_s
        return DONE


class Crowded(Free):
    """The same where other ranks are on the host: they take turns at its port, and a message to one of them is copied by it."""

    own_port = False

    def post_now(self, peer: int, message: Message):
        """Give one message to the link; when it has left: seconds, or Copied."""
        to = self._to[peer]
        if to.machine is self.machine:
            message.departure = Copied()
            self.at(self.rank.clock_s + self.local.latency_s, lambda: to.put(message, to.env.now, None))
            return message.departure
        self.rank.clock_s += len(message.sizes_bytes) * self._overhead_s
        yield from self.sync()
        self.rank.clock_s -= len(message.sizes_bytes) * self._overhead_s
        return self.post(peer, message)

    def send_all(self, peers, letter):
        """A message to each of `peers`, in order; go on when all have left."""
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
        """A message to each of `peers`, in order; go on at once."""
        rank = self.rank
        for peer in peers:
            if one and self._posted is not None:
                start_s = rank.clock_s
                yield from self.until(self._posted)
                if rank.clock_s > start_s:
                    rank.waited(start_s, rank.clock_s, peer)
            start_s, message = rank.clock_s, letter(peer)
            departure = yield from self.post_now(peer, message)
            if one:
                self._posted = departure
            if record and rank.rows:
                self._record_left(start_s, departure, message, peer)

    def _record_left(self, start_s: float, departure, message: Message, peer: int) -> None:
        if type(departure) is not Copied:
            super()._record_left(start_s, departure, message, peer)
            return
        rank = self.rank
        about = (rank.rank, rank.step, "send", 0, message.size_bytes, peer, message.version)
        departure.calls.append(lambda time_s: rank.recorder.row(start_s, time_s, *about))

    def until(self, departure):
        """Until a message has left."""
        if type(departure) is not Copied:
            departure = max(departure, self.rank.clock_s)
        elif departure.time_s is None:
            go = self.rank.thread.go
            departure.calls.append(lambda _: go())
            yield
        self.rank.clock_s = max(self.rank.clock_s, departure.time_s if type(departure) is Copied else departure)

    def swap(self, message: Message | None, to: int | None, source: int | None, ahead: bool):
        """Hand one over, if any, while taking one, if any, which is returned."""
        rank, departure, taken = self.rank, None, None
        if message is not None:
            start_s = rank.clock_s
            departure = yield from self.post_now(to, message)
            if rank.rows:
                self._record_left(start_s, departure, message, to)
        if source is not None:
            taken = yield from self.receive(source)
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
