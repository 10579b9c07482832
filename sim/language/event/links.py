"""Ports and the paths that messages take through them (LogGP, Alexandrov et al., 1995)."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from sim.language.job import Job
from sim.language.pieces import Handle, Message


@dataclass(slots=True)
class Port:
    """A port, which passes one message after another.

    Args:
        bandwidth: bytes/s.
        free_s: when it has passed all that has reached it.
    """

    bandwidth: float
    free_s: float = 0.0


class Links:
    """The ports of all hosts."""

    def __init__(self, job: Job):
        self._job, self._ports = job, dict[tuple, Port]()
        self._bandwidths = defaultdict(
            lambda: job.bandwidth, rack_out=job.uplink, rack_in=job.uplink, local=job.local_bandwidth
        )

    def path(self, frm: int, to: int) -> list[Port]:
        """The ports from a rank to another: out of a host, if need be out of a rack and into one, into a host; or a host's memory."""
        job = self._job
        if job.host(frm) == job.host(to):
            return [self._port("local", frm)]
        leaves = (job.host(frm), job.host(to)) if job.shared_ports else (frm, to)
        racks = (job.rack(frm), job.rack(to))
        between = [self._port("rack_out", racks[0]), self._port("rack_in", racks[1])] if racks[0] != racks[1] else []
        return [self._port("out", leaves[0]), *between, self._port("in", leaves[1])]

    def _port(self, kind: str, number: int) -> Port:
        return self._ports.setdefault((kind, number), Port(self._bandwidths[kind]))

    def send(self, task, message: Message, to: int, size_bytes: float) -> Handle:
        """Send a message now; the handle is done when it has left the first port."""
        world, handle = task.world, Handle()
        world.mail[to].coming[message.sender, task.number] += 1
        path, key, job = self.path(message.sender, to), task.key, self._job

        def reaches(hop: int, before_s: float) -> None:
            """The message reaches a port, and its last byte not before `before_s`."""
            port = path[hop]
            begin_s = max(world.time_s, port.free_s)
            port.free_s = begin_s + (job.gap_s + size_bytes / port.bandwidth)
            passed_s = max(before_s, port.free_s)
            if hop == 0:
                handle.done_s = passed_s
                world.busy[message.sender].moves(world.time_s, passed_s)
            if hop + 1 < len(path):
                world.at(begin_s + job.latency_s, key, lambda: reaches(hop + 1, passed_s + job.latency_s))
            else:
                there_s = passed_s + (job.local_latency_s if hop == 0 else 0.0)
                world.busy[to].moves(begin_s, there_s)
                world.at(there_s, key, lambda: world.mail[to].put(task.number, message))

        reaches(0, 0.0)
        return handle
