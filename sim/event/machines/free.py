"""Mechanics of ranks whose cores are their own: work is arithmetic on the rank's clock, and messages at ports are the only events."""

from __future__ import annotations

import math
from collections.abc import Callable

from sim.event.machines.departure import Departure
from sim.event.machines.mechanics import Mechanics
from sim.event.ranks.message import Message
from sim.model.costs import side_by_side
from sim.recording.traces import NOBODY
from sim.verbs.book import CLOCK_S

ROUND_OFF_S = 1e-12
DONE = ()  # of what takes no event: `yield from` it goes on at once


class Free(Mechanics):
    """How one rank's work, messages and waits take time where nothing that ranks share makes its work longer.

    A rank's text runs ahead on its own clock. Messages queue at the ports of hosts in the order in which they come there. A message
    that reaches a port is an event; so is one that leaves by a port that ranks share, where they take turns.
    """

    # ---- time

    def _spend(self, seconds: float, computing: bool = False):
        if seconds > ROUND_OFF_S:
            self.rank.clock_s += seconds / self.machine.speed
        return DONE

    def _busy_s(self, seconds: float, start_s: float) -> float:
        return seconds

    def work_on(self, parts_s: list[float], activity: str, samples=0, size_bytes=0, peer=NOBODY, version=None):
        """Do parts, each on a core of its own, or one after another where there is one core."""
        seconds = side_by_side(parts_s, self.machine.count)
        return self.work(activity, seconds, samples, size_bytes, peer, version)

    def rest(self, seconds: float):
        """Sleep for some seconds."""
        self.rank.clock_s += seconds
        self.rank.computed_s += seconds
        return DONE

    def rest_until(self, time_s: float):
        """Sleep until a time."""
        self.rank.clock_s = max(self.rank.clock_s, time_s)
        return DONE

    def begin_step(self, slept_s: float) -> None:
        """Do nothing: no other threads work beside the rank."""

    def come_together(self):
        """Do nothing: ranks that wait are woken at once."""
        return DONE

    def at(self, time_s: float, call) -> None:
        """Call a function at a time."""
        self.rank.world.at(time_s, call)

    # ---- messages that leave

    def post(self, peer: int, message: Message):
        """Give one message to the link, at a core's expense; its departure."""
        rank, to = self.rank, self.everyone[peer]
        if to.machine is self.machine:
            message.departure = self._departure()
            to.machine.coming.add(rank.clock_s + self.local.latency_s, rank.rank, to.neighbour_reaches, message)
            return message.departure
        rank.clock_s += len(message.sizes_bytes) * self.link.overhead_s / self.machine.speed
        if self.machine.ranks > 1:
            go = rank.thread.go
            self.machine.leaving.add(rank.clock_s, rank.rank, lambda *_: go(), None)
            yield
        out_s, leave_s = self.queues.leave(rank.clock_s, peer, message)
        to.machine.coming.add(out_s + self.link.latency_s, rank.rank, to.reaches, message)
        return Departure(leave_s) if message.departure is None else message.departure

    def _departure(self) -> Departure:
        return Departure()

    def when_left(self, departure: Departure, call: Callable[[float], object]) -> None:
        """Call call(time_s) as soon as the time is known at which a message leaves."""
        departure.then(call)

    def until(self, departure: Departure):
        """Wait until a message has left."""
        if departure.time_s is None:
            go = self.rank.thread.go
            departure.then(lambda _: go())
            yield
        self.rank.clock_s = max(self.rank.clock_s, departure.time_s)

    def departed(self):
        """Wait until all messages that were sent ahead have left."""
        ahead, self._ahead = self._ahead, []
        for departure in ahead:
            yield from self.until(departure)

    # ---- messages that come

    def reaches(self, reach_s: float, message: Message) -> None:
        """A message from another host begins to pass this machine's port, after those that came before."""
        self.queues.reach(reach_s, message)
        self.inbox.put(message)

    def neighbour_reaches(self, reach_s: float, message: Message) -> None:
        """A message of a rank on this host comes."""
        message.begin_s = reach_s
        self.inbox.put(message)

    def _leave(self, message: Message) -> None:
        if message.departure is not None:
            message.departure.fire(max(message.begin_s, self.rank.clock_s))

    def receive(self, frm, until_s: float = math.inf, variable: int | None = None):
        """The next message from one of `frm`, if it begins to come by a time; one that comes at this very moment has not come yet."""
        rank, peers = self.rank, (frm,) if isinstance(frm, int) else frm
        if until_s < math.inf:
            yield from self._catch_up(CLOCK_S)
        start_s, message = rank.clock_s, self.inbox.take(peers)
        if message is None and until_s > start_s:
            message = yield from self._awaited(peers, until_s)
            if message is None:
                rank.clock_s = max(start_s, self.env.now)
                rank.waited(start_s, rank.clock_s)
        if message is not None:
            self._take(message)
        return message

    def _catch_up(self, but_s: float):
        """Wait until the world's clock has reached this rank's, except for so many seconds: what has come by now matters."""
        clock_s = self.rank.clock_s
        ahead_s = clock_s - but_s - self.env.now
        if ahead_s > 0:
            yield self.env.timeout(ahead_s)
            self.rank.clock_s = clock_s

    def _awaited(self, peers, until_s: float):
        """The next message that comes from one of `peers`; None if there is none by then."""
        go = self.rank.thread.go
        self.inbox.await_from(peers, go)
        if until_s < math.inf:
            self.at(until_s, lambda: self.inbox.give_up(go) and go())
        return (yield)

    def _take(self, message: Message) -> None:
        """The bytes of a message move, and a core takes them; within a host the core copies them."""
        rank, start_s, count = self.rank, self.rank.clock_s, len(message.sizes_bytes)
        moving_s = max(start_s, message.begin_s)
        if message.end_s is not None:
            rank.clock_s = max(start_s, message.end_s) + count * self.link.overhead_s / self.machine.speed
        else:
            copying_s = count * self.local.overhead_s + self.local.occupancy_s(message.size_bytes)
            rank.clock_s = moving_s + copying_s / self.machine.speed
        if message.departure is not None:
            message.departure.fire(rank.clock_s)
        self.received(message, start_s, moving_s)
