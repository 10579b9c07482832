"""Messages that pass ports at once and share them, as TCP's flows do: a fluid, max-min fair, through token buckets.

Rates are max-min fair (Bertsekas and Gallager, Data Networks, section 6.5.2), as in SimGrid's model of TCP. A port is a token
bucket (tc tbf, the shapers of clouds): it passes what comes while it has tokens, and as fast as tokens come after that. A message
that comes to its sender's port while another one leaves has a smaller share at first: its window has not grown yet.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import simpy

LEAST_BYTES = 1e-3  # of a flow or a bucket: less is rounding
ROUND_OFF = 1e-6  # of a doubling
DOUBLINGS = 4  # of a message's window, until it has what it can have


@dataclass(eq=False)
class Bucket:
    """One direction of a port.

    Args:
        rate: tokens that come, bytes a second.
        depth: the most tokens that it keeps, bytes.
        queue: the longest queue in front of it while it is busy, bytes.
        busy_s: seconds for which messages took it.
    """

    rate: float
    depth: float = 0.0
    queue: float = 0.0
    through: float = 0.0  # bytes a second
    busy_s: float = 0.0
    level: float = field(init=False)
    _updated_s: float = 0.0

    def __post_init__(self):
        self.level = self.depth

    @property
    def taken_s(self) -> float:
        """See sim.event.machines.port.Port."""
        return self.busy_s

    def advance(self, now_s: float) -> None:
        """Update the tokens: they came and went at the present rates."""
        level = self.level + (self.rate - self.through) * (now_s - self._updated_s)
        self.level = 0.0 if level < LEAST_BYTES else min(self.depth, level)
        self._updated_s = now_s

    def take(self, tokens: float) -> None:
        """Let bytes take tokens, at once."""
        self.level = 0.0 if self.level - tokens < LEAST_BYTES else self.level - tokens

    @property
    def busy(self) -> bool:
        """Whether it has no tokens left and passes bytes at its full rate."""
        return self.level == 0 and self.through > self.rate * (1 - 1e-9)

    @property
    def lasts_s(self) -> float:
        """Seconds until it is empty."""
        drain = self.through - self.rate
        return self.level / drain if self.level > 0 and drain > 0 else float("inf")


@dataclass(eq=False)
class Flow:
    """A message that passes its two ports: bytes that are left, and its rate, bytes a second.

    Args:
        handed_over: fires when no more is left than what the sender's system keeps, `kept` bytes.
        weight: of its share of a port beside others'.
        ramp: bytes; while its sender's port could pass so many its window doubles.
    """

    ports: tuple[Bucket, Bucket]
    left: float
    handed_over: simpy.Event
    done: simpy.Event
    kept: float = 0.0
    weight: float = 1.0
    ramp: float = 0.0
    rate: float = 0.0
    age_s: float = 0.0

    @property
    def grown(self) -> float:
        """Its window, as a share of the largest one; a power of 2."""
        return 2.0 ** min(0, self._doublings - DOUBLINGS) if self.ramp else 1.0

    @property
    def grows_in_s(self) -> float:
        """Seconds until the window doubles."""
        return (self._doublings + 1) * self._doubling_s - self.age_s if self.grown < 1 else math.inf

    @property
    def _doublings(self) -> int:
        return int(self.age_s / self._doubling_s + ROUND_OFF)

    @property
    def _doubling_s(self) -> float:
        return self.ramp / self.ports[0].rate

    def advance(self, seconds: float) -> None:
        """Advance at its rate."""
        self.left = max(0.0, self.left - self.rate * seconds)
        self.age_s += seconds


class Flows:
    """All messages on their way."""

    def __init__(self, env: simpy.Environment):
        self._env, self._updated_s, self._timer = env, 0.0, 0
        self._flows: list[Flow] = []

    def start(self, egress: Bucket, ingress: Bucket, size_bytes: float, **details: float) -> Flow:
        """Let a message pass both ports from now on; a short message waits until the queues in front of them have passed.

        Args:
            details: of the flow: kept, weight, ramp.
        """
        flow = Flow((egress, ingress), size_bytes, self._env.event(), self._env.event(), **details)
        behind_s = self.backlog_s(egress, ingress) if size_bytes <= egress.queue else 0.0
        if behind_s:
            self._env.timeout(behind_s).callbacks.append(lambda _: self._begin(flow))
        else:
            self._begin(flow)
        return flow

    def _begin(self, flow: Flow) -> None:
        self._advance()
        self._flows.append(flow)
        self._go_on()

    def backlog_s(self, egress: Bucket, ingress: Bucket) -> float:
        """Seconds until the queues in front of two ports have passed them, one after the other.

        Bytes queue in front of the port that limits them: in front of a receiver's only if no sender's port limits them.
        """
        self._advance()
        before = [flow for flow in self._flows if egress.busy and flow.ports[0] is egress]
        after = [flow for flow in self._flows if ingress.busy and flow.ports[1] is ingress and not flow.ports[0].busy]
        return sum(
            min(port.queue, sum(flow.left for flow in flows)) / port.rate
            for port, flows in ((egress, before), (ingress, after))
        )

    def _advance(self) -> None:
        """Advance all flows to now."""
        seconds, self._updated_s = self._env.now - self._updated_s, self._env.now
        for flow in self._flows:
            flow.advance(seconds)

    def _go_on(self) -> None:
        """Pass on bytes that have tokens, share the rest, and repeat when that changes."""
        ports = {port for flow in self._flows for port in flow.ports}
        for port in ports:
            port.advance(self._env.now)
            port.through = 0.0
        for flow in self._flows:
            at_once = min(flow.left, *(port.level for port in flow.ports))
            flow.left -= at_once
            for port in flow.ports:
                port.take(at_once)
        for flow in [flow for flow in self._flows if flow.left < flow.kept + LEAST_BYTES]:
            if not flow.handed_over.triggered:
                flow.handed_over.succeed()
            if flow.left < LEAST_BYTES:
                self._flows.remove(flow)
                flow.done.succeed()
        share(self._flows)
        for flow in self._flows:
            for port in flow.ports:
                port.through += flow.rate
        self._timer += 1
        to_go = [flow.left - flow.kept * (not flow.handed_over.triggered) for flow in self._flows]
        times_s = [min(left / flow.rate, flow.grows_in_s) for left, flow in zip(to_go, self._flows, strict=True)]
        times_s += [port.lasts_s for port in ports]
        if self._flows:
            soon_s = max(min(times_s), math.ulp(self._env.now))  # sooner than the clock resolves, it would stand still
            self._env.timeout(soon_s, self._timer).callbacks.append(self._look)

    def _look(self, timer: simpy.Event) -> None:
        if timer.value == self._timer:
            self._advance()
            self._go_on()


def share(flows: list[Flow]) -> None:
    """Set the rates: max-min fair, by weight, through the ports that have no tokens left; of one sender's by their windows too."""
    largest: dict[Bucket, float] = {}
    for flow in flows:
        largest[flow.ports[0]] = max(flow.grown, largest.get(flow.ports[0], 0.0))
    weights = {flow: flow.weight * flow.grown / largest[flow.ports[0]] for flow in flows}
    free = {port: port.rate for flow in flows for port in flow.ports if port.level == 0}
    waiting = {port: [flow for flow in flows if port in flow.ports] for port in free}

    def for_each(port: Bucket) -> float:
        return free[port] / sum(weights[flow] for flow in waiting[port])

    while any(waiting.values()):
        tightest = min((port for port in free if waiting[port]), key=for_each)
        level = max(0.0, for_each(tightest))
        for flow in list(waiting[tightest]):
            flow.rate = level * weights[flow]
            for port in flow.ports:
                if port in free:
                    free[port] -= flow.rate
                    waiting[port].remove(flow)
