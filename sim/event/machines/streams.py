"""How messages pass between hosts: through ports in turn, or as flows that share them."""

from __future__ import annotations

import math

import simpy

from sim.event.machines.cores import ROUND_OFF_S
from sim.event.machines.flows import Flow
from sim.event.ranks.message import Message
from sim.platform.slow_start import Connection


class Ports:
    """Ports pass one message after another.

    Args:
        mechanics: sim.event.machines.mechanics.Mechanics, of the sender.
    """

    def __init__(self, mechanics):
        self._mechanics, self._env, self._link = mechanics, mechanics.env, mechanics.link
        self._connections: dict[int, Connection] = {}

    def depart(self, to, message: Message) -> simpy.Event:
        """Give one message to the link; the event of its departure."""
        link, now_s = self._link, self._env.now
        occupancy_s, credit_s = link.occupancy_s(message.size_bytes), link.credit_s(message.size_bytes)
        begin_s, leave_s = self._mechanics.machine.egress.take(now_s, occupancy_s, credit_s)
        out_s = leave_s if link.store_and_forward else begin_s
        if link.tcp:
            windowed_s = self._connection(to.rank.rank).send(begin_s, message.size_bytes)
            message.held_s = max(0.0, windowed_s - leave_s)
        self._env.after(out_s - now_s + link.latency_s, to.ports.reached, message)
        if message.departure is not None:
            return message.departure
        return self._env.timeout(leave_s + message.held_s - now_s)

    def _connection(self, peer: int) -> Connection:
        link = self._link
        if peer not in self._connections:
            windows = (one * link.tcp.connections for one in (link.tcp.initial_window_bytes, link.tcp.window_bytes))
            self._connections[peer] = Connection(*windows, 2 * link.latency_s, link.bandwidth_bytes_per_s)
        return self._connections[peer]

    def reached(self, message: Message) -> None:
        """A message from another host begins to pass this machine's port."""
        link, port = self._link, self._mechanics.machine.ingress
        occupancy_s, credit_s = link.occupancy_s(message.size_bytes), link.credit_s(message.size_bytes)
        message.begin_s, end_s = port.take(self._env.now, occupancy_s, credit_s)
        message.end_s = end_s + message.held_s
        self._mechanics.inbox.put(message)


class Streams:
    """Messages that pass a port at once share it (sim.event.machines.flows); long ones leave when their receiver asks for them.

    Args:
        mechanics: sim.event.machines.mechanics.Mechanics, of the sender.
    """

    def __init__(self, mechanics):
        self._mechanics, self._env, self._link = mechanics, mechanics.env, mechanics.link
        self._flows, self._weights, self._flowed = mechanics.rank.world.flows, mechanics.rank.weights, 0
        self._streams: dict[int, simpy.Event] = {}
        self._announced: dict[int, Message] = {}

    def depart(self, to, message: Message) -> simpy.Event:
        """Let one message flow to another host, at once or when its receiver asks for it; the event of its departure."""
        after, latency_s = self._env.after, self._link.latency_s
        if not self._link.asks_for(message.size_bytes):
            flow = self._stream(message, to)
            flow.done.callbacks.append(lambda _: after(latency_s, to.inbox.put, message))
            return flow.handed_over
        message.asked, message.landed, departure = (self._env.event() for _ in range(3))
        message.begin_s, self._announced[to.rank.rank] = self._env.now, message

        def stream():
            flow = self._stream(message, to)
            flow.handed_over.callbacks.append(lambda _: departure.succeed())
            flow.done.callbacks.append(lambda _: after(latency_s, message.landed.succeed))

        message.asked.callbacks.append(lambda _: self._mechanics.waits.notice(stream))
        self._control(to, lambda _: to.inbox.put(message))
        return departure

    def _stream(self, message: Message, to) -> Flow:
        """The bytes of one message pass both ports."""
        link = self._link
        message.begin_s = self._env.now + link.latency_s
        size_bytes = message.size_bytes + link.gap_s * link.bandwidth_bytes_per_s
        occupancy_s = link.occupancy_s(message.size_bytes)
        self._mechanics.machine.egress.busy_s += occupancy_s
        to.machine.ingress.busy_s += occupancy_s
        weight, self._flowed = self._weights[self._flowed], self._flowed + 1
        shares = {"kept": link.buffer_bytes, "weight": weight, "ramp": link.ramp_bytes}
        flow = self._flows.start(self._mechanics.machine.egress, to.machine.ingress, size_bytes, **shares)
        self._streams[to.rank.rank] = flow.done

        def left(_):
            message.end_s = self._env.now + link.latency_s

        flow.done.callbacks.append(left)
        return flow

    def ask(self, message: Message) -> None:
        """Have the bytes of a message leave that waits to be asked for.

        The control message goes behind the bytes of this rank's own message to the sender, if the sender has asked for that by now.
        """
        mine = self._announced.get(message.sender)
        if mine and not mine.landed.triggered and self._goes_first(mine, message):
            mine.landed.callbacks.append(lambda _: message.asked.succeed())
        else:
            message.asked_s = self._control(self._mechanics.everyone[message.sender], message.asked.succeed)

    def _goes_first(self, mine: Message, message: Message) -> bool:
        """Whether the sender of a message asked for one of this rank before that rank asks for its.

        A library posts its receive before it sends: of what it knows then it asks before it announces its own.
        """
        mechanics = self._mechanics
        if mechanics.scenario.protocol.in_library:
            # Ranks decide ties by their numbers: without latency each would else wait for the other.
            known_s = mine.begin_s + self._link.latency_s
            return (known_s, mechanics.rank.rank) < (message.begin_s, message.sender)
        return mine.asked_s <= mechanics.waits.polled_s + ROUND_OFF_S

    def _control(self, to, call) -> float:
        """Call when a control message has come, behind the bytes on their way there and what stands before busy ports.

        When that is; infinity if it depends on bytes that are still to come.
        """
        latency_s, stream, after = self._link.latency_s, self._streams.get(to.rank.rank), self._env.after
        if stream is not None and not stream.processed:
            stream.callbacks.append(lambda _: after(latency_s, call))
            return math.inf
        after_s = latency_s + self._flows.backlog_s(self._mechanics.machine.egress, to.machine.ingress)
        after(after_s, call)
        return self._env.now + after_s
