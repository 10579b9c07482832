"""Mechanics of ranks that share cores or ports with others: work, messages and waits are SimPy events."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import simpy

from sim.event.machines.cores import ROUND_OFF_S
from sim.event.machines.mechanics import Mechanics
from sim.event.machines.other_threads import OtherThreads
from sim.event.machines.polling import Polling, Woken
from sim.event.machines.streams import Ports, Streams
from sim.event.ranks.message import Message
from sim.event.ranks.shelf import Shelf
from sim.recording.traces import NOBODY


class Contended(Mechanics):
    """How one rank's work, messages and waits take time where others need the same cores and ports.

    Its parts: the cores of its host, how messages pass ports (`ports`), how it waits (`waits`), and work of other threads.
    The rank's clock is the world's whenever its text runs.
    """

    def __init__(self, rank):
        super().__init__(rank)
        world, scenario = rank.world, rank.scenario
        self.scenario, self.cores = scenario, rank.machine.cores
        self.one_work_a_core = scenario.cores_suffice and not self.local.wakes
        gpu = scenario.gpus[rank.rank] if scenario.gpus_shared else None
        self.gpu = None if gpu is None else self.machine.shared_gpu(gpu.number)
        self.waits: Any = (Polling if scenario.cluster.poll_s else Woken)(self)
        self.others = OtherThreads(self)
        self.ports: Any = (Streams if world.link.fair else Ports)(self)
        if rank.layerwise and not rank.serves:
            self.inbox = Shelf(self)

    def _leave(self, message: Message) -> None:
        if message.asked is not None:
            self.ports.ask(message)
        elif message.departure is not None:
            message.departure.succeed()

    # ---- work

    def work_on(self, parts_s: list[float], activity: str, samples=0, size_bytes=0, peer=NOBODY, version=None):
        """Do parts at once, each on a core of its own as long as there are free ones; seconds of a core for each part."""
        rank, start_s = self.rank, self.rank.clock_s
        who = rank.rank if len(parts_s) == 1 and not self.scenario.threaded else None
        works = [self.cores.work(seconds, who) for seconds in parts_s if seconds > ROUND_OFF_S]
        yield simpy.AllOf(self.env, works)
        rank.applied_s += rank.clock_s - start_s
        rank.record(activity, start_s, samples, size_bytes, peer, version)

    def _spend(self, seconds: float, computing: bool = False):
        if seconds > ROUND_OFF_S:
            if computing and self.gpu:
                yield self.gpu.work(seconds)
            elif self.one_work_a_core or (computing and self.machine.gpus):
                yield self.env.timeout(seconds / self.machine.speed)
            else:
                yield self.cores.work(seconds, self.rank.rank)

    def _busy_s(self, seconds: float, start_s: float) -> float:
        return self.rank.clock_s - start_s

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
        to, departure = self.everyone[peer], None
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
        message.departure = self._departure()
        asleep_s = self.local.latency_s if self.cores.idle or not self.local.wakes else 0.0
        self.after(asleep_s, lambda: to.inbox.put(message))
        return message.departure

    def _departure(self) -> simpy.Event:
        return self.env.event()

    def when_left(self, departure: simpy.Event, call: Callable[[float], object]) -> None:
        """Call call(time_s) when a message has left."""

        def left(_) -> None:
            call(self.env.now)

        departure.callbacks.append(left)

    def until(self, departure: simpy.Event):
        """Wait until a message has left."""
        return self.waits.until(departure)

    def departed(self):
        """Wait until all messages that were sent ahead have left."""
        leaving, self._ahead = [departure for departure in self._ahead if not departure.processed], []
        if leaving:
            yield from self.waits.until(simpy.AllOf(self.env, leaving))

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
        if message is not None:
            moves = message.asked is None and message.begin_s is not None
            moving_s = max(start_s, message.begin_s) if moves else rank.clock_s
            yield from self._take(message)
            self.received(message, start_s, moving_s)
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
            if message.end_s > self.rank.clock_s:
                yield from self.waits.until(self.env.timeout(message.end_s - self.rank.clock_s))
            yield from self._spend(overhead_s)
        else:
            yield from self._spend(len(message.sizes_bytes) * local.overhead_s + local.occupancy_s(message.size_bytes))
        if message.departure is not None:
            message.departure.succeed()

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

    # ---- variables that travel one by one

    def ship(self, peer: int, version: int, number: int, samples: int = 0) -> None:
        """Have other threads send one variable's parameters or gradient, and go on."""
        rank, size_bytes = self.rank, self.rank.amounts.variable_bytes[number]
        message = Message(rank.rank, version, samples, (size_bytes,), size_bytes)
        message.variable = number
        departure = self.depart(self.everyone[peer], message)
        self.record_left(departure, self.env.now, message, peer, version)

    def through_memory(self, number: int, call) -> None:
        """Copy a variable within the host; copies pass one after another."""
        _, end_s = self.machine.memory.take(
            self.env.now, self.local.occupancy_s(self.rank.amounts.variable_bytes[number])
        )
        self.after(end_s - self.env.now + self.local.latency_s, call)
