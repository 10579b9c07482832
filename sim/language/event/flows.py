"""Messages that pass ports at once and share them, as TCP's flows do: a fluid, max-min fair, through token buckets.

Rates are max-min fair (Bertsekas and Gallager, Data Networks, section 6.5.2), as in SimGrid's model of TCP. A port is a token
bucket (tc tbf, the shapers of clouds): it passes what comes while it has tokens, and as fast as tokens come after that. A message
that comes to its sender's port while another one leaves has a smaller share at first: its window has not grown yet.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial, reduce
from operator import add

from sim.language.event.links import Links, Parcel
from sim.language.pieces import Handle, Message

LEAST_BYTES = 1e-3  # of a flow or a bucket: less is rounding
ROUND_OFF, ROUND_OFF_S = 1e-6, 1e-12  # of a doubling, and of the clock
DOUBLINGS = 4  # of a message's window, until it has what it can have
FULL = 1 - 1e-9  # a share of a rate that is all of it
RESOLUTION = 2.0**-52  # of the clock, of its time: sooner than that it would stand still


@dataclass(eq=False, slots=True)
class Bucket:
    """A port.

    Args:
        rate: tokens that come, bytes/s.
        depth: the most tokens that it keeps, bytes.
        level: tokens that it has, bytes.
        through: bytes/s that pass.
    """

    rate: float
    depth: float
    level: float
    through: float = 0.0
    updated_s: float = 0.0

    @property
    def is_busy(self) -> bool:
        """Whether it has no tokens left and passes bytes at its full rate."""
        return self.level == 0 and self.through > self.rate * FULL

    @property
    def lasts_s(self) -> float:
        """Seconds until it is empty."""
        drain = self.through - self.rate
        return self.level / drain if self.level > 0 and drain > 0 else math.inf

    def advance(self, now_s: float) -> None:
        """Tokens have come and gone."""
        self.put(self.level + (self.rate - self.through) * (now_s - self.updated_s))
        self.updated_s, self.through = now_s, 0.0

    def put(self, level: float) -> None:
        """It has so many tokens, as far as it keeps them."""
        self.level = 0.0 if level < LEAST_BYTES else min(self.depth, level)


@dataclass(eq=False, slots=True)
class Flow:
    """A message that passes its ports.

    Args:
        parcel: the message.
        left: bytes.
        kept: bytes of them that its sender's system keeps, until it has left.
        weight: of its share of a port beside others'.
        ramp: bytes; while its sender's port could pass so many its window doubles.
        has_left: called when it has left.
        when_there: called when all of it has come.
        told_s: of a message that was announced: when it was.
        asked_s: when its sender knows that its receiver asks for it; infinity as long as nobody knows.
        rate: bytes/s.
    """

    parcel: Parcel
    ports: list[Bucket]
    left: float
    kept: float
    weight: float
    ramp: float
    has_left: Callable[[], object] | None
    when_there: list[Callable[[], object]]
    told_s: float = math.inf
    asked_s: float = math.inf
    rate: float = 0.0
    age_s: float = 0.0
    share: float = field(init=False, default=0.0)

    def goes(self, frm: int, to: int) -> bool:
        """Whether it goes from a rank to another."""
        return self.parcel.message.sender == frm and self.parcel.to == to

    @property
    def doublings(self) -> int:
        """How often its window has doubled."""
        return int(self.age_s / (self.ramp / self.ports[0].rate) + ROUND_OFF)

    @property
    def grown(self) -> float:
        """Its window, as a share of the largest one; a power of 2."""
        return 2.0 ** min(0, self.doublings - DOUBLINGS) if self.ramp else 1.0

    @property
    def lasts_s(self) -> float:
        """Seconds until it has left, or passed, or its window doubles."""
        to_go_s = (self.left - self.kept * (self.has_left is not None)) / self.rate
        if self.grown == 1:
            return to_go_s
        return min(to_go_s, (self.doublings + 1) * (self.ramp / self.ports[0].rate) - self.age_s)


class Flows(Links):
    """Links whose ports between hosts are shared."""

    def __init__(self, world):
        super().__init__(world)
        self._fair = self._job.fair
        self._weights = [self._job.noise(me.rank, len(me.servers), "share") for me in world.ranks]
        self._buckets, self._posted = dict[tuple, Bucket](), [0 for _ in world.ranks]
        self._announced = list[Flow]()  # that have not come yet
        self._flows, self._updated_s, self._due_s = list[Flow](), 0.0, math.inf
        self._key = len(world.ranks), 0, 0  # rates are found when all else of a moment has happened

    def send(self, task, message: Message, to: int, size_bytes: float) -> Handle:
        """Send a message now; the handle is done when its sender's system has all of it."""
        world, job, fair, frm = self._world, self._job, self._fair, message.sender
        if job.host(frm) == job.host(to):
            return super().send(task, message, to, size_bytes)
        parcel = self._under_way(task, message, to)
        handle, ports = Handle(), [self._bucket(name) for name in self.path(frm, to)]
        flow = Flow(
            parcel,
            ports,
            size_bytes + job.gap_s * job.bandwidth,
            fair.buffer_bytes,
            self._weights[frm][self._posted[frm]],
            fair.ramp_bytes,
            lambda: world.done(handle, handle.waiting),
            [],
        )
        self._posted[frm] += 1
        if self.announces(size_bytes):
            message.flow, flow.told_s = flow, world.time_s
            self._announced.append(flow)
            self._control(frm, to, task.key, partial(self._there, parcel))
        else:
            flow.when_there.append(partial(self._there, parcel))
            self._stream(flow)
        return handle

    def _stream(self, flow: Flow) -> None:
        """The bytes of a message leave, behind the queues before its ports if it is short."""
        behind_s = self._queued_s(flow.ports) if flow.left <= self._fair.queue_bytes else 0.0
        if behind_s:
            self._world.at(self._world.time_s + behind_s, flow.parcel.key, lambda: self._begin(flow))
        else:
            self._begin(flow)

    # ---- messages that are announced

    def announces(self, size_bytes: float) -> bool:
        """Whether a message leaves when its receiver has asked for it."""
        return size_bytes > self._fair.eager_bytes

    def land(self, task, flow: Flow, found_s: float):
        """Ask for a message that was announced, and wait until all of it is there.

        Args:
            found_s: when its receiver has found that it was announced.
        """
        flow.when_there.append(task.waker(task.turn))
        self._ask(flow, found_s)
        yield f"the bytes of a message of rank {flow.parcel.message.sender}"

    def lose(self, message: Message) -> None:
        """Nobody takes a message: it leaves its sender all the same."""
        if message.flow:
            self._world.at(self._world.time_s, message.flow.parcel.key, partial(self._ask, message.flow, -math.inf))

    def _ask(self, flow: Flow, found_s: float) -> None:
        """Ask for a message: once the receiver's own is there, if the sender had asked for that before it found this one."""
        to, frm, number = flow.parcel.to, flow.parcel.message.sender, flow.parcel.number
        own = next(
            (one for one in reversed(self._announced) if one.goes(to, frm) and one.parcel.number == number), None
        )
        if own and self._goes_first(own, flow, found_s):
            self._when_there(own, flow.parcel.key, partial(self._asked, flow))
        else:
            flow.asked_s = self._control(to, frm, flow.parcel.key, partial(self._asked, flow))

    def _goes_first(self, own: Flow, other: Flow, found_s: float) -> bool:
        """Whether a rank's own message was asked for before the rank asks for the other one, which comes from there."""
        if self._fair.receives_first:
            known_s = own.told_s + self._job.latency_s
            return (known_s, own.parcel.message.sender) < (other.told_s, other.parcel.message.sender)
        return own.asked_s <= found_s + ROUND_OFF_S

    def _asked(self, flow: Flow) -> None:
        """A message is asked for: it leaves when its sender sees that."""
        stream = partial(self._stream, flow)
        if self._world.polls:
            self._world.polls[flow.parcel.message.sender].notice(flow.parcel.key, stream)
        else:
            stream()

    def _control(self, frm: int, to: int, key, call: Callable[[], object]) -> float:
        """Call when a control message has come, behind bytes on their way there and in queues; when that is, infinity if nobody knows."""
        before = next((flow for flow in reversed(self._flows) if flow.goes(frm, to)), None)
        if before:
            self._when_there(before, key, call)
            return math.inf
        ports = [self._bucket(name) for name in self.path(frm, to)]
        there_s = self._world.time_s + (self._on_s(ports) + self._queued_s(ports))
        self._world.at(there_s, key, call)
        return there_s

    def _when_there(self, before: Flow, key, call: Callable[[], object]) -> None:
        before.when_there.append(lambda: self._world.at(self._world.time_s, key, call))

    def _on_s(self, ports: list[Bucket]) -> float:
        return self._job.latency_s * (len(ports) - 1)

    def _all_there(self, flow: Flow) -> None:
        if flow in self._announced:
            self._announced.remove(flow)
        self._world.busy[flow.parcel.to].end()
        for call in flow.when_there:
            call()

    # ---- shares

    def _bucket(self, name: tuple[str, int, int]) -> Bucket:
        if name not in self._buckets:
            self._buckets[name] = Bucket(self._bandwidth(name), self._fair.burst_bytes, self._fair.burst_bytes)
        return self._buckets[name]

    def _begin(self, flow: Flow) -> None:
        self._advance()
        for rank in (flow.parcel.message.sender, flow.parcel.to):
            self._world.busy[rank].begin()
        self._flows.append(flow)
        self._look_at(self._world.time_s)

    def _queued_s(self, ports: list[Bucket]) -> float:
        """Seconds until the queues in front of ports have passed them, one after the other.

        Bytes queue in front of the first port that is busy on their way.
        """
        self._look_again(self._due_s)
        self._advance()
        before = dict.fromkeys(ports, 0.0)
        for flow in self._flows:
            port = next((port for port in flow.ports if port.is_busy), None)
            if port in before:
                before[port] += flow.left
        return reduce(add, (min(self._fair.queue_bytes, size) / port.rate for port, size in before.items()))

    def _advance(self) -> None:
        """All flows have gone on until now."""
        seconds, self._updated_s = self._world.time_s - self._updated_s, self._world.time_s
        for flow in self._flows:
            flow.left = max(0.0, flow.left - flow.rate * seconds)
            flow.age_s += seconds

    def _look_at(self, time_s: float) -> None:
        if time_s < self._due_s:
            self._due_s = time_s
            self._world.at(time_s, self._key, lambda: self._look_again(time_s))

    def _look_again(self, time_s: float) -> None:
        """If this was planned last, and is due: flows that have left or passed are over, and others share what is free."""
        if not self._world.time_s == time_s == self._due_s:
            return
        self._advance()
        self._pass_tokens()
        for flow in self._flows:
            if flow.left < flow.kept + LEAST_BYTES and flow.has_left:
                flow.has_left()
                self._world.busy[flow.parcel.message.sender].end()
                flow.has_left = None
            if flow.left < LEAST_BYTES:
                there_s = time_s + self._on_s(flow.ports)
                self._world.at(there_s, flow.parcel.key, partial(self._all_there, flow))
        self._flows = [flow for flow in self._flows if flow.left >= LEAST_BYTES]
        ports = {port: None for flow in self._flows for port in flow.ports}
        share(self._flows)
        for flow in self._flows:
            for port in flow.ports:
                port.through += flow.rate
        self._due_s = math.inf
        if self._flows:
            soon_s = min(*(flow.lasts_s for flow in self._flows), *(port.lasts_s for port in ports))
            self._look_at(time_s + max(soon_s, time_s * RESOLUTION))

    def _pass_tokens(self) -> None:
        """Bytes for which there are tokens pass at once."""
        for port in {port: None for flow in self._flows for port in flow.ports}:
            port.advance(self._world.time_s)
        for flow in self._flows:
            at_once = min(flow.left, *(port.level for port in flow.ports))
            flow.left -= at_once
            for port in flow.ports:
                port.put(port.level - at_once)


def share(flows: list[Flow]) -> None:
    """Set the rates: max-min fair, by weight, through the ports that have no tokens left; of one sender's by their windows too."""
    largest = dict[Bucket, float]()
    for flow in flows:
        largest[flow.ports[0]] = max(flow.grown, largest.get(flow.ports[0], 0.0))
    waiting = dict[Bucket, list[Flow]]()
    for flow in flows:
        flow.share = flow.weight * flow.grown / largest[flow.ports[0]]
        for port in flow.ports:
            if port.level == 0:
                waiting.setdefault(port, []).append(flow)
    free = {port: port.rate for port in waiting}
    while waiting:
        for_each = {
            port: free[port] / reduce(add, (flow.share for flow in several)) for port, several in waiting.items()
        }
        tightest = min(for_each, key=lambda port: for_each[port])
        for flow in list(waiting[tightest]):
            flow.rate = max(LEAST_BYTES, for_each[tightest]) * flow.share  # rounding leaves less than nothing
            for port in flow.ports:
                if port in waiting:
                    free[port] -= flow.rate
                    waiting[port].remove(flow)
        waiting = {port: several for port, several in waiting.items() if several}
