"""Ports and the paths that messages take through them (LogGP, Alexandrov et al., 1995)."""

from __future__ import annotations

import math
from collections import defaultdict, deque
from dataclasses import dataclass
from functools import cache, partial

from sim.language.pieces import Handle, Message
from sim.platform.slow_start import Connection


@dataclass(slots=True)
class Port:
    """A port, which passes one message after another.

    Args:
        bandwidth: bytes/s.
        sustained: bytes/s that it earns; it passes no byte that it has not earned.
        free_s: when it has passed all that has reached it.
        earned_s: when it has earned all that has reached it.
    """

    bandwidth: float
    sustained: float = math.inf
    free_s: float = 0.0
    earned_s: float = 0.0

    def take(self, now_s: float, seconds: float, size_bytes: float) -> float:
        """When it begins to pass a message that takes it for some seconds."""
        self.earned_s += size_bytes / self.sustained
        begin_s = max(now_s, self.free_s, self.earned_s - seconds)
        self.free_s = begin_s + seconds
        return begin_s


@dataclass(eq=False, slots=True)
class Parcel:
    """A message under way.

    Args:
        to: the receiver.
        number: of the text.
        key: of its events.
        is_there: whether it has come, perhaps before one that was posted sooner.
    """

    message: Message
    to: int
    number: int
    key: tuple[int, int, int]
    is_there: bool = False


class Links:
    """The ports of all hosts.

    Args:
        world: sim.language.event.world.EventWorld.
    """

    def __init__(self, world):
        self._world, self._job, self._ports = world, world.job, dict[tuple, Port]()
        job = world.job
        self._lines = defaultdict[tuple, deque[Parcel]](deque)  # messages under way, of a sender, a receiver and a text
        initial, most = (job.windows.initial_bytes, job.windows.most_bytes) if job.windows else (0.0, 0.0)
        self._connection = cache(lambda frm, to: Connection(initial, most, 2 * job.latency_s, job.bandwidth))

    def path(self, frm: int, to: int) -> list[tuple[str, int, int]]:
        """The ports from a rank to another, by their direction, level and number there (Job.levels); or the memory of a host."""
        job = self._job
        if job.host(frm) == job.host(to):
            return [("local", 0, frm)]
        leaves, enters = list[tuple[str, int, int]](), list[tuple[str, int, int]]()
        for level, (_, ports) in enumerate(job.levels):
            if level and ports[frm] == ports[to]:
                break
            leaves.append(("out", level, ports[frm]))
            enters.append(("in", level, ports[to]))
        return leaves + enters[::-1]

    def _bandwidth(self, name: tuple[str, int, int]) -> float:
        direction, level, _ = name
        return self._job.local_bandwidth if direction == "local" else self._job.levels[level][0]

    def _port(self, name: tuple[str, int, int]) -> Port:
        sustained = math.inf if name[0] == "local" or name[1] else self._job.sustained
        return self._ports.setdefault(name, Port(self._bandwidth(name), sustained))

    def send(self, task, message: Message, to: int, size_bytes: float) -> Handle:
        """Send a message now; the handle is done when it has left the first port."""
        parcel, path = self._under_way(task, message, to), [self._port(name) for name in self.path(message.sender, to)]
        handle = Handle()
        handle.done_s = self._reaches(parcel, path, size_bytes)
        self._world.busy[message.sender].moves(self._world.time_s, handle.done_s)
        return handle

    def _reaches(
        self,
        parcel: Parcel,
        path: list[Port],
        size_bytes: float,
        hop: int = 0,
        before_s: float = 0.0,
        held_s: float = 0.0,
    ) -> float:
        """A message reaches a port of its path; when it has passed that.

        Args:
            before_s: its last byte has not come before.
            held_s: a window holds that back for so long in the end.
        """
        world, job, port, frm = self._world, self._job, path[hop], parcel.message.sender
        gap_s = job.gap_s if len(path) > 1 else 0.0
        begin_s = port.take(world.time_s, gap_s + size_bytes / port.bandwidth, size_bytes)
        passed_s = max(before_s, port.free_s)
        if hop == 0 and job.windows and len(path) > 1:
            held_s = max(0.0, self._connection(frm, parcel.to).send(begin_s, size_bytes) - passed_s)
        if hop + 1 < len(path):
            on_s = passed_s if job.whole_messages else begin_s
            further = partial(self._reaches, parcel, path, size_bytes, hop + 1, passed_s + job.latency_s, held_s)
            world.at(on_s + job.latency_s, parcel.key, further)
        else:
            there_s = passed_s + held_s + (self._local_latency_s(frm) if hop == 0 else 0.0)
            world.busy[parcel.to].moves(begin_s, there_s)
            world.at(there_s, parcel.key, partial(self._there, parcel))
        return passed_s + held_s

    def _local_latency_s(self, rank: int) -> float:
        wakes_nobody = self._job.local_wakes and self._world.cores[rank].is_busy
        return 0.0 if wakes_nobody else self._job.local_latency_s

    def announces(self, size_bytes: float) -> bool:
        """Whether a message leaves when its receiver has asked for it."""
        return False

    def lose(self, message: Message) -> None:
        """Nobody takes a message."""

    def _under_way(self, task, message: Message, to: int) -> Parcel:
        parcel = Parcel(message, to, task.number, task.key)
        self._world.mail[to].coming[message.sender, task.number] += 1
        self._lines[message.sender, to, task.number].append(parcel)
        return parcel

    def _there(self, parcel: Parcel) -> None:
        """A message has come: it is handed over behind those of the same text and pair of ranks that were posted sooner."""
        world, line = self._world, self._lines[parcel.message.sender, parcel.to, parcel.number]
        parcel.is_there = True
        if line[0] is parcel:
            line.popleft()
            if line and line[0].is_there:
                world.at(world.time_s, line[0].key, partial(self._there, line[0]))
            world.mail[parcel.to].put(parcel.number, parcel.message, parcel.key)
