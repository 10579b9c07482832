"""The MPI world: one loop resumes the texts of a rank, one thread computes, and the main thread alone calls MPI (FUNNELED)."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from real.language.messages import ENDED, LAST, Messages
from real.worlds.clock import Clock
from sim.base.errors import RunFailed, WrongText
from sim.language import commands
from sim.language.event.mail import among
from sim.language.event.task import LANGUAGE, named
from sim.language.job import Job
from sim.language.learning import Values
from sim.language.pieces import Handle, Message, Piece
from sim.language.rank import Rank
from sim.language.samples import Samples
from sim.language.text import Text
from sim.platform.polling import pause_s

PATIENCE_S = 600.0  # without any text that goes on

Answer = tuple[Callable[[], bool], Callable[[], Any]]  # whether a command is over, and what it gives


def nothing() -> None:
    """What most commands give."""


@dataclass(eq=False)
class Task:
    """A text of this rank that is under way.

    Args:
        number: of the text at this rank, 0 the main one.
        ready, give: of the command under way.
        waits_for: that command, for errors.
    """

    text: Generator
    number: int
    handle: Handle
    ready: Callable[[], bool]
    give: Callable[[], Any] = nothing
    waits_for: str = "its beginning"

    @property
    def place(self) -> str:
        """The line of the source at which the text stands, as FILE:LINE; the language's own lines are passed over."""
        text: Any = self.text
        while text.gi_code.co_filename.startswith(LANGUAGE) and text.gi_yieldfrom is not None:
            text = text.gi_yieldfrom
        line = text.gi_frame.f_lineno if text.gi_frame else text.gi_code.co_firstlineno
        return f"{text.gi_code.co_filename.rpartition('/')[2]}:{line}"


@dataclass
class Measured:
    """What one rank has measured.

    Args:
        ends_s: of its rounds, seconds of the common clock.
        seconds: of each command that computed, by the command without its weight, in order.
        samples: that entered updates.
    """

    samples: Samples
    ends_s: list[float] = field(default_factory=list)
    seconds: dict[tuple, list[float]] = field(default_factory=dict)


