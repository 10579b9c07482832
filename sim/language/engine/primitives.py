"""What each primitive of `me` is in op-codes, and a whole text as a program."""

from __future__ import annotations

import inspect
import math
from typing import Any

from sim.language import commands
from sim.language.collectives import allreduce
from sim.language.engine import layout as op
from sim.language.engine.lowering import Statements
from sim.language.engine.me import Me
from sim.language.engine.rows import AFTER, FIRST
from sim.language.engine.values import (
    FIELDS,
    Coefficient,
    List,
    Message,
    NotLowered,
    Number,
    Part,
    Plain,
    Range,
    both,
    described,
    folded,
    negated,
    numbers,
    same,
    shape,
    shaped,
    symbolic,
)
from sim.language.job import Job
from sim.language.pieces import Piece
from sim.language.rank import Rank
from sim.language.text import Text
from sim.language.verbs import in_pieces

PRIMITIVES = {one.__code__ for of in (Rank, Me) for one in vars(of).values() if inspect.isgeneratorfunction(one)}


class Program(Statements):
    """A text of a job, and those that it starts, in op-codes: the rows, constants and lists of sim.language.engine.rows.

    Attributes:
        draws: by their number, lists with a random number of each step, and below what these are.

    Raises:
        NotLowered: naming file and line.
    """

    def __init__(self, job: Job, text: Text):
        super().__init__()
        self.job, self.text = job, text
        self.draws: dict[int, int] = {}
        self.me = Me(Rank(0, job, text.servers, None, text.data == "shared"), self, self.draws)
        self.texts: dict[tuple, int] = {}  # numbers of those that are started
        self.queue: list[tuple[Any, dict[str, Any], int]] = []  # they, arguments, how many registers these take
        self.groups: dict[range, int] = {}  # numbers of those that rings are of
        begins = []
        self.one(text(self.me), None, 0)
        for started in self.queue:  # which grows meanwhile
            begins.append(self.emit(op.WAIT_ALL, Plain(AFTER), 0))
            self.one(*started)
        beside = len(self.rows)
        if job.background_s:
            moments_s = [self.argument(k) for k in range(op.PIECES)]
            self.one(in_pieces(self.me, moments_s, job.background_s / op.PIECES), None, op.PIECES)
        for row in self.rows:
            if row[0] == op.START:
                row[2] = begins[row[2]]
            elif row[0] == op.BESIDE:
                row[1] = beside

    def argument(self, k: int) -> Any:
        """The k-th number that is given to a text."""
        return Number(self, FIRST + k)

    def one(self, text: Any, given: dict[str, Any] | None, count: int) -> None:
        """One text from its first row to END; so many numbers are among the values that stand in place of its arguments."""
        self.is_main, self.top = not self.rows, FIRST + count
        self.width = max(self.width, self.top)
        self.stated(text, given)
        self.emit(op.END)

    def run(self, text: Any) -> Any:
        """A text within another one: a primitive's rows, or a function's statements; what it returns."""
        if not inspect.isgenerator(text):
            if self.elements(text):
                raise NotLowered(f"yield from {described(text)}")
            return None
        if text.gi_code in PRIMITIVES:
            command = next(text)
            return getattr(self, type(command).__name__.lower())(command)
        return self.stated(text)

    def stated(self, text: Any, given: dict[str, Any] | None = None) -> Any:
        """A generator's statements; those of a ring allreduce stand behind the op-code that may take their place."""
        given = given or inspect.getgeneratorlocals(text)
        rows = self.ring(**given) if text.gi_code is allreduce.__code__ else []
        found = self.inlined(text.gi_code, given, text.gi_frame.f_globals)
        self.here(*rows)
        return found

    def ring(self, me: Any, piece: Any, group: Any) -> list[int]:
        """The op-code that may take the place of a ring allreduce; its row, if it says where the ring ends.

        Of a group that is not the same at all ranks, or no range upwards, it has no stride.
        """
        if isinstance(group, range) and len(group) < 2:
            return []
        alike = isinstance(piece, Part) and isinstance(group, range) and group.step > 0
        if not alike or (piece.vector == "weights" and (self.job.take_up_base_s or self.job.take_up_s)):
            self.emit(op.RING)
            return []
        number = self.groups.setdefault(group, len(self.groups))
        ends = piece.start, piece.stop, group.start, group.step, len(group)
        return [self.emit(op.RING, Plain(0), *ends, Plain(number))]

    # ---- time and work

    def samples_of(self, micro: Any, of: Any) -> Any:
        """The samples of a micro-batch."""
        batch = self.job.batch
        return batch // of if not symbolic(of) and batch % of == 0 else batch * (micro + 1) // of - batch * micro // of

    def spend(self, code: int, seconds: Any) -> None:
        """Work of the core, WORK or OVERHEAD."""
        if symbolic(seconds) or seconds:
            self.emit(code, seconds)

    def compute(self, seconds: Any, cold_s: Any, factors: int) -> None:
        """Work of the core whose seconds vary, after which the rank is warm."""
        self.emit(op.COMPUTE, seconds, cold_s, Plain(factors))
        self.tell(self.job.cold_s or self.job.update_cold_s, op.IS_WARM)

    def passes(self, to_s: list[float], begins: bool, command: commands.Forward | commands.Backward) -> Any:
        """Compute a stretch of layers; its samples.

        Args:
            begins: a gradient begins with the first layer.
        """
        job, first, stop, micro = self.job, command.first, command.stop, command.micro
        samples, batch = self.samples_of(micro, command.of), job.batch
        is_one = both(command.of <= batch, both(micro >= 0, micro < command.of))
        if not symbolic(is_one) and not is_one:
            raise NotLowered(f"{described(micro)} as a micro-batch of {described(command.of)}, of {batch} samples")
        self.same_size(is_one, 1)
        share, opens = samples / job.batch, begins and first == 0
        self.tell(both(job.input_s or job.resume_s, opens), op.FETCH, share)
        if not same(first, stop):
            begun: Any = begins and (job.loop_s or job.to_device_s) and micro == 0
            part = folded(max, job.least, job.fixed + (1 - job.fixed) * share)
            seconds = self.between(to_s, first, stop) * part + job.loop_s * both(opens, begun)
            self.spend(op.WORK, opens * (job.to_device_s * (begun if job.copied_at_once else share)))
            self.compute(seconds, job.cold_s * opens, op.PASSES)
        return samples

    def between(self, to: list[Any], first: Any, stop: Any) -> Any:
        """What a stretch of layers has, of sums up to each layer."""
        return self.looked_up(to, stop) - self.looked_up(to, first)

    def sleep(self, command: commands.Sleep) -> None:
        self.emit(op.SLEEP)

    def forward(self, command: commands.Forward) -> None:
        if self.job.background_s:
            self.emit(op.BESIDE)
        self.passes(self.job.forward_to, True, command)

    def backward(self, command: commands.Backward) -> None:
        samples = self.passes(self.job.backward_to, False, command)
        if symbolic(command.stop) or command.stop:
            self.emit(op.COMPUTED, samples, self.between(self.me.items_to, command.first, command.stop))
        else:
            self.spend(op.WORK, self.job.pack_s)
            self.tell(self.job.cold_s or self.job.update_cold_s, op.IS_WARM)

    def update(self, command: commands.Update) -> None:
        job, piece = self.job, command.piece
        if piece.vector != "weights":
            raise NotLowered(f"me.update of {piece.vector}: a piece of me.weights")
        seconds = job.update_base_s + job.update_s * piece.items * command.share
        self.compute(seconds, job.update_cold_s, op.UPDATES)
        self.emit(op.UPDATED, command.samples, piece.items)

    def work(self, command: commands.Work) -> None:
        compute_s, memory_s = command.flops / self.job.flops, command.bytes / self.job.memory_bandwidth
        self.spend(op.WORK, folded(max, folded(max, command.seconds, compute_s), memory_s))

    def evaluate(self, command: commands.Evaluate) -> None:
        self.tell((self.me.step + 1) % self.job.evaluate_every == 0, op.WORK, self.job.evaluate_s)

    def drop(self, command: commands.Drop) -> None:
        pass

    # ---- sums

    def mix(self, command: commands.Mix) -> None:
        into, what, a, b = command
        items = into.items
        is_known = not symbolic((a, b))
        self.same_size(what.items, items)
        share = what.share if isinstance(what, Message) else 1.0
        if isinstance(what, Message) and is_known and (a, b) == (0, 1):
            self.spend(op.WORK, self.job.put_s(into, share))
        elif not is_known or a or b:  # else the memory is set to zeros
            self.spend(op.WORK, self.job.sum_s(items, share))
        if into.vector == "gradient":
            whole = self.me.gradient
            is_whole = both(into.start == whole.start, into.stop == whole.stop)
            self.tell(both(is_whole, not isinstance(a, Coefficient) and a == 0), op.ANEW)
            if isinstance(what, Message):
                self.tell(both(is_whole, isinstance(b, Coefficient) or b != 0), op.ADDED, what.samples)

    def tell(self, test: Any, code: int, *operands: Any) -> None:
        """An op-code where a test holds."""
        if symbolic(test) or test:
            with self.where(test):
                self.emit(code, *operands)

    def same_size(self, x: Any, y: Any) -> None:
        """Two numbers have to be equal."""
        if symbolic((x, y)):
            self.emit(op.SAME_SIZE, x, y)
        elif x != y:
            raise NotLowered(f"{x:,} items mixed into {y:,}")

    # ---- messages

    def is_far(self, peer: Any) -> Any:
        """Whether a rank is on another host than this one."""
        me = self.me
        return me.host(peer) != me.host(me.rank) if self.job.shares_hosts else peer != me.rank

    def post(self, command: commands.Post) -> Number:
        job, (piece, to, share, taken) = self.job, command
        seconds = job.overhead_s and job.overhead_s * self.is_far(to)
        # Of a message that is announced the overhead is behind it.
        after = seconds * (job.fair is not None and job.fair.eager_bytes < job.bytes_of(piece.items, share))
        self.spend(op.OVERHEAD, seconds - after)
        gradient = isinstance(piece, Part) and piece.vector == "gradient"
        handle = self.put(op.POST, to, piece.items, share, Plain(gradient), Plain(bool(taken)))
        self.spend(op.OVERHEAD, after)
        return handle

    def take(self, command: commands.Take) -> Message:
        into, adds, until_s = command.into, command.adds, command.until_s
        until, lasts = until_s is not None, not symbolic(until_s) and until_s == math.inf
        if lasts and not self.is_main:
            raise NotLowered("me.take as long as something may come, in a text that is started")
        flags = op.NEWEST * bool(command.newest) | op.UNTIL * until | op.LASTS * lasts
        found = self.message(command.frm, flags, 0 if until_s is None else until_s, into)
        with self.where(found.is_there if until else True):
            self.accept(found, found.sender, found.items, into, adds, command.weight)
        return found

    def message(self, frm: Any, flags: int, until_s: Any, into: Piece | None) -> Message:
        """A message that is taken."""
        group, at = self.as_range(frm), self.new(len(FIELDS) + 1)
        flags |= op.SIZED * (into is not None)
        items = 0 if into is None else into.items
        self.emit(op.TAKE, Plain(at), group.start, group.stop, group.step, Plain(flags), until_s, items)
        return Message(self, at)

    def accept(self, found: Message, sender: Any, items: Any, into: Piece | None, adds: bool, weight: Any = 1) -> None:
        """A message that has come becomes a piece, or part of a sum.

        Args:
            sender, items: of the message, as they are known best.
        """
        job = self.job
        costs = job.overhead_s or job.local_overhead_s or job.local_copy_s
        far = costs and self.is_far(sender)
        for is_far, holds in ((True, far), (False, negated(far))):
            if symbolic(holds) or holds:
                with self.where(holds):
                    self.spend(op.OVERHEAD, job.taken_s(is_far, items, found.share))
        if job.fair:
            self.emit(op.LAND, Plain(found.at + len(FIELDS)))
        self.emit(op.TOOK)
        if into is None:
            return
        seconds = job.sum_s(into.items, found.share) if adds or symbolic(weight) or weight != 1 else 0.0
        self.spend(op.WORK, seconds if adds else seconds + job.put_s(into, found.share))
        if adds and into.vector == "gradient":
            self.emit(op.ADDED, found.samples)

    def follow(self, command: commands.Follow) -> Number:
        frm, into, wait = command
        if not self.is_main:
            raise NotLowered("me.follow in a text that is started")
        ranks, goes_on = self.elements(frm if isinstance(frm, range | Range) else [frm]), Number(self, self.new())
        flags, step, ends = op.NEWEST | op.LASTS | (0 if wait else op.AT_ONCE), self.me.step, []
        for k, rank in enumerate(ranks):
            part = into.part(k, len(ranks))
            found = self.message(rank, flags, 0, part)
            self.move(goes_on.at, found.is_there)
            ends.append(self.jump(unless=goes_on))
            with self.where(found.sender != op.NOT_YET):
                if k == 0:
                    self.move(step.at, found.step)
                self.accept(found, rank, part.items, part, False)
        self.emit(op.BEGIN_STEP, step, Plain(0))
        self.here(*ends)
        return goes_on

    # ---- texts

    def start(self, command: commands.Start) -> Number:
        text: Any = command.text
        kinds: list[tuple] = []
        flat: list[Any] = []
        given: dict[str, Any] = {}
        for name, one in inspect.getgeneratorlocals(text).items():
            is_number = isinstance(one, int | float) and not isinstance(one, bool)
            if not (symbolic(one) or is_number or isinstance(one, Part)):
                kinds.append((name, repr(one), id(one) if type(one).__repr__ is object.__repr__ else 0))
                given[name] = one
            elif shape(one) is None:
                raise NotLowered(f"{described(one)} is given to a text")
            else:
                kinds.append((name, shape(one)))
                given[name] = shaped(one, self.argument(len(flat)))
                flat += numbers(one)
        key = (text.gi_code, *kinds)
        if key not in self.texts:
            self.texts[key] = len(self.texts)
            self.queue.append((text, given, len(flat)))
        base = self.together(flat)
        return self.put(
            op.START, Plain(self.texts[key]), Plain(base), Plain(len(flat)), Plain(self.handles(command.after))
        )

    def handles(self, several: Any) -> int:
        """Registers with the list of handles to wait for, and from where."""
        part = several if isinstance(several, List) else self.fresh(several)
        return self.together([part.which, part.first])

    def wait(self, command: commands.Wait) -> None:
        handles, count = command.handles, command.needed
        if isinstance(handles, Number):
            self.emit(op.WAIT, handles)
        else:
            at, counts = self.handles(handles), count is not None
            self.emit(op.WAIT_ALL, Plain(at), Plain(at + 1), count if counts else 0, Plain(counts))

    def stop(self, command: commands.Stop) -> None:
        self.emit(op.STOP, command.handle)
