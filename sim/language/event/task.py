"""One text of a rank in the event world: its commands, one after another, and how long each takes."""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Callable, Generator
from functools import partial
from pathlib import Path
from traceback import extract_tb
from typing import Any

from sim.base import own
from sim.base.errors import RunFailed, WrongSetting, WrongText
from sim.language import commands
from sim.language.event.mail import among
from sim.language.job import message_of
from sim.language.pieces import Handle, Message, Piece
from sim.language.rank import Rank

LANGUAGE = str(Path(__file__).parents[1])
MOST_AT_ONCE = 1_000_000  # requests of a text without any time passing


class Task:
    """One text of a rank.

    Args:
        world: sim.language.event.world.EventWorld.
        text: its generator.
        number: 0 is the main text; then in the order in which texts were started at this rank.
        after: handles that are done before it begins.
        started: the place that started it, as file:line.
    """

    def __init__(
        self, world, me: Rank, text: Generator, number: int, after: tuple[Handle, ...] = (), started: str = ""
    ):
        self.world, self.me, self.text, self.number, self.started = world, me, text, number, started
        self.count = self.turn = 0  # requests made, and times that it went on
        self.who: int | None = me.rank  # that computes; None of a runtime's other threads
        # Its last core, until when, its turn's beginning (cores.InTurns).
        self.worked: tuple[Any, float, float] = (None, -1.0, 0.0)
        self.waits_for, self.handle = "its beginning", Handle(text=self)
        self.awaited: range | list[int] = range(0)  # ranks whose messages may come no more
        self._running = self._run(after)

    @property
    def key(self) -> tuple[int, int, int]:
        """By which events of one moment are ordered."""
        return self.me.rank, self.number, self.count

    # ---- going on and waiting

    def go(self) -> None:
        """Go on until the text waits, or has ended."""
        self.turn += 1
        try:
            self.waits_for = next(self._running)
        except StopIteration:
            self.world.ended(self)

    def waker(self, turn: int) -> Callable[[], None]:
        """What goes on with the text if it still waits as it did at that turn."""
        return lambda: self.go() if self.turn == turn else None

    def end(self) -> None:
        """Give up the text where it is."""
        self.turn += 1
        self._running.close()
        self.text.close()
        self.world.ended(self)

    def _run(self, after: tuple[Handle, ...]):
        yield from self._until(after, len(after))
        reply, time_s, made = None, -1.0, 0
        while True:
            command = self._next(reply)
            if command is None:
                return
            self.count += 1
            if time_s != self.world.time_s:
                time_s, made = self.world.time_s, 0
            made += 1
            if made > MOST_AT_ONCE:
                raise self._wrong(f"{MOST_AT_ONCE:,} requests without any time passing")
            reply = yield from self.execute(command)

    def execute(self, command):
        """What a command does: a generator whose result the text gets."""
        return WAYS[type(command)](self, command)

    def _next(self, reply):
        """The next command of the text; None at its end."""
        try:
            command = self.text.send(reply)
        except StopIteration:
            return None
        except (RunFailed, WrongSetting):
            raise
        except (Exception, SystemExit) as error:
            frames = [one for one in extract_tb(error.__traceback__) if not one.filename.startswith(LANGUAGE)]
            where = f"{os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else self.started
            raise WrongText(f"{self.world.text.name}, rank {self.me.rank}, {where}: {own.complaint(error)}") from error
        if type(command) not in WAYS:
            raise self._wrong("a text yields from primitives of me alone: `yield from me.NAME(...)`")
        if said := commands.wrong(command):
            raise self._wrong(said)
        return command

    def _until(self, handles, needed: int):
        """Wait until so many of the handles are done."""
        if self._are_done(handles, needed):
            return
        waiting = self._handles(handles, needed)
        if all(handle.text is None for handle in handles):
            yield from self._seen(waiting)
        else:
            yield from waiting

    def _are_done(self, handles, needed: int) -> bool:
        return sum(handle.done_s <= self.world.time_s for handle in handles) >= needed

    def _handles(self, handles, needed: int):
        while not self._are_done(handles, needed):
            for handle in handles:
                if handle.done_s == math.inf:
                    handle.waiting.append((self, self.turn))
            end_s = sorted(handle.done_s for handle in handles)[needed - 1]
            if end_s < math.inf:
                self.world.at(end_s, self.key, self.waker(self.turn))
            yield "a handle"

    def _seen(self, waiting: Generator):
        """Wait for what a rank that polls sees at its next poll."""
        polls = self.world.polls[self.me.rank] if self.world.polls else None
        if polls is None:
            yield from waiting
            return
        since_s = self.world.time_s
        polls.begin(self.key)
        try:
            yield from waiting
        finally:
            polls.end()
        if late_s := polls.late_s(since_s):
            self.world.at(self.world.time_s + late_s, self.key, self.waker(self.turn))
            yield "its next poll"
            yield from self._spend(self.world.job.poll_s)

    def place(self) -> str:
        """Where the text is: rank, text, and the line of the source that is not the language's own."""
        text: Any = self.text
        where, name = self.started, text.__name__
        while text is not None and inspect.isgenerator(text) and text.gi_frame is not None:
            if not text.gi_code.co_filename.startswith(LANGUAGE):
                where = f"{os.path.basename(text.gi_code.co_filename)}:{text.gi_frame.f_lineno}"
                break
            text = text.gi_yieldfrom
        named = f" ({name}, text {self.number})" if self.number else ""
        return f"rank {self.me.rank}{named}, {where}"

    def _wrong(self, said: str) -> WrongText:
        return WrongText(f"{self.world.text.name}, {self.place()}: {said}")

    # ---- time and work

    def _spend(self, seconds: float, device=None):
        """Work for some seconds of a core of speed 1, or of another device."""
        rank, works = self.me.rank, self.who is not None
        if seconds > 0:
            self.world.busy[rank].begin(works)
            try:
                yield from (device or self.world.cores[rank]).work(self, seconds / self.world.job.speed(rank))
            finally:
                self.world.busy[rank].end(works)

    def _overhead(self, seconds: float):
        """Send or take a message for some seconds of a core, when the rank has done so with those that texts asked for before."""
        line = self.world.lines[self.me.rank]
        if seconds <= 0:
            return
        line.append(self)
        try:
            if line[0] is not self:
                yield "other messages of its rank"
            yield from self._spend(seconds)
        finally:
            was_first = line[0] is self
            line.remove(self)
            if was_first and line:
                self.world.at(self.world.time_s, line[0].key, line[0].waker(line[0].turn))

    def sleep(self, command: commands.Sleep):
        """Sleep as the law says."""
        seconds, busy = self.world.sleeps[self.me.rank].next(max(0, self.me.round)), self.world.busy[self.me.rank]
        if seconds > 0:
            self.world.costs[self.me.rank].slept = True
            busy.begin()
            begin_s = self.world.time_s
            self.world.at(begin_s + (seconds + self.world.job.oversleep_s), self.key, self.waker(self.turn))
            try:
                yield "the end of its sleep"
            finally:
                busy.end()
                if self.world.threads:
                    self.world.threads[self.me.rank].slept_s += self.world.time_s - begin_s

    def _pass(self, command, to_s: list[float], loop_s: float, opens: bool):
        """Compute a stretch of layers; returns how many samples.

        Args:
            to_s: seconds up to each layer, of a minibatch.
            loop_s: seconds besides.
            opens: whether a gradient begins with it.
        """
        job, me = self.world.job, self.me
        if not 0 <= command.first <= command.stop <= len(me.layers):
            raise self._wrong(f"layers {command.first} to {command.stop} of {len(me.layers)}")
        if not 0 <= command.micro < command.of <= job.batch:
            raise self._wrong(f"micro-batch {command.micro} of {command.of}, of a minibatch of {job.batch} samples")
        samples, costs = len(job.micro_batch(command.micro, command.of)), self.world.costs[me.rank]
        share = samples / job.batch
        if opens:
            yield from self._spend(costs.fetch_s(share))
        if command.stop > command.first:
            part = max(job.least, job.fixed + (1 - job.fixed) * share)
            seconds = (to_s[command.stop] - to_s[command.first]) * part + (
                loop_s if opens and command.micro == 0 else 0.0
            )
            copied = float(command.micro == 0) if job.copied_at_once else share
            yield from self._spend(job.to_device_s * copied if opens else 0.0)
            yield from self._spend(costs.pass_s(seconds, opens), self.world.of_passes[me.rank])
            costs.warm_s = self.world.time_s
        return samples

    def forward(self, command: commands.Forward):
        """The forward pass through some layers; from the first one on, samples are fetched before it."""
        if self.world.threads:
            self.world.threads[self.me.rank].begin()
        yield from self._pass(command, self.world.job.forward_to, self.world.job.loop_s, command.first == 0)
        self.world.values.forward(self.me, command)

    def backward(self, command: commands.Backward):
        """The backward pass through some layers; through none, their gradients are joined."""
        samples = yield from self._pass(command, self.world.job.backward_to, 0.0, False)
        if command.stop == 0:
            yield from self._spend(self.world.job.pack_s)
            self.world.costs[self.me.rank].warm_s = self.world.time_s
            return
        self.world.samples.computed(self.me, samples, self.me.of(self.me.weights, command.first, command.stop).items)
        self.world.values.backward(self.me, command)

    def update(self, command: commands.Update):
        """The optimiser."""
        if command.piece.vector != "weights":
            raise self._wrong(f"me.update of {command.piece.vector}: a piece of me.weights")
        costs = self.world.costs[self.me.rank]
        yield from self._spend(costs.update_s(command.piece.items * command.share))
        costs.warm_s = self.world.time_s
        self.world.samples.updated(self.me, command.samples, command.piece.items)
        self.world.values.update(self.me, command)

    def mix(self, command: commands.Mix):
        """A sum with weights."""
        job, into, what = self.world.job, command.into, command.what
        self._check(what.items, into, "mixed into")
        share = what.share if isinstance(what, Message) else 1.0
        if isinstance(what, Message) and command.a == 0 and command.b == 1:
            yield from self._spend(job.put_s(into, share))
        elif command.a or command.b:  # else the memory is set to zeros
            yield from self._spend(job.sum_s(into.items, share))
        if into == self.me.gradient and command.a == 0:
            self.world.samples.begin_anew(self.me)
        if into == self.me.gradient and command.b and isinstance(what, Message):
            self.world.samples.added(self.me, what.samples)
        self.world.values.mix(self.me, command)

    def work(self, command: commands.Work):
        """Other work of the core."""
        job = self.world.job
        yield from self._spend(max(command.seconds, command.flops / job.flops, command.bytes / job.memory_bandwidth))

    def evaluate(self, command: commands.Evaluate):
        """An evaluation, where it is due."""
        if (self.me.step + 1) % self.world.job.evaluate_every == 0:
            yield from self._spend(self.world.job.evaluate_s)

    # ---- messages

    def post(self, command: commands.Post):
        """A message leaves; the text goes on."""
        job, me, piece = self.world.job, self.me, command.piece
        if not (isinstance(command.to, int) and 0 <= command.to < me.n):
            raise self._wrong(f"me.post to rank {command.to!r} of {me.n}")
        here = job.host(command.to) == job.host(me.rank)
        size_bytes, overhead_s = job.bytes_of(piece.items, command.share), 0.0 if here else job.overhead_s
        announces = self.world.links.announces(size_bytes)
        yield from self._overhead(0.0 if announces else overhead_s)
        samples = self.world.samples.at_hand(me) if piece.vector == "gradient" else 0.0
        values = self.world.values.read(me, piece)
        message = Message(me.rank, me.step, piece.items, samples, values, command.share)
        if here or command.taken:
            message.taken = Handle()
        for rank in (me.rank, command.to) if self.world.threads else ():
            self.world.threads[rank].pass_on(job.local_background_s if here else job.message_background_s)
        handle = self.world.links.send(self, message, command.to, size_bytes)
        self.count += announces  # the message goes before the text, which works for it behind its post
        yield from self._overhead(overhead_s if announces else 0.0)
        return message.taken or handle

    def take(self, command: commands.Take):
        """The next message, if it comes in time."""
        mail, until_s = self.world.mail[self.me.rank], command.until_s
        self._check_peers("take", command.frm)
        find = partial(mail.take, self.number, command.frm, command.newest)
        message = find()
        if message is None and until_s == math.inf:
            self.awaited = among(command.frm)
            while message is None and self.may_come():
                yield from self._while_it_may_come(command.frm)
                message = find()
        elif message is None and (until_s is None or until_s > self.world.time_s):
            if until_s is not None:
                self.world.at(until_s, self.key, self.waker(self.turn))
            yield from self._for_mail(command.frm)
            message = find()
        if message is not None:
            yield from self._accept(message, command.into, command.adds, command.weight)
        return message

    def follow(self, command: commands.Follow):
        """The newest message of each rank of a group, as long as their main texts go on; the first one's step becomes this rank's."""
        self._check_peers("follow", command.frm)
        me, mail, group, step = self.me, self.world.mail[self.me.rank], among(command.frm), self.me.step
        for k, frm in enumerate(group):
            while (message := mail.take(self.number, frm, newest=True)) is None:
                self.awaited = among(frm)
                if not self.may_come():
                    return False
                if not command.wait:
                    break
                yield from self._while_it_may_come(frm)
            if message is not None:
                step = message.step if k == 0 else step
                yield from self._accept(message, command.into.part(k, len(group)))
        me.step, me.round = step, me.round + 1
        return True

    def may_come(self) -> bool:
        """Whether a rank goes on that may send what is awaited, or has sent what is under way to this text."""
        coming = self.world.mail[self.me.rank].coming
        return any((frm, 0) in self.world.tasks or coming[frm, self.number] > 0 for frm in self.awaited)

    def _while_it_may_come(self, frm: int | range):
        """Wait until a message comes, or nothing that is awaited may come any more."""
        for one in self.awaited:
            self.world.followers[one][self] = self.turn
        yield from self._for_mail(frm)

    def _check_peers(self, name: str, frm: int | range) -> None:
        group = among(frm) if isinstance(frm, int | range) else []
        if not len(group) or not all(0 <= rank < self.me.n for rank in (group[0], group[-1])):
            raise self._wrong(f"me.{name} from {frm!r}: a rank, or a range of some of the {self.me.n} ranks")

    def _for_mail(self, frm: int | range):
        """Wait until a message comes, or something else goes on with the text; nobody polls for one of its own rank."""
        waiting = self._mail(frm)
        return waiting if among(frm) == range(self.me.rank, self.me.rank + 1) else self._seen(waiting)

    def _mail(self, frm: int | range):
        mail = self.world.mail[self.me.rank]
        mail.waiting[self.number] = self, frm
        try:
            yield message_of(among(frm))
        finally:
            del mail.waiting[self.number]

    def _accept(self, message: Message, into: Piece | None, adds: bool = False, weight: float = 1.0):
        """A message is taken, and becomes a piece, or part of a sum."""
        job, found_s = self.world.job, self.world.time_s
        try:
            is_far = job.host(message.sender) != job.host(self.me.rank)
            yield from self._overhead(job.taken_s(is_far, message.items, message.share))
            if message.flow:
                yield from self._seen(self.world.links.land(self, message.flow, found_s))
        finally:
            self.world.taken(message)
        if into is None:
            return
        self._check(message.items, into, f"taken from rank {message.sender} into")
        sum_s = job.sum_s(into.items, message.share) if adds or weight != 1 else 0.0
        yield from self._spend(sum_s + (0.0 if adds else job.put_s(into, message.share)))
        if into.vector == "gradient" and adds:
            self.world.samples.added(self.me, message.samples)
        self.world.values.put(self.me, into, message.values, adds, weight)

    def _check(self, items: int, into: Piece, how: str) -> None:
        if items != into.items:
            raise self._wrong(f"{items:,} items {how} {into.items:,} of {into.vector}")

    # ---- texts and memory

    def start(self, command: commands.Start):
        """Another text of this rank begins."""
        yield from ()
        self.world.started[self.me.rank] += 1
        place = self.place().partition(", ")[2]
        task = type(self)(
            self.world, self.me, command.text, self.world.started[self.me.rank], tuple(command.after), place
        )
        self.world.start(task)
        return task.handle

    def wait(self, command: commands.Wait):
        """Until some handles are done."""
        if command.needed > len(command.handles):
            raise self._wrong(f"me.wait for {command.needed} of {len(command.handles)} handles")
        yield from self._until(command.handles, command.needed)

    def stop(self, command: commands.Stop):
        """Another text ends where it is."""
        yield from ()
        task = command.handle.text
        if task is None or task is self:
            raise self._wrong("me.stop of a message, or of the text itself: give it the handle of another text")
        if command.handle.done_s == math.inf:
            task.end()

    def drop(self, command: commands.Drop):
        """Memory is free."""
        yield from ()
        self.world.values.drop(self.me, command)


WAYS: dict[type, Callable] = {
    kind: getattr(Task, kind.__name__.lower()) for kind in vars(commands).values() if hasattr(kind, "_fields")
}
