"""The MPI world: one loop resumes the texts of a rank, one thread computes, and the main thread alone calls MPI (FUNNELED)."""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from traceback import extract_tb
from typing import Any

from real.language.computing import Computing, Work
from real.language.library import Summed
from real.language.messages import ENDED, LAST, Letter, Messages
from real.language.record import Record
from real.launching.clock import Clock
from real.recording.recorder import Recorder
from sim import needs
from sim.base import own
from sim.base.errors import RunFailed, WrongSetting, WrongText
from sim.language import commands
from sim.language.event.mail import among
from sim.language.event.task import LANGUAGE
from sim.language.job import Job, message_of
from sim.language.learning import Values
from sim.language.pieces import Handle, Message, Piece
from sim.language.rank import Rank
from sim.language.samples import Samples
from sim.language.text import Text
from sim.platform.polling import pause_s

SPIN_S = 50e-6  # of polls before the first sleep of a wait, where each rank of the host may have a core
QUICK_ITEMS = 2**18  # that are mixed in less time than another thread is woken in
PATIENCE_S = 600.0  # without any text that goes on
COMPUTING = commands.Forward, commands.Backward, commands.Update, commands.Mix, commands.Work, commands.Evaluate
MESSAGES = commands.Post, commands.Take, commands.Follow, Summed
OTHERS = commands.Sleep, commands.Start, commands.Wait, commands.Stop, commands.Drop

Answer = tuple[Callable[[], bool], Callable[[], Any]]  # whether a command is over, and what it gives
OVER = None  # in place of a command: the text has ended


def nothing() -> None:
    """What most commands give."""


def at_once() -> bool:
    """Whether a command is over that takes no time."""
    return True


