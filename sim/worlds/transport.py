"""How messages travel in the event world: within a host, through ports in turn, or as flows that share them."""

from __future__ import annotations

import math

import simpy

from sim.cpu import ROUND_OFF_S
from sim.flows import Flow
from sim.network import Message
from sim.tcp import Connection
from sim.worlds.serving import ENDLESS


class Transport:
    """What a rank does to send and take messages. Needs `world`, `machine`, `inbox`, `_spend`, `until`, `work_behind` and `_record`."""

    def begin_transport(self, weights) -> None:
        """Before the first message; `weights` are those of its flows beside others', one after another."""
        self._weights, self._flowed, self._streams, self._announced, self._connections = weights, 0, {}, {}, {}

    def _post(self, peer: int, message: Message):
        """Give one message to the link, at a core's expense; the event of its departure.

        Of one that must be asked for, word leaves as the call begins; it has not left before the call is over.
        """
        link, departure = self.world.scenario.network, None
        if self.world.ranks[peer].machine is self.machine:
            return self._depart(peer, message)
        if link.asks_for(message.size_bytes):
            departure = self._depart(peer, message)
        yield from self._spend(len(message.parts) * link.overhead_s)
        if departure is None:
            departure = self._depart(peer, message)
        return self.world.env.timeout(0) if departure.processed else departure

    def _depart(self, peer: int, message: Message):
        """Give one message to the link; the event of its departure."""
        scenario, to = self.world.scenario, self.world.ranks[peer]
        here = to.machine is self.machine
        behind_s = (scenario.cluster.local if here else scenario.network).background_s
        self.work_behind(self.machine, behind_s)
        self.work_behind(to.machine, behind_s)
        if here:
            message.copied = self.world.env.event()
            local = scenario.cluster.local
            asleep_s = local.latency_s if self.machine.cores.idle or not local.wakes else 0.0
            self._after(asleep_s, lambda: to.inbox.put(message))
            return message.copied
        link, size_bytes = scenario.network, message.size_bytes
        if link.fair:
            return self._flow(message, to)
        occupancy_s, credit_s = link.occupancy_s(size_bytes), link.credit_s(size_bytes)
        begin_s, leave_s = self.machine.egress.take(self.now_s, occupancy_s, credit_s)
        if link.tcp:
            message.held_s = max(0.0, self._connection(peer).send(begin_s, size_bytes) - leave_s)
            leave_s += message.held_s
        at_s = leave_s if link.store_and_forward else begin_s
        self._after(at_s - self.now_s + link.latency_s, lambda: to.reached(message))
        return self.world.env.timeout(leave_s - self.now_s)

    def _connection(self, peer: int) -> Connection:
        link = self.world.scenario.network
        if peer not in self._connections:
            self._connections[peer] = Connection(link.tcp, link.latency_s, link.bandwidth_bytes_per_s)
        return self._connections[peer]

    def _flow(self, message: Message, to: Transport) -> simpy.Event:
        """Let one message flow to another host, at once or when its receiver asks for it; the event of its departure."""
        link = self.world.scenario.network
        if not link.asks_for(message.size_bytes):
            flow = self._stream(message, to)
            flow.done.callbacks.append(lambda _: self._after(link.latency_s, lambda: to.inbox.put(message)))
            return flow.handed_over
        message.asked, message.landed, departure = (self.world.env.event() for _ in range(3))
        message.begin_s, self._announced[to.rank] = self.now_s, message

        def stream():
            flow = self._stream(message, to)
            flow.handed_over.callbacks.append(lambda _: departure.succeed())
            flow.done.callbacks.append(lambda _: self._after(link.latency_s, message.landed.succeed))

        message.asked.callbacks.append(lambda _: self.notice(stream))
        self._word(to, lambda: to.inbox.put(message))
        return departure

    def _stream(self, message: Message, to: Transport) -> Flow:
        """The bytes of one message pass both ports."""
        link = self.world.scenario.network
        message.begin_s = self.now_s + link.latency_s
        size_bytes = message.size_bytes + link.gap_s * link.bandwidth_bytes_per_s
        weight, self._flowed = self._weights[self._flowed], self._flowed + 1
        shares = {"kept": link.buffer_bytes, "weight": weight, "ramp": link.ramp_bytes}
        flow = self.world.flows.start(self.machine.egress, to.machine.ingress, size_bytes, **shares)
        self._streams[to.rank] = flow.done

        def left(_):
            message.end_s = self.now_s + link.latency_s

        flow.done.callbacks.append(left)
        return flow

    def ask(self, message: Message) -> None:
        """Have the bytes of a message leave that waits to be asked for.

        Word of it goes behind the bytes of this rank's own message to the sender, if the sender has asked for that by now.
        """
        mine = self._announced.get(message.sender)
        if mine and not mine.landed.triggered and self._goes_first(mine, message):
            mine.landed.callbacks.append(lambda _: message.asked.succeed())
        else:
            message.asked_s = self._word(self.world.ranks[message.sender], message.asked.succeed)

    def _goes_first(self, mine: Message, message: Message) -> bool:
        """Whether the sender of a message asked for one of this rank before that rank asks for its.

        A library posts its receive before it sends: of what it has word of then it asks before it announces its own.
        """
        if self.scenario.protocol.in_library:
            # Ranks tell ties apart: without latency each would else wait for the other.
            known_s = mine.begin_s + self.world.scenario.network.latency_s
            return (known_s, self.rank) < (message.begin_s, message.sender)
        return mine.asked_s <= self.looked_s + ROUND_OFF_S

    def _word(self, to: Transport, call) -> float:
        """Call when a word to another rank has come, behind the bytes on their way there and what stands before busy ports.

        When that is; infinity if it depends on bytes that are still to come.
        """
        latency_s, stream = self.world.scenario.network.latency_s, self._streams.get(to.rank)
        if stream is not None and not stream.processed:
            stream.callbacks.append(lambda _: self._after(latency_s, call))
            return math.inf
        after_s = latency_s + self.world.flows.backlog_s(self.machine.egress, to.machine.ingress)
        self._after(after_s, call)
        return self.now_s + after_s

    def reached(self, message: Message) -> None:
        """A message from another host begins to pass this machine's port."""
        link, size_bytes = self.world.scenario.network, message.size_bytes
        occupancy_s, credit_s = link.occupancy_s(size_bytes), link.credit_s(size_bytes)
        message.begin_s, message.end_s = self.machine.ingress.take(self.now_s, occupancy_s, credit_s)
        message.end_s += message.held_s
        self.inbox.put(message)

    def arrival(self, peers, until_s: float = ENDLESS):
        """Wait until bytes move, then until they are here; the message, or None if none moves by `until_s`."""
        start_s = self.now_s
        message, self.looked_s = self.inbox.take(peers), start_s
        if message is None and until_s > start_s:
            message = yield from self.until(self.inbox.awaited(peers, until_s))
        if message is None:
            if self.now_s > start_s:
                self._record("wait", start_s)
            return None
        moving_s = self.now_s if message.begin_s is None else max(start_s, message.begin_s)
        about = {"bytes": message.size_bytes, "peer": message.sender}
        if message.asked is not None:
            moving_s = self.now_s
            yield from self._spend(len(message.parts) * self.world.scenario.network.overhead_s)
            self.ask(message)
            yield from self.until(message.landed)
        elif message.end_s is not None:
            if message.end_s > self.now_s:
                yield from self.until(self.world.env.timeout(message.end_s - self.now_s))
            yield from self._spend(len(message.parts) * self.world.scenario.network.overhead_s)
        else:
            local = self.world.scenario.cluster.local
            yield from self._spend(len(message.parts) * local.overhead_s + local.occupancy_s(message.size_bytes))
            message.copied.succeed()
        self._record("wait", min(moving_s, max(start_s, self.idle_from_s)), moving_s, peer=message.sender)
        self._record("receive", moving_s, **about)
        return message

    def _after(self, delay_s: float, call) -> None:
        self.world.env.timeout(delay_s).callbacks.append(lambda _: call())
