"""How one rank's work, messages and waits take time: all of them are events."""

from __future__ import annotations

import math
from typing import Any

import simpy

from sim.event.machines.cores import ROUND_OFF_S
from sim.event.machines.other_threads import OtherThreads
from sim.event.machines.polling import Polling, Woken
from sim.event.machines.streams import Ports, Streams
from sim.event.ranks.message import Inbox, Message
from sim.event.ranks.shelf import Shelf
from sim.model.costs import WARMING, side_by_side
from sim.recording.traces import NOBODY
from sim.verbs.book import CLOCK_S


class Mechanics:
    """The mechanics of one rank, whose text's verbs take time by them.

    Its parts: the cores of its host, how messages pass ports (`ports`), how it waits (`waits`), and work of other threads.

    Args:
        rank: sim.event.ranks.rank.Rank.
    """

    def __init__(self, rank):
        world, self.scenario = rank.world, rank.world.scenario
        self.rank, self.env, self.machine = rank, world.env, rank.machine
        self.link, self.local = world.link, world.local
        self.one_work_a_core = self.scenario.cores_suffice and not self.local.wakes
        gpu = self.scenario.gpus[rank.rank] if self.scenario.gpus_shared else None
        self.gpu = None if gpu is None else self.machine.shared_gpu(gpu.number)
        self.waits: Any = (Polling if self.scenario.cluster.poll_s else Woken)(self)
        self.others: Any = OtherThreads(self)
        self.ports: Any = (Streams if self.link.fair else Ports)(self)
        self.inbox: Any = Shelf(self) if rank.layerwise and not rank.serves else Inbox()
        self.everyone: list[Any] = []  # the mechanics of all ranks, once all are there
        self._ahead: list[simpy.Event] = []  # departures of messages that were sent ahead
        self._posted: Any = None  # the departure of the last message after which the next may leave

    @property
    def cores(self):
        """The cores of its host."""
        return self.machine.cores

    def join(self, everyone: list) -> None:
        """Take note of the mechanics of all ranks."""
        self.everyone = everyone

    def fall_apart(self) -> None:
        """Drop all references to others, so that memory is free at once."""
        self.rank = self.inbox = self.ports = self.waits = self.others = None
        self.everyone.clear()

    def end(self) -> None:
        """The rank's text has ended: what nobody takes leaves its sender all the same, as at the end of a real run."""
        self.inbox.end(self._leave)

    def _leave(self, message: Message) -> None:
        if message.asked is not None:
            self.ports.ask(message)
        elif message.departure is not None:
            message.departure.succeed()

    # ---- work

    def work(self, activity: str, seconds: float, samples=0, size_bytes=0, peer=NOBODY, version=None):
        """Work for some seconds of a core."""
        rank, start_s = self.rank, self.rank.clock_s
        yield from self._spend(seconds, activity == "compute")
        rank.applied_s += rank.clock_s - start_s
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

    def work_on(self, parts_s: list[float], activity: str, samples=0, size_bytes=0, peer=NOBODY, version=None):
        """Do parts at once, each on a core of its own as long as there are free ones; seconds of a core for each part."""
        if self.one_work_a_core:
            seconds = side_by_side(parts_s, self.machine.count)
            return self.work(activity, seconds, samples, size_bytes, peer, version)
        return self._work_on(parts_s, activity, samples, size_bytes, peer, version)

    def _work_on(self, parts_s: list[float], activity: str, *about):
        rank, start_s = self.rank, self.rank.clock_s
        who = rank.rank if len(parts_s) == 1 and not self.scenario.threaded else None
        yield simpy.AllOf(self.env, [self.cores.work(seconds, who) for seconds in parts_s if seconds > ROUND_OFF_S])
        rank.applied_s += rank.clock_s - start_s
        rank.record(activity, start_s, *about)

    def spend(self, seconds: float, computing: bool = False):
        """Work for some seconds of a core, or of the rank's GPU where it computes on one; nothing is recorded."""
        rank, start_s = self.rank, self.rank.clock_s
        yield from self._spend(seconds, computing)
        rank.computed_s += rank.clock_s - start_s

    def spend_until(self, seconds: float, most: int, deadline_s: float):
        """Compute for so many seconds at least once, and again while there is time; how often, at most `most` times."""
        rank, start_s, done, end_s = self.rank, self.rank.clock_s, 0, self.rank.clock_s
        is_alone = not self.gpu and (self.one_work_a_core or self.machine.gpus)
        while done < most and (done == 0 or deadline_s - end_s > CLOCK_S):
            done += 1
            if not is_alone:
                yield from self._spend(seconds, computing=True)
                end_s = rank.clock_s
            elif seconds > ROUND_OFF_S:
                end_s += seconds / self.machine.speed
        if end_s > rank.clock_s:
            self.env.call(end_s, rank.thread.go)
            yield
        rank.computed_s += rank.clock_s - start_s
        return done

    def _spend(self, seconds: float, computing: bool = False):
        if seconds > ROUND_OFF_S:
            if computing and self.gpu:
                yield self.gpu.work(seconds)
            elif self.one_work_a_core or (computing and self.machine.gpus):
                self.env.after(seconds / self.machine.speed, self.rank.thread.go)
                yield
            else:
                yield self.cores.work(seconds, self.rank.rank)

    def begin_step(self, slept_s: float) -> None:
        """Begin the background work of this step, which other threads of the runtime do."""
        self.others.begin_step(self.scenario.costs.background(self.scenario.batch), slept_s)

    def come_together(self):
        """Wait at the barrier before a library's call; the ranks poll."""
        return self.waits.come_together()

    def rest(self, seconds: float):
        """Let some seconds pass."""
        self.env.after(seconds, self.rank.thread.go)
        yield

    # ---- messages that leave

    def send_all(self, peers, letter):
        """Send a message to each of `peers`, made by letter(peer), in order; go on when all have left."""
        rank, start_s, left = self.rank, self.rank.clock_s, []
        for peer, message in [(peer, letter(peer)) for peer in peers]:
            left.append((peer, message, (yield from self.post(peer, message))))
        for peer, message, departure in left:
            yield from self.waits.until(departure)
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
                start_s = rank.clock_s
                yield from self.waits.until(self._posted)
                if rank.clock_s > start_s:
                    rank.waited(start_s, rank.clock_s, peer)
            if one and not self.link.fair:  # on a fair link a long one is asked for
                message.departure = self.env.event()
            start_s = rank.clock_s
            departure = yield from self.post(peer, message)
            if one:
                self._posted = departure
            if record:
                self.record_left(departure, start_s, message, peer)

    def post(self, peer: int, message: Message):
        """Give one message to the link, at a core's expense; the event of its departure.

        If the receiver must ask for the message (rendezvous), a control message leaves now, and the message after the call is over.
        """
        to, departure = self.everyone[peer], None
        if to.machine is self.machine:
            return self.depart(to, message)
        if self.link.asks_for(message.size_bytes):
            departure = self.depart(to, message)
        yield from self._spend(len(message.sizes_bytes) * self.link.overhead_s)
        if departure is None:
            departure = self.depart(to, message)
        return self.env.timeout(0) if departure.processed else departure

    def depart(self, to: Mechanics, message: Message) -> simpy.Event:
        """Give one message to the link; the event of its departure."""
        here = to.machine is self.machine
        background_s = (self.local if here else self.link).background_s
        self.others.work(background_s)
        to.others.work(background_s)
        if not here:
            return self.ports.depart(to, message)
        message.departure = self.env.event()
        asleep_s = self.local.latency_s if not self.local.wakes or self.cores.idle else 0.0
        self.env.after(asleep_s, to.inbox.put, message)
        return message.departure

    def departed(self):
        """Wait until all messages that were sent ahead have left."""
        leaving, self._ahead = [departure for departure in self._ahead if not departure.processed], []
        if leaving:
            yield from self.waits.until(simpy.AllOf(self.env, leaving))

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
            yield from self.waits.until(departure)
        return taken

    def record_left(self, departure: simpy.Event, start_s: float, message: Message, peer: int, step=None) -> None:
        """Record a message when it has left; it is of this step of the rank, or of another."""
        rank = self.rank
        if rank.rows:
            step = rank.step if step is None else step
            about = (rank.rank, step, "send", 0, message.size_bytes, peer, message.version)
            departure.callbacks.append(lambda _: rank.recorder.row(start_s, self.env.now, *about))

    # ---- messages that come

    def receive(self, frm, until_s: float = math.inf, variable: int | None = None):
        """The next message from one of `frm`, if it begins to come by a time."""
        if variable is not None:
            return (yield from self.inbox.parameters(variable))
        rank, peers, start_s = self.rank, (frm,) if isinstance(frm, int) else frm, self.rank.clock_s
        message = self.inbox.take(peers)
        self.waits.polled_s = start_s
        if message is None and until_s > start_s:
            message = yield from self.waits.until(self._awaited(peers, until_s))
        if message is not None:
            moves = message.asked is None and message.begin_s is not None
            moving_s = max(start_s, message.begin_s) if moves else rank.clock_s
            yield from self._take(message)
            rank.waited(min(moving_s, max(start_s, rank.idle_from_s)), moving_s, message.sender)
            rank.record("receive", moving_s, 0, message.size_bytes, message.sender)
        elif rank.clock_s > start_s:
            rank.waited(start_s, rank.clock_s)
        return message

    def _take(self, message: Message):
        """The bytes of a message move, once they are asked for, and a core takes them; within a host the core copies them."""
        local, overhead_s = self.local, len(message.sizes_bytes) * self.link.overhead_s
        if message.asked is not None:
            yield from self._spend(overhead_s)
            self.ports.ask(message)
            yield from self.waits.until(message.landed)
        elif message.end_s is not None:
            if message.end_s > self.env.now:
                yield from self.waits.until(self.env.timeout(message.end_s - self.env.now))
            yield from self._spend(overhead_s)
        else:
            yield from self._spend(len(message.sizes_bytes) * local.overhead_s + local.occupancy_s(message.size_bytes))
        if message.departure is not None:
            message.departure.succeed()

    def _awaited(self, peers, until_s: float) -> simpy.Event:
        """An event whose value is the next message from one of `peers`, when its last byte is here; or None, at `until_s`."""
        awaited, env = self.env.event(), self.env

        def comes(message: Message) -> None:
            delay_s = 0.0 if message.end_s is None else max(0.0, message.end_s - env.now)
            if delay_s:
                env.after(delay_s, awaited.succeed, message)
            else:
                awaited.succeed(message)

        self.inbox.await_from(peers, comes)
        if until_s < math.inf:
            env.after(until_s - env.now, lambda _: self.inbox.give_up(comes) and awaited.succeed())
        return awaited

    # ---- variables that travel one by one

    def ship(self, peer: int, version: int, number: int, samples: int = 0) -> None:
        """Have other threads send one variable's parameters or gradient, and go on."""
        rank, size_bytes = self.rank, self.rank.amounts.variable_bytes[number]
        message = Message(rank.rank, version, samples, (size_bytes,), size_bytes)
        message.variable = number
        departure = self.depart(self.everyone[peer], message)
        self.record_left(departure, self.env.now, message, peer, version)

    def through_memory(self, number: int, call) -> None:
        """Copy a variable within the host; copies pass one after another. Then call call(None)."""
        _, end_s = self.machine.memory.take(
            self.env.now, self.local.occupancy_s(self.rank.amounts.variable_bytes[number])
        )
        self.env.after(end_s - self.env.now + self.local.latency_s, call)