@dataclass(eq=False)
class Task:
    """A text of this rank that is under way.

    Args:
        number: of the text at this rank, 0 the main one.
        ready, give: of the command under way.
        command: under way; none before the text begins.
        computes: the thread that computes has it.
        asked: commands that it has asked for in that thread, and that are to begin.
        error: that has ended it there.
    """

    text: Generator
    number: int
    handle: Handle
    ready: Callable[[], bool]
    give: Callable[[], Any] = nothing
    command: Any = None
    computes: bool = False
    asked: list = field(default_factory=list)
    error: BaseException | None = None

    @property
    def waits_for(self) -> str:
        """What its command waits for, in words."""
        if self.command is None:
            return "its beginning"
        frm = getattr(self.command, "frm", None)
        return type(self.command).__name__.lower() if frm is None else message_of(among(frm))

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
        seconds: of a core, of each command that computed, by the command without its weight, in order.
        samples: that entered updates.
        handled_s: seconds of a core until the end of each round in which the main thread moved messages and resumed texts.
        polls, polled_s: how often it looked in vain, and seconds of a core for that.
        ran_out: how often the last micro-batch of a minibatch was over before the text's time limit.
    """

    samples: Samples
    ends_s: list[float] = field(default_factory=list)
    seconds: dict[tuple, list[float]] = field(default_factory=dict)
    handled_s: list[float] = field(default_factory=list)
    polls: int = 0
    polled_s: float = 0.0
    ran_out: int = 0


class MpiWorld:
    """One rank of a job, for real.

    Args:
        comm: as many ranks as the job has.
        values: its vectors, and what computes with them.
        clock: seconds since the common start.
        recorder: keeps what the rank does; none if nobody reads it.
        here: whether each rank is on this one's host; all if not given.
        begun: called with each round of `me.steps()` that begins.
        core_s: seconds of a core that the calling thread has used; nothing if nobody asks what was measured.
    """

    def __init__(
        self,
        comm,
        job: Job,
        text: Text,
        values: Values,
        clock: Clock,
        recorder: Recorder | None = None,
        here: Sequence[bool] = (),
        begun: Callable[[int], None] = lambda step: None,
        core_s: Callable[[], float] = lambda: 0.0,
    ):
        text.checked(job)
        self.me = Rank(comm.rank, job, text.servers, self, text.data == "shared")
        self._comm, self._job, self._text, self._values, self._clock = comm, job, text, values, clock
        self._sleeps, self._begun = job.sleeps(comm.rank, text.servers), begun
        limit_s, self._since_s = getattr(text, "time_limit_s", math.inf), 0.0  # of a round, and when it has begun
        self._limit_s = limit_s if limit_s < math.inf else -math.inf
        delays = job.noise(comm.rank, text.servers, "delay")
        here = here or [True for _ in range(comm.size)]
        self._messages = Messages(comm, clock, values.kind, here, delays)
        self._spin_s = SPIN_S if sum(here) <= needs.cores() else 0.0
        self._record = Record(
            self.me,
            clock,
            recorder or Recorder(comm.rank),
            text.each and comm.rank in self.me.servers and len(self.me.workers) > 1,
        )
        self._computing, self._texts = (
            Computing(self._follow_on, self._computed),
            threading.RLock(),
        )  # one text goes on at a time
        self._has_computed = threading.Event()  # since the loop has looked
        self._started, self._tasks, self._handled_s, self._core_s = 0, list[Task](), 0.0, core_s
        self._here_s = 0.0  # seconds of a core that the main thread has computed
        self._begins = {of: getattr(self, f"_{of.__name__.lower()}") for of in (*COMPUTING, *MESSAGES, *OTHERS)}
        self.measured = Measured(Samples([self.me] * job.ranks))
        values.begin([self.me])
        values.record = self._record

    # ---- what a rank asks of its world

    def now_s(self, me: Rank) -> float:
        """Seconds since the common start."""
        return self._clock()

    def begin_round(self, me: Rank) -> None:
        """A round begins."""
        self._since_s = self._clock()
        self._begun(me.round)

    def end_round(self, me: Rank) -> None:
        """Note when a round has ended."""
        now_s = self._clock()
        self.measured.ends_s.append(now_s)
        self._record.add("wait", now_s, now_s)  # for nobody, by which traces without a master count steps
        self.measured.handled_s.append(self._handled_s)

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
            self._computing.close()
        return self.measured

    def _until(self, over: Callable[[], bool]) -> None:
        """Resume texts until something is over; move messages while none goes on, asleep while nothing happens."""
        since_s = time.perf_counter()
        while not over():
            begin_s = self._core_s() - self._here_s
            moved = self._go_on() or self._messages.move()
            waited_s = time.perf_counter() - since_s
            spent_s = self._core_s() - self._here_s - begin_s
            if moved:
                since_s = time.perf_counter()
                self._handled_s += spent_s
            elif waited_s > PATIENCE_S:
                raise RunFailed(f"waited {PATIENCE_S:g} s: {self._dead_end()}")
            else:
                self.measured.polls, self.measured.polled_s = self.measured.polls + 1, self.measured.polled_s + spent_s
                if waited_s > self._spin_s:
                    self._pause(pause_s(waited_s))

    def _go_on(self) -> bool:
        """Resume each text as long as nothing keeps it; whether there was one."""
        resumed = False
        for task in list(self._tasks):
            with self._texts:  # no other text goes on between commands that take no time
                while task in self._tasks and not task.computes and task.ready():
                    self._resume(task)
                    resumed = True
        return resumed

    def _pause(self, seconds: float) -> None:
        """Sleep, or wait until something is computed, which costs more."""
        if any(task.computes for task in self._tasks):
            self._has_computed.wait(seconds)
            self._has_computed.clear()
        else:
            time.sleep(seconds)

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
        if task.error is not None:
            raise task.error
        found = self._begun_with(task, task.asked.pop() if task.asked else self._next(task))
        alone = len(self._tasks) == 1
        if isinstance(found, Work) and alone and (found.quick or not self._messages.are_under_way):
            self._work_here(task, found)
        elif isinstance(found, Work):
            task.computes = True
            self._record.begin_work()
            self._computing.ask(task, found)
        elif found is not None:
            task.ready, task.give = found

    def _work_here(self, task: Task, work: Work) -> None:
        """Compute in the main thread: nothing else is to be done, and handing over to another thread takes longer than much of it."""
        begin_s, record = self._core_s(), self._record
        record.begin_work()
        work.run()
        record.end_work()
        self._here_s += self._core_s() - begin_s
        work.then()
        task.ready, task.give = at_once, nothing

    def _next(self, task: Task):
        """The next command of a text."""
        try:
            return task.text.send(task.give())
        except StopIteration:
            return OVER
        except (RunFailed, WrongSetting):
            raise
        except Exception as error:
            frames = [one for one in extract_tb(error.__traceback__) if not one.filename.startswith(LANGUAGE)]
            where = f"{os.path.basename(frames[-1].filename)}:{frames[-1].lineno}"
            raise WrongText(f"{self._text.name}, rank {self.me.rank}, {where}: {own.complaint(error)}") from error

    def _begun_with(self, task: Task, command) -> Answer | Work | None:
        """Begin with a command."""
        if command is OVER:
            self._end(task)
            return None
        task.command = command
        return self._begins[type(command)](task, command)

    # ---- in the thread that computes

    def _follow_on(self, task: Task, others_wait: bool) -> Work | None:
        """Resume a text that has computed: its next work, or None if it does something else, or it is not its turn."""
        task.ready, task.give = at_once, nothing
        with self._texts:
            if others_wait or task not in self._tasks:
                return None
            command = self._next(task)
            found = self._begun_with(task, command) if isinstance(command, COMPUTING) else None
            if isinstance(found, Work):
                return found
            task.asked.append(command)
            return None

    def _computed(self, task: Task, error: BaseException | None) -> None:
        task.error = error
        self._record.end_work()
        task.computes = False
        self._has_computed.set()

    def _end(self, task: Task) -> None:
        self._tasks.remove(task)
        task.handle.done_s = self._clock()

    def _is_done(self, handle: Handle) -> bool:
        return handle.done_s <= self._clock()

    # ---- time and work

    def _sleep(self, task: Task, command: commands.Sleep) -> Answer:
        begin_s, record = self._clock(), self._record
        end_s = begin_s + self._sleeps.next(max(0, self.me.round))
        if end_s == begin_s:
            return at_once, nothing
        record.begin_work()

        def awake() -> None:
            record.end_work()
            record.add("sleep", begin_s, record.now_s)

        return (lambda: self._clock() >= end_s), awake

    def _later(
        self,
        which: tuple,
        work: Callable,
        *given,
        then: Callable[[], Any] = nothing,
        row: tuple[Any, ...] = ("",),
        quick: bool = False,
    ) -> Work:
        """In the thread that computes; `then` before the text goes on.

        Args:
            row: activity, and samples, bytes, peer and version, of what is recorded; no name: nothing is.
        """
        activity, *about = row

        def timed() -> None:
            begin_s, of_core_s = self._clock(), self._core_s()
            work(*given)
            self.measured.seconds.setdefault(which, []).append(self._core_s() - of_core_s)
            end_s = self._clock()
            if activity:
                self._record.add(activity, begin_s, end_s, *about)

        def after() -> None:
            with self._texts:
                then()

        return Work(timed, after, quick)

    def _forward(self, task: Task, command: commands.Forward) -> Work:
        which = "forward", command.first, command.stop, command.of
        return self._later(which, self._values.forward, self.me, command)

    def _backward(self, task: Task, command: commands.Backward) -> Work:
        me, samples = self.me, len(self._job.micro_batch(command.micro, command.of))
        items = me.of(me.weights, command.first, command.stop).items
        which = "backward", command.first, command.stop, command.of
        if command.stop == 0:  # gradients are joined
            return self._later(which, self._values.backward, me, command)

        def then() -> None:
            self.measured.samples.computed(me, samples, items)
            if (command.first, command.micro) == (0, command.of - 1) and self._clock() < self._since_s + self._limit_s:
                self._run_out()

        return self._later(which, self._values.backward, me, command, then=then)

    def _run_out(self) -> None:
        self.measured.ran_out += 1
        if self.measured.ran_out == 1:
            said = f"ran out of data before the time limit in step {self.me.step}"
            print(f"rank {self.me.rank}: {said}", file=sys.stderr)

    def _update(self, task: Task, command: commands.Update) -> Work:
        items = command.piece.items
        then = lambda: self.measured.samples.updated(self.me, command.samples, items)  # noqa: E731
        return self._later(("update", items), self._update_now, command, then=then)

    def _update_now(self, command: commands.Update) -> None:
        record, start_s = self._record, self._clock()
        updated = self._values.update(self.me, command)
        samples = command.samples if record.updated(command.piece) else 0  # of all pieces once
        record.add("update", start_s, record.now_s, samples, self._job.bytes_of(updated))

    def _mix(self, task: Task, command: commands.Mix) -> Work:
        me, samples, what = self.me, self.measured.samples, command.what
        bytes = self._job.bytes_of(what.values.size if isinstance(what, Letter) else what.items)
        self._check(task, what.items, command.into, "mixed into")
        if command.into == me.gradient and command.a == 0:
            samples.begin_anew(me)
        if command.into == me.gradient and command.b and isinstance(what, Message):
            samples.added(me, what.samples)
        about = (
            (self._counted(command.into, what), bytes, what.sender, what.version)
            if isinstance(what, Letter)
            else (0, bytes)
        )
        row = ("reduce", *about) if command.a or command.b else ("",)  # which only sets memory to zeros
        then = nothing
        if isinstance(what, Letter) and (command.a, command.b) == (0, 1) and command.into.vector == "weights":
            row, then = ("update", 0, *about[1:]), lambda: self._taken_up(what)
        which, quick = ("mix", command.into.items), command.into.items <= QUICK_ITEMS
        return self._later(which, self._values.mix, me, command, then=then, row=row, quick=quick)

    def _counted(self, into: Piece, message: Letter) -> float:
        """The samples that a row of a sum has: a server's."""
        return message.samples if into.vector == "gradient" and self.me.rank in self.me.servers else 0.0

    def _taken_up(self, message: Letter) -> None:
        """Weights of another rank have come in place of some; the first one's version counts."""
        self._record.version = message.version if message.sender == 0 else self._record.version

    def _work(self, task: Task, command: commands.Work) -> Answer | Work:
        job = self._job
        seconds = max(command.seconds, command.flops / job.flops, command.bytes / job.memory_bandwidth)
        return self._later(("work",), time.sleep, seconds) if seconds else (at_once, nothing)

    def _evaluate(self, task: Task, command: commands.Evaluate) -> Answer | Work:
        tested = self._values.tested if (self.me.step + 1) % self._job.evaluate_every == 0 else 0
        if not tested:
            return at_once, nothing
        return self._later(("evaluate",), self._values.evaluate, self.me, row=("evaluate", tested, 0))

    # ---- messages

    def _post(self, task: Task, command: commands.Post) -> Answer:
        me, piece = self.me, command.piece
        if not 0 <= command.to < me.n or command.to == me.rank:
            raise self._wrong(task, f"me.post to rank {command.to} of {me.n}, from rank {me.rank}")
        if command.share != 1 and not self._job.sparse:
            raise self._wrong(task, f"me.post of a share, {command.share:g}: only simulated")
        begin_s, record, handle, step = self._clock(), self._record, Handle(), self._record.round
        of_gradient = piece.vector == "gradient"
        samples = self.measured.samples.at_hand(me) if of_gradient else 0.0
        values = self._values.payload(me, piece, command.to)
        version, bytes = record.computed if of_gradient else record.version, self._job.bytes_of(values.size)

        def left(now_s: float) -> None:
            handle.done_s = now_s
            record.add("send", begin_s, now_s, 0, bytes, command.to, version, step)

        head = me.step, version, samples, piece.items
        self._messages.post(values, command.to, task.number, head, left, command.taken)
        return at_once, lambda: handle

    def _take(self, task: Task, command: commands.Take) -> Answer:
        frm, messages, asked_s, asked_in = among(command.frm), self._messages, self._clock(), self._record.round
        until_s = math.inf if command.until_s is None else command.until_s
        if until_s <= asked_s:  # what has come while this thread computed is here, too
            messages.move()
            messages.drain()

        def taken() -> Message | None:
            if command.newest:
                messages.drain()
            if not messages.has(task.number, frm):
                if until_s > asked_s:
                    self._record.waited(asked_s, self._clock())
                return None
            message = messages.take(task.number, frm, command.newest)
            self._received(message, asked_s, asked_in)
            if command.into is not None:
                self._put(task, message, command.into, command.adds, command.weight, asked_in)
            else:
                self._values.heard(self.me, message)
            return message

        def over() -> bool:
            """Whether nothing is waited for any more: it is late, or nothing can come."""
            return self._clock() >= until_s or (
                command.until_s == math.inf and all(one in messages.ended for one in frm)
            )

        return (lambda: messages.has(task.number, frm) or over()), taken

    def _follow(self, task: Task, command: commands.Follow) -> Answer:
        group, messages, me, asked_s = among(command.frm), self._messages, self.me, self._clock()

        def here(frm: int) -> bool:
            return messages.has(task.number, range(frm, frm + 1))

        def followed() -> bool:
            if any(frm in messages.ended and not here(frm) for frm in group):
                return False
            messages.drain()
            me.round += 1
            for k, frm in enumerate(group):
                if not here(frm):  # of a text that does not wait for news
                    continue
                message = messages.take(task.number, range(frm, frm + 1), True)
                me.step = message.step if k == 0 else me.step
                self._received(message, asked_s, me.round)
                self._put(task, message, command.into.part(k, len(group)))
            self._since_s = self._clock()
            return True

        return (lambda: not command.wait or all(here(frm) or frm in messages.ended for frm in group)), followed

    def _summed(self, task: Task, command: Summed) -> Answer:
        from mpi4py.MPI import IN_PLACE

        asked_s, record, values = self._clock(), self._record, self._values.view(self.me, command.piece)
        barrier = self._comm.Ibarrier()

        def summed() -> None:
            begin_s = self._clock()
            record.waited(asked_s, begin_s)
            self._comm.Allreduce(IN_PLACE, values)
            record.add("receive", begin_s, self._clock(), 0, self._job.bytes_of(values.size))

        return barrier.Test, summed

    def _received(self, message: Letter, asked_s: float, step: int) -> None:
        """Record that a text has waited for a message, since the round `step`, and that it has come."""
        bytes, peer = self._job.bytes_of(message.values.size), message.sender
        self._record.waited(asked_s, message.began_s, peer, step)
        self._record.add("receive", message.began_s, message.came_s, 0, bytes, peer, step=step)

    def _put(
        self, task: Task, message: Letter, into: Piece, adds: bool = False, weight: float = 1.0, step: int | None = None
    ) -> None:
        self._check(task, message.items, into, f"taken from rank {message.sender} into")
        record, begin_s = self._record, self._clock()
        if into.vector == "gradient" and adds:
            self.measured.samples.added(self.me, message.samples)
        self._values.put(self.me, into, message.values, adds, weight)
        bytes = self._job.bytes_of(message.values.size)
        about = bytes, message.sender, message.version, step
        if adds:
            record.add("reduce", begin_s, record.now_s, self._counted(into, message), *about)
        elif into.vector == "weights" and into.items:
            self._taken_up(message)
            record.add("update", begin_s, record.now_s, 0, *about)

    def _check(self, task: Task, items: int, into: Piece, how: str) -> None:
        if items != into.items:
            raise self._wrong(task, f"{items:,} items {how} {into.items:,} of {into.vector}")

    def _wrong(self, task: Task, said: str) -> WrongText:
        return WrongText(f"{self._text.name}, rank {self.me.rank}, {task.place}: {said}")

    # ---- texts and memory

    def _start(self, task: Task, command: commands.Start) -> Answer:
        self._started += 1
        handle = self._spawn(command.text, self._started, command.after)
        return at_once, lambda: handle

    def _wait(self, task: Task, command: commands.Wait) -> Answer:
        return (lambda: sum(map(self._is_done, command.handles)) >= command.needed), nothing

    def _stop(self, task: Task, command: commands.Stop) -> Answer:
        other = command.handle.text
        if other is None or other is task:
            raise self._wrong(task, "me.stop of a message, or of the text itself: give it the handle of another text")
        if other in self._tasks:
            other.text.close()
            if isinstance(other.command, commands.Sleep):
                self._record.end_work()
            self._end(other)
        return at_once, nothing

    def _drop(self, task: Task, command: commands.Drop) -> Answer:
        self._values.drop(self.me, command)
        return at_once, nothing
