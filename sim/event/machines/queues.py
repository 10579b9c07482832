"""How messages pass a host's port one after another, in each direction."""

from __future__ import annotations

from sim.event.ranks.message import Message
from sim.platform.tcp import Connection


class Queues:
    """The port of one rank's host, as the rank's messages pass it.

    Args:
        mechanics: sim.event.machines.mechanics.Mechanics, of the rank.
    """

    def __init__(self, mechanics):
        self._machine, self._link = mechanics.machine, mechanics.link
        self._connections: dict[int, Connection] = {}

    def leave(self, now_s: float, peer: int, message: Message) -> tuple[float, float]:
        """A message comes to the outgoing port: when it sets out on its way, and when it has left, seconds."""
        link, port = self._link, self._machine.egress
        occupancy_s, credit_s = link.occupancy_s(message.size_bytes), link.credit_s(message.size_bytes)
        begin_s, leave_s = port.take(now_s, occupancy_s, credit_s)
        if link.tcp:
            message.held_s = max(0.0, self._connection(peer).send(begin_s, message.size_bytes) - leave_s)
            leave_s += message.held_s
        return leave_s if link.store_and_forward else begin_s, leave_s

    def _connection(self, peer: int) -> Connection:
        link = self._link
        if peer not in self._connections:
            self._connections[peer] = Connection(link.tcp, link.latency_s, link.bandwidth_bytes_per_s)
        return self._connections[peer]

    def reach(self, now_s: float, message: Message) -> None:
        """A message reaches the incoming port: sets when its bytes pass."""
        link, port = self._link, self._machine.ingress
        occupancy_s, credit_s = link.occupancy_s(message.size_bytes), link.credit_s(message.size_bytes)
        message.begin_s, end_s = port.take(now_s, occupancy_s, credit_s)
        message.end_s = end_s + message.held_s