class MpiWorld:
    """One rank of a job, for real.

    Args:
        comm: as many ranks as the job has.
        values: its vectors, and what computes with them.
        clock: seconds since the common start.
    """

    def __init__(self, comm, job: Job, text: Text, values: Values, clock: Clock):
        text.check(job)
        self.me = Rank(comm.rank, job, text.servers, self, text.data == "shared")
        self._comm, self._job, self._text, self._values, self._clock = comm, job, text, values, clock
        self._sleeps = job.sleeps(comm.rank, text.servers)
        self._messages, self._computing = Messages(comm), ThreadPoolExecutor(1)
        self._has_computed = threading.Event()  # since the loop has looked
        self._started, self._tasks = 0, list[Task]()
        self.measured = Measured(Samples([self.me] * job.ranks))
        values.begin([self.me])

    # ---- what a rank asks of its world

    def now_s(self, me: Rank) -> float:
        """Seconds since the common start."""
        return self._clock()

    def begin_round(self, me: Rank) -> None:
        """A round has no beginning of its own here."""

    def end_round(self, me: Rank) -> None:
        """Note when a round has ended."""
        self.measured.ends_s.append(self._clock())

    # ---- the loop

    def run(self) -> Measured:
        """Run the text of this rank to its end, and others that it has started until the main texts of all ranks have ended.

        Raises:
            RunFailed: no text goes on for ten minutes.
            WrongText: a text does what it may not do.
        """
        main = self._spawn(self._text(self.me), 0)
        try:
            self._until(lambda: math.isfinite(main.done_s))
            self._messages.tell(ENDED)
            self._until(lambda: self._messages.all_ended)
            self._tasks.clear()
            self._messages.tell(LAST)
            self._until(lambda: self._messages.are_over)
        finally:
            self._computing.shutdown(cancel_futures=True)
        return self.measured

    def _until(self, over: Callable[[], bool]) -> None:
        """Move messages and resume texts until something is over, asleep while nothing happens."""
        since_s = time.perf_counter()
        while not over():
            moved = self._messages.move(self._clock())
            for task in list(self._tasks):
                while task in self._tasks and task.ready():
                    self._resume(task)
                    moved = True
            waited_s = time.perf_counter() - since_s
            if moved:
                since_s = time.perf_counter()
            elif waited_s > PATIENCE_S:
                raise RunFailed(f"waited {PATIENCE_S:g} s: {self._dead_end()}")
            else:
                self._has_computed.wait(pause_s(waited_s))
            self._has_computed.clear()

    def _dead_end(self) -> str:
        waiting = [f"rank {self.me.rank}, {task.place} for {task.waits_for}" for task in self._tasks]
        return "; ".join(waiting) or f"rank {self.me.rank} for others to receive its messages"

    def _spawn(self, text: Generator, number: int, after: Sequence[Handle] = ()) -> Handle:
        handle = Handle()
        handle.text = Task(text, number, handle, lambda: all(map(self._is_done, after)))
        self._tasks.append(handle.text)
        return handle

    def _resume(self, task: Task) -> None:
        """Give a text what its command has given, and begin with the next one."""
        try:
            command = task.text.send(task.give())
        except StopIteration:
            self._end(task)
            return
        name = type(command).__name__.lower()
        task.waits_for = name
        task.ready, task.give = getattr(self, f"_{name}")(task, command)

    def _end(self, task: Task) -> None:
        self._tasks.remove(task)
        task.handle.done_s = self._clock()

    def _is_done(self, handle: Handle) -> bool:
        return handle.done_s <= self._clock()

    # ---- time and work

    def _sleep(self, task: Task, command: commands.Sleep) -> Answer:
        end_s = self._clock() + self._sleeps.next(max(0, self.me.round))
        return (lambda: self._clock() >= end_s), nothing

    def _later(self, which: tuple, work: Callable, *given, then: Callable[[], Any] = nothing) -> Answer:
        """In the thread that computes, behind what it has to do already; `then` by the main thread."""

        def timed() -> None:
            begin_s = time.perf_counter()
            work(*given)
            self.measured.seconds.setdefault(which, []).append(time.perf_counter() - begin_s)

        future: Future = self._computing.submit(timed)
        future.add_done_callback(lambda _: self._has_computed.set())
        return future.done, lambda: (future.result(), then())[1]

    def _forward(self, task: Task, command: commands.Forward) -> Answer:
        which = "forward", command.first, command.stop, command.of
        return self._later(which, self._values.forward, self.me, command)

    def _backward(self, task: Task, command: commands.Backward) -> Answer:
        if command.stop == 0:  # gradients are joined: here they are in one vector
            return (lambda: True), nothing
        me, samples = self.me, len(self._job.micro_batch(command.micro, command.of))
        items = me.of(me.weights, command.first, command.stop).items
        which = "backward", command.first, command.stop, command.of
        then = lambda: self.measured.samples.computed(me, samples, items)  # noqa: E731
        return self._later(which, self._values.backward, me, command, then=then)

    def _update(self, task: Task, command: commands.Update) -> Answer:
        items = command.piece.items
        then = lambda: self.measured.samples.updated(self.me, command.samples, items)  # noqa: E731
        return self._later(("update", items), self._values.update, self.me, command, then=then)

    def _mix(self, task: Task, command: commands.Mix) -> Answer:
        me, samples = self.me, self.measured.samples
        self._check(task, command.what.items, command.into, "mixed into")
        if command.into == me.gradient and command.a == 0:
            samples.begin_anew(me)
        if command.into == me.gradient and command.b and isinstance(command.what, Message):
            samples.added(me, command.what.samples)
        return self._later(("mix", command.into.items), self._values.mix, me, command)

    def _work(self, task: Task, command: commands.Work) -> Answer:
        job = self._job
        seconds = max(command.seconds, command.flops / job.flops, command.bytes / job.memory_bandwidth)
        return self._later(("work",), time.sleep, seconds)

    def _evaluate(self, task: Task, command: commands.Evaluate) -> Answer:
        return (lambda: True), nothing  # a chain of random numbers has no test samples

    # ---- messages

    def _post(self, task: Task, command: commands.Post) -> Answer:
        me, piece = self.me, command.piece
        if not 0 <= command.to < me.n or command.to == me.rank:
            raise self._wrong(task, f"me.post to rank {command.to} of {me.n}, from rank {me.rank}")
        if command.share != 1:
            raise self._wrong(task, f"me.post of a share, {command.share:g}: only simulated")
        samples = self.measured.samples.at_hand(me) if piece.vector == "gradient" else 0.0
        values = self._values.view(me, piece)
        handle = self._messages.post(values, command.to, task.number, me.step, samples)
        return (lambda: True), lambda: handle

    def _take(self, task: Task, command: commands.Take) -> Answer:
        frm, messages = among(command.frm), self._messages
        until_s = math.inf if command.until_s is None else command.until_s

        def taken() -> Message | None:
            if not messages.has(task.number, frm):
                return None
            message = messages.take(task.number, frm, command.newest)
            if command.into is not None:
                self._put(task, message, command.into, command.adds, command.weight)
            return message

        task.waits_for = f"a message of {named(command.frm)}"

        def over() -> bool:
            """Whether nothing is waited for any more: it is late, or nothing can come."""
            return self._clock() >= until_s or (
                command.until_s == math.inf and all(one in messages.ended for one in frm)
            )

        return (lambda: messages.has(task.number, frm) or over()), taken

    def _follow(self, task: Task, command: commands.Follow) -> Answer:
        group, messages, me = among(command.frm), self._messages, self.me

        def here(frm: int) -> bool:
            return messages.has(task.number, range(frm, frm + 1))

        def followed() -> bool:
            if any(frm in messages.ended and not here(frm) for frm in group):
                return False
            for k, frm in enumerate(group):
                if not here(frm):  # of a text that does not wait for news
                    continue
                message = messages.take(task.number, range(frm, frm + 1), True)
                me.step = message.step if k == 0 else me.step
                self._put(task, message, command.into.part(k, len(group)))
            me.round += 1
            return True

        task.waits_for = f"a message of {named(command.frm)}"
        return (lambda: not command.wait or all(here(frm) or frm in messages.ended for frm in group)), followed

    def _put(self, task: Task, message: Message, into: Piece, adds: bool = False, weight: float = 1.0) -> None:
        self._check(task, message.items, into, f"taken from rank {message.sender} into")
        if into.vector == "gradient" and adds:
            self.measured.samples.added(self.me, message.samples)
        self._values.put(self.me, into, message.values, adds, weight)

    def _check(self, task: Task, items: int, into: Piece, how: str) -> None:
        if items != into.items:
            raise self._wrong(task, f"{items:,} items {how} {into.items:,} of {into.vector}")

    def _wrong(self, task: Task, said: str) -> WrongText:
        return WrongText(f"{self._text.name}, rank {self.me.rank}, {task.place}: {said}")

    # ---- texts and memory

    def _start(self, task: Task, command: commands.Start) -> Answer:
        self._started += 1
        handle = self._spawn(command.text, self._started, command.after)
        return (lambda: True), lambda: handle

    def _wait(self, task: Task, command: commands.Wait) -> Answer:
        return (lambda: sum(map(self._is_done, command.handles)) >= command.needed), nothing

    def _stop(self, task: Task, command: commands.Stop) -> Answer:
        other = command.handle.text
        if other is None or other is task:
            raise self._wrong(task, "me.stop of a message, or of the text itself: give it the handle of another text")
        if other in self._tasks:
            other.text.close()
            self._end(other)
        return (lambda: True), nothing

    def _drop(self, task: Task, command: commands.Drop) -> Answer:
        self._values.drop(self.me, command)
        return (lambda: True), nothing
