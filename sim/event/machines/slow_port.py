"""How messages leave by a port that is no plain queue: it earns credit, keeps TCP's windows, or passes whole messages on."""

from __future__ import annotations

from sim.event.ranks.message import Message
from sim.platform.tcp import Connection


class SlowPort:
    """The outgoing port of one rank.

    Args:
        mechanics: sim.event.machines.free.Free, of the rank.
    """

    def __init__(self, mechanics):
        self._mechanics, self._link = mechanics, mechanics.link
        self._connections: dict[int, Connection] = {}

    def leave(self, to, message: Message) -> float:
        """Give one message to the link; when it has left, seconds.

        Args:
            to: the mechanics of its receiver.
        """
        link, machine = self._link, self._mechanics.machine
        message.occupancy_s, message.credit_s = link.occupancy_s(message.size_bytes), link.credit_s(message.size_bytes)
        machine.egress.busy_s += message.occupancy_s
        clock_s = self._mechanics.rank.clock_s
        begin_s, leave_s = machine.egress.take(clock_s, message.occupancy_s, message.credit_s)
        if link.tcp:
            message.held_s = max(0.0, self._connection(to.rank.rank).send(begin_s, message.size_bytes) - leave_s)
            leave_s += message.held_s
        to.comes((leave_s if link.store_and_forward else begin_s) + link.latency_s, message)
        return leave_s

    def _connection(self, peer: int) -> Connection:
        link = self._link
        if peer not in self._connections:
            self._connections[peer] = Connection(link.tcp, link.latency_s, link.bandwidth_bytes_per_s)
        return self._connections[peer]
