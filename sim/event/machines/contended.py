"""Mechanics of ranks that share cores or ports with others: work, messages and waits are SimPy events."""

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
from sim.model.costs import WARMING
from sim.recording.traces import NOBODY, Activity


class Contended:
    """How one rank's work, messages and waits take time where others need the same cores and ports.

    Its parts: the cores of its host, how messages pass ports (`ports`), how it waits (`waits`), and work of other threads.
    The rank's clock is the world's whenever its text runs.
    """

    own_port = False
    quick = False  # other ranks may use the core between two works

    def __init__(self, rank):
        world, scenario = rank.world, rank.scenario
        self.rank, self.env, self.scenario = rank, world.env, scenario
        self.machine, self.cores, self.link, self.local = rank.machine, rank.machine.cores, world.link, world.local
        self.one_work_a_core = scenario.cores_suffice and not self.local.wakes
        gpu = scenario.gpus[rank.rank] if scenario.gpus_shared else None
        self.gpu = None if gpu is None else self.machine.shared_gpu(gpu.number)
        self.waits: Any = (Polling if scenario.cluster.poll_s else Woken)(self)
        self.others = OtherThreads(self)
        self.ports: Any = (Streams if world.link.fair else Ports)(self)
        self.inbox: Any = Shelf(self) if rank.layerwise and not rank.serves else Inbox()
        self._ahead: list[simpy.Event] = []
        self._posted: Any = None
        self._to: Any = None  # the ranks' mechanics, once all are there

    def join(self, everyone: list, alone: bool) -> None:
        """Take note of the mechanics of all ranks."""
        self._to = everyone

    def fall_apart(self) -> None:
        """Drop all references to others, so that memory is free at once."""
        self.rank = None
        self._to.clear()

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
        start_s = self.rank.clock_s
        yield from self._spend(seconds, activity == "compute")
        self.rank.applied_s += self.rank.clock_s - start_s
        self.rank.record(activity, start_s, samples, size_bytes, peer, version)

    def works(self, works):
        """One after another: (activity, seconds, samples, bytes); seconds may be known only when it begins."""
        for activity, seconds, samples, size_bytes in works:
            start_s = self.rank.clock_s
            yield from self._spend(seconds() if callable(seconds) else seconds, activity == "compute")
            self.rank.computed_s += self.rank.clock_s - start_s
            self.rank.record(activity, start_s, samples, size_bytes)
            if activity in WARMING:
                self.rank.warm()

    def work_on(self, parts_s: list[float], activity: str, samples=0, size_bytes=0, peer=NOBODY, version=None):
        """Do parts at once, each on a core of its own as long as there are free ones; seconds of a core for each part."""
        rank, start_s = self.rank, self.rank.clock_s
        who = rank.rank if len(parts_s) == 1 and not self.scenario.threaded else None
        works = [self.cores.work(seconds, who) for seconds in parts_s if seconds > ROUND_OFF_S]
        yield simpy.AllOf(self.env, works)
        rank.applied_s += rank.clock_s - start_s
        rank.record(activity, start_s, samples, size_bytes, peer, version)

    def spend(self, seconds: float, computing: bool = False):
        """Work for some seconds of a core, or of the rank's GPU where it computes on one; nothing is recorded."""
        start_s = self.rank.clock_s
        yield from self._spend(seconds, computing)
        self.rank.computed_s += self.rank.clock_s - start_s

    def _spend(self, seconds: float, computing: bool = False):
        if seconds > ROUND_OFF_S:
            if computing and self.gpu:
                yield self.gpu.work(seconds)
            elif self.one_work_a_core or (computing and self.machine.gpus):
                yield self.env.timeout(seconds / self.machine.speed)
            else:
                yield self.cores.work(seconds, self.rank.rank)

    def rest(self, seconds: float):
        """Sleep for some seconds."""
        yield self.env.timeout(seconds)
        self.rank.computed_s += seconds

    def rest_until(self, time_s: float):
        """Sleep until a time."""
        yield self.env.timeout(max(0.0, time_s - self.env.now))

    def begin_step(self, slept_s: float) -> None:
        """Begin the background work of this step, which other threads of the runtime do."""
        self.others.begin_step(self.scenario.costs.background(self.scenario.batch), slept_s)

    def come_together(self):
        """Wait at the barrier before a library's call; the ranks poll."""
        return self.waits.come_together()

    def at(self, time_s: float, call) -> None:
        """Call a function at a time."""
        self.after(max(0.0, time_s - self.env.now), call)

    def after(self, delay_s: float, call) -> None:
        """Call a function after some seconds."""
        self.env.timeout(delay_s).callbacks.append(lambda _: call())

    # ---- messages that leave

    def post(self, peer: int, message: Message):
        """Give one message to the link, at a core's expense; the event of its departure.

        If the receiver must ask for the message (rendezvous), a control message leaves now, and the message after the call is over.
        """
        to, departure = self._to[peer], None
        if to.machine is self.machine:
            return self.depart(to, message)
        if self.link.asks_for(message.size_bytes):
            departure = self.depart(to, message)
        yield from self._spend(len(message.sizes_bytes) * self.link.overhead_s)
        if departure is None:
            departure = self.depart(to, message)
        return self.env.timeout(0) if departure.processed else departure

    def depart(self, to: Contended, message: Message) -> simpy.Event:
        """Give one message to the link; the event of its departure."""
        here = to.machine is self.machine
        background_s = (self.local if here else self.link).background_s
        self.others.work(background_s)
        to.others.work(background_s)
        if not here:
            return self.ports.depart(to, message)
        message.departure = self.env.event()
        asleep_s = self.local.latency_s if self.cores.idle or not self.local.wakes else 0.0
        self.after(asleep_s, lambda: to.inbox.put(message))
        return message.departure

    def send_all(self, peers, letter):
        """Send a message to each of `peers`, made by letter(peer), in order; go on when all have left."""
        posts = [(peer, letter(peer)) for peer in peers]
        start_s, departures = self.rank.clock_s, []
        for peer, message in posts:
            departures.append((yield from self.post(peer, message)))
        for (peer, message), departure in zip(posts, departures, strict=True):
            yield from self.waits.until(departure)
            self.rank.record("send", start_s, 0, message.size_bytes, peer)
            start_s = self.rank.clock_s

    def post_all(self, peers, letter, record: bool = False, one: bool = False):
        """Send a message to each of `peers`, in order; go on at once.

        Args:
            letter: letter(peer) makes the message.
            record: whether to record them, when they have left.
            one: whether each waits until the one before has left.
        """
        rank = self.rank
        for peer in peers:
            message = letter(peer)
            if one and self._posted is not None and not self._posted.processed:
                start_s = rank.clock_s
                yield from self.waits.until(self._posted)
                rank.waited(start_s, rank.clock_s, peer)
            start_s = rank.clock_s
            departure = yield from self.post(peer, message)
            if one:
                self._posted = departure
            if record:
                self.record_left(departure, start_s, message, peer)

    def record_left(self, departure: simpy.Event, start_s: float, message: Message, peer: int) -> None:
        """Record a message when it has left."""
        rank = self.rank
        if rank.rows:
            about = (rank.rank, rank.step, "send", 0, message.size_bytes, peer, message.version)
            departure.callbacks.append(lambda _: rank.recorder.rows.append(Activity(start_s, self.env.now, *about)))

    # ---- messages that come

    def receive(self, frm, until_s: float = math.inf, variable: int | None = None):
        """The next message from one of `frm`."""
        if variable is not None:
            return (yield from self.inbox.parameters(variable))
        rank, peers, start_s = self.rank, (frm,) if isinstance(frm, int) else frm, self.rank.clock_s
        message = self.inbox.take(peers)
        self.waits.polled_s = start_s
        if message is None and until_s > start_s:
            message = yield from self.waits.until(self._awaited(peers, until_s))
        if message is None:
            if rank.clock_s > start_s:
                rank.waited(start_s, rank.clock_s)
            return None
        moving_s = rank.clock_s if message.begin_s is None else max(start_s, message.begin_s)
        if message.asked is not None:
            moving_s = rank.clock_s
            yield from self._spend(len(message.sizes_bytes) * self.link.overhead_s)
            self.ports.ask(message)
            yield from self.waits.until(message.landed)
        elif message.end_s is not None:
            if message.end_s > rank.clock_s:
                yield from self.waits.until(self.env.timeout(message.end_s - rank.clock_s))
            yield from self._spend(len(message.sizes_bytes) * self.link.overhead_s)
        else:
            local = self.local
            yield from self._spend(len(message.sizes_bytes) * local.overhead_s + local.occupancy_s(message.size_bytes))
            message.departure.succeed()
        rank.waited(min(moving_s, max(start_s, rank.idle_from_s)), moving_s, message.sender)
        rank.record("receive", moving_s, 0, message.size_bytes, message.sender)
        return message

    def _awaited(self, peers, until_s: float) -> simpy.Event:
        """An event whose value is the next message from one of `peers`, when its last byte is here; or None, at `until_s`."""
        awaited = self.env.event()

        def comes(message: Message) -> None:
            delay_s = 0.0 if message.end_s is None else max(0.0, message.end_s - self.env.now)
            if delay_s:
                self.after(delay_s, lambda: awaited.succeed(message))
            else:
                awaited.succeed(message)

        self.inbox.await_from(peers, comes)
        if until_s < math.inf:
            self.after(until_s - self.env.now, lambda: self.inbox.give_up(comes) and awaited.succeed())
        return awaited

    def gather(self, missing: set[int]):
        """Receive a gradient from each of `missing`, and add them up in order of arrival."""
        while missing:
            message = yield from self.receive(missing)
            missing.remove(message.sender)
            yield from self.rank.add(message)

    # ---- exchanges

    def swap(self, message: Message | None, to, source: int | None, ahead: bool):
        """Send a piece and receive one at the same time, either of which may be none; return the received one."""
        departure: Any = None
        taken = None
        if message is not None:
            start_s = self.rank.clock_s
            departure = yield from self.post(to, message)
            self.record_left(departure, start_s, message, to)
        if source is not None:
            taken = yield from self.receive({source})
        if departure is not None and ahead:
            self._ahead.append(departure)
        elif departure is not None:
            yield from self.waits.until(departure)
        return taken

    def departed(self):
        """Wait until all messages that were sent ahead have left."""
        leaving, self._ahead = [departure for departure in self._ahead if not departure.processed], []
        if leaving:
            yield from self.waits.until(simpy.AllOf(self.env, leaving))

    # ---- variables that travel one by one

    def ship(self, peer: int, version: int, number: int, samples: int = 0) -> None:
        """Have other threads send one variable's parameters or gradient, and go on."""
        rank, size_bytes = self.rank, self.rank.amounts.variable_bytes[number]
        message = Message(rank.rank, version, samples, (size_bytes,), size_bytes)
        message.variable = number
        departure, start_s = self.depart(self._to[peer], message), self.env.now
        if rank.rows:
            about = (rank.rank, version, "send", 0, size_bytes, peer, version)
            departure.callbacks.append(lambda _: rank.recorder.rows.append(Activity(start_s, self.env.now, *about)))

    def through_memory(self, number: int, call) -> None:
        """Copy a variable within the host; copies pass one after another."""
        _, end_s = self.machine.memory.take(
            self.env.now, self.local.occupancy_s(self.rank.amounts.variable_bytes[number])
        )
        self.after(end_s - self.env.now + self.local.latency_s, call)
