"""What ranks do in the event world, as rows of a trace."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from sim.base.activity import NOBODY, Activity
from sim.language import commands
from sim.language.event.task import Task
from sim.language.event.world import EventWorld
from sim.language.job import Job
from sim.language.pieces import Handle, Message, Piece
from sim.language.text import Text

WORKS = {commands.Sleep: "sleep", commands.Mix: "reduce", commands.Work: "compute", commands.Evaluate: "evaluate"}
PASSES = (commands.Forward, commands.Backward)
APART = ("sleep", "input", "compute", "pack", "update", "reduce", "evaluate")  # in which no rank waits


class Observed(Task):
    """A text that tells the world what it does."""

    world: ObservedWorld

    def execute(self, command):
        """What a command does, and a row of it."""
        world, me = self.world, self.me
        self.since_s, self.spans = world.time_s, list[tuple[float, float]]()
        self.command = command
        self.round = max(0, me.round + isinstance(command, commands.Follow))  # who follows begins the next one
        reply = yield from super().execute(command)
        if isinstance(command, PASSES):
            self._passed(command)
        elif isinstance(command, commands.Update):
            of_all = command.piece.start == world.firsts.setdefault(me.rank, command.piece.start)  # once for all pieces
            world.versions[me.rank] += of_all
            world.read[me.rank] = None
            samples = round(command.samples) if of_all else 0
            self._row("update", self.since_s, samples=samples, size_bytes=self._bytes(command.piece, command.share))
        elif isinstance(command, commands.Mix) and id(command.what) in world.held:
            message, about = world.held.pop(id(command.what))
            self._joined(command.into, message, command.a != 0, self.since_s, about)
        elif type(command) in WORKS and world.time_s > self.since_s:
            beside = self.number and isinstance(command, commands.Work)  # as a library's thread has
            self._row("pack" if beside else WORKS[type(command)], self.since_s)
        elif isinstance(command, commands.Wait) and world.polls and world.time_s > self.since_s:
            self._seen_to_leave(command.handles)
        elif isinstance(command, commands.Take) and reply is None and world.time_s > self.since_s:
            self._row("wait", self.since_s)
        if isinstance(command, commands.Mix) and command.into.vector == "gradient" and command.a == 0:
            world.read[me.rank] = None
        return reply

    def _row(self, activity: str, since_s: float, until_s=None, samples=0, size_bytes=0, peer=NOBODY, version=None):
        world, rank = self.world, self.me.rank
        end_s = world.time_s if until_s is None else until_s
        version = world.versions[rank] if version is None else version
        world.rows.append(Activity(since_s, end_s, rank, self.round, activity, samples, size_bytes, peer, version))

    def _seen_to_leave(self, handles) -> None:
        """Who polls sends until it sees that its message has left."""
        last = max(handles, key=lambda handle: handle.done_s)
        if number := self.world.leaving.pop(id(last), None):
            self.world.rows[number] = self.world.rows[number]._replace(end_s=self.world.time_s)

    def _bytes(self, piece: Piece, share: float = 1.0) -> int:
        return round(self.world.job.bytes_of(piece.items, share))

    def _joined_bytes(self) -> int:
        """Of a gradient as it is sent: of sparse layers, rows and their numbers."""
        job = self.world.job
        sent = sum(of.items * job.share(layer, numbered=True) for layer, of in enumerate(job.layers))
        return round(job.bytes_of(1, sent))

    def _spend(self, seconds: float, device=None):
        begin_s = self.world.time_s
        yield from super()._spend(seconds, device)
        self.spans.append((begin_s, self.world.time_s))

    def _passed(self, command) -> None:
        """A pass, before which samples may be fetched, and which follows the one before; or gradients that are joined."""
        world, samples = self.world, len(self.world.job.micro_batch(command.micro, command.of))
        if isinstance(command, commands.Forward) and command.first == 0:
            begin_s, end_s = self.spans.pop(0)
            if end_s > begin_s:
                self._row("input", begin_s, end_s, samples)
        if command.stop > command.first:  # the pass is the last
            for begin_s, end_s in self.spans[:-1]:
                if end_s > begin_s:
                    copied = self.world.job.batch if self.world.job.copied_at_once else samples
                    self._row("copy to device", begin_s, end_s, copied)
            self.spans = self.spans[-1:]
        for begin_s, end_s in self.spans:
            if command.stop == 0:
                self._row("pack", begin_s, end_s, size_bytes=self._joined_bytes())
                continue
            done = samples if isinstance(command, commands.Backward) and command.first == 0 else 0
            if world.read[self.me.rank] is None:
                world.read[self.me.rank] = world.versions[self.me.rank]
            last = world.computing.get(self)
            if last is not None and self._goes_on(world.rows[last], begin_s, done):
                row = world.rows[last]
                world.rows[last] = row._replace(end_s=end_s, samples=row.samples + done)
            else:
                world.computing[self] = len(world.rows)
                self._row("compute", begin_s, end_s, done)

    def _goes_on(self, row: Activity, begin_s: float, samples: int) -> bool:
        alike = row.step == self.round and row.version == self.world.versions[self.me.rank]
        return alike and row.end_s == begin_s and row.samples + samples <= self.world.job.batch

    def _accept(self, message: Message, into: Piece | None, adds: bool = False, weight: float = 1.0):
        """A message is waited for, received, and added or taken up."""
        world, job, here_s = self.world, self.world.job, self.world.time_s
        version, size_bytes, _ = world.sent.pop(id(message), (0, 0.0, self.me.rank))
        local = job.host(message.sender) == job.host(self.me.rank)
        moves_s = size_bytes / job.local_bandwidth if local else job.gap_s + size_bytes / job.bandwidth
        moves_s = 0.0 if message.flow else moves_s  # of one that is asked for, nothing has moved
        moving_s = max(self.since_s, here_s - moves_s)
        yield from super()._accept(message, into, adds, weight)
        landed_s = world.time_s if into is None else self.spans[-1][0]  # where the sum begins
        about: dict[str, Any] = {"size_bytes": round(size_bytes), "peer": message.sender, "version": version}
        self._row("wait", self.since_s, moving_s, peer=message.sender)
        self._row("receive", moving_s, landed_s, **about)
        if into is None or (into.vector not in ("weights", "gradient") and not adds):
            world.held[id(message)] = message, about
        else:
            self._joined(into, message, adds, landed_s, about)
        self.since_s = world.time_s

    def _joined(self, into: Piece, message: Message, adds: bool, since_s: float, about: dict[str, Any]) -> None:
        """A message has been added to a piece, or new weights of a server have been taken up."""
        if adds:
            counts = into.vector == "gradient" and self.me.rank in self.me.servers
            self._row("reduce", since_s, samples=round(message.samples) if counts else 0, **about)
        elif into.vector == "weights" and message.sender in self.me.servers:
            self._row("update", since_s, **about)
            if message.sender == self.me.master:
                self.world.versions[self.me.rank] = about["version"]


class ObservedWorld(EventWorld):
    """An event world that keeps a row of each activity.

    Attributes:
        rows: so far; the end of one of a message may be its handle.
        sent: version, bytes and receiver of messages that nobody has taken.
        held: messages that were not put into weights or gradients when they were taken, until they are mixed.
        versions: updates that each rank's weights have seen.
        read: those that the oldest weights had seen which are in each rank's gradient; None: it begins anew.
        firsts: where the first piece begins that each rank has updated.
        computing: the last row of each text in which it computes.
        leaving: the row of each message that is sent, by its handle.
    """

    task_class = Observed

    def __init__(self, job: Job, text: Text, values=None, most_bytes: float = math.inf):
        super().__init__(job, text, values, most_bytes)
        self.rows, self.versions, self.firsts = list[Activity](), [0] * job.ranks, dict[int, int]()
        self.read: list[int | None] = [None] * job.ranks
        self.sent, self.computing = dict[int, tuple[int, float, int]](), dict[Task, int]()
        self.leaving = dict[int, int]()
        self.held: dict[int, tuple[Message, dict[str, Any]]] = {}
        self._left_s = [0.0] * job.ranks  # when the last message of each has left
        links: Any = self.links
        links.send, links.lose = partial(self._send, links.send), partial(self._lose, links.lose)

    def _send(self, send, task: Observed, message: Message, to: int, size_bytes: float) -> Handle:
        """Send a message: its bytes begin to leave once those before have left."""
        rank, version = task.me.rank, self.versions[task.me.rank]
        oldest = self.read[rank]
        if task.command.piece.vector == "gradient" and oldest is not None:
            version = oldest
        handle = send(task, message, to, size_bytes)
        self.sent[id(message)] = version, size_bytes, to
        begin_s = min(max(task.since_s, self._left_s[rank]), handle.done_s)
        self._left_s[rank] = max(begin_s, handle.done_s) if handle.done_s < math.inf else begin_s
        waited_for = handle if task.command.taken else message.taken or handle
        self.leaving[id(waited_for)] = len(self.rows)
        task._row("send", begin_s, message.taken or handle, size_bytes=round(size_bytes), peer=to, version=version)
        return handle

    def _lose(self, lose, message: Message) -> None:
        """A message that nobody takes has come all the same."""
        lose(message)
        version, size_bytes, to = self.sent.pop(id(message), (0, 0.0, NOBODY))
        if to != NOBODY:
            about = {"bytes": round(size_bytes), "peer": message.sender, "version": version}
            self.rows.append(Activity(self.time_s, self.time_s, to, max(0, self.ranks[to].round), "receive", **about))

    def end_round(self, me) -> None:
        """A round ends with a wait of no time, which is for nobody."""
        super().end_round(me)
        self.rows.append(Activity(self.time_s, self.time_s, me.rank, me.step, "wait", version=self.versions[me.rank]))

    def activities(self) -> list[Activity]:
        """All rows: what is under way at the end is left out, and waits of a rank that works meanwhile."""
        rows = [row._replace(end_s=getattr(row.end_s, "done_s", row.end_s)) for row in self.rows]
        rows = [row for row in rows if row.end_s <= self.time_s]
        at_once = [row.activity != "wait" or row.start_s == row.end_s for row in rows]
        found = [row for row, kept in zip(rows, at_once, strict=True) if kept or not self.started[row.rank]]
        for rank in (rank for rank, others in enumerate(self.started) if others):
            of_rank = [row for row in rows if row.rank == rank]
            found += idle_parts(
                [row for row in of_rank if row.activity == "wait"], [r for r in of_rank if r.activity in APART]
            )
        return found


def idle_parts(waits: list[Activity], works: list[Activity]) -> list[Activity]:
    """The parts of some waits in which no work is under way, each moment once."""
    found, works, k, free_s = [], sorted(works), 0, 0.0
    for wait in sorted(waits):
        begin_s = max(wait.start_s, free_s)
        while begin_s < wait.end_s:
            while k < len(works) and works[k].start_s <= begin_s:
                begin_s, k = max(begin_s, works[k].end_s), k + 1
            end_s = min(wait.end_s, works[k].start_s if k < len(works) else wait.end_s)
            if begin_s < end_s:
                found.append(wait._replace(start_s=begin_s, end_s=end_s))
            begin_s = max(begin_s, end_s)
        free_s = max(free_s, begin_s)
    return found
