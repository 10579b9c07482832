"""What each primitive of `me` is in op-codes, and a whole text as a program."""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from sim.language.collectives import allreduce
from sim.language.engine import layout as op
from sim.language.engine.lowering import Statements
from sim.language.engine.rows import AFTER, FIRST, RANK, described, plain_or_none
from sim.language.engine.values import (
    NO,
    NOTHING,
    ONE,
    WIDE,
    ZERO,
    Call,
    Coefficient,
    Known,
    ListPart,
    ListValue,
    MessageValue,
    NotLowered,
    Number,
    Pair,
    PieceValue,
    RangeValue,
    SameAtAllRanks,
    Scope,
    arguments,
    is_known,
    lift,
    numbers,
    plain,
    shape,
    shaped,
)
from sim.language.job import Job
from sim.language.pieces import Piece
from sim.language.rank import Rank
from sim.language.text import Text


@dataclass(frozen=True)
class Program:
    """A text in op-codes.

    Args:
        rows: of the code, shape (rows, OPERANDS).
        places: file:line of each.
        constants: numbers that operands below 0 name.
        lists: that are known, of numbers.
        width: registers of each text.
        own_lists: lists of each text.
        draws: by their number, lists with a random number of each step, and below what these are.
    """

    rows: list[list[int]]
    places: list[str]
    constants: list[float]
    lists: list[list[float]]
    width: int
    own_lists: int
    draws: dict[int, int]


class HandsOver(Exception):
    """The sender of a message waits until it is taken."""


def lowered(job: Job, text: Text) -> Program:
    """A text, and those that it starts, in op-codes.

    Raises:
        NotLowered: naming file and line.
    """
    try:
        return Lowering(job, text, job.shares_hosts).program()
    except HandsOver:
        return Lowering(job, text, True).program()


class Lowering(Statements):
    """A text of a job.

    Args:
        text: the protocol.
        hands_over: whether senders may wait until a message is taken.
    """

    def __init__(self, job: Job, text: Text, hands_over: bool):
        super().__init__()
        self.job, self.text, self.hands_over = job, text, hands_over
        self.me = Rank(0, job, text.servers, None, text.data == "shared")
        self.items_to = [self.me.of(self.me.weights, 0, k).items for k in range(len(job.layers) + 1)]
        self.texts: dict[tuple, int] = {}  # numbers of those that are started
        self.queue: list[tuple[int, Call]] = []
        self.begins: dict[int, int] = {}
        self.draws: dict[int, int] = {}
        self.groups: dict[range, int] = {}  # numbers of those that rings are of

    def program(self) -> Program:
        """Lower the main text, and those that it starts.

        Raises:
            NotLowered: naming file and line.
        """
        function = type(self.text).__call__
        me = Known(SameAtAllRanks(self.me))
        try:
            self.one(Call(function, arguments(function, [Known(self.text), me], {}, lift)))
            while self.queue:
                number, call = self.queue.pop(0)
                self.begins[number] = len(self.rows)
                self.emit(op.WAIT_ALL, AFTER, self.at(ZERO))
                self.one(call)
        except NotLowered as error:
            raise NotLowered(str(error).lstrip("\0")) from None
        beside = len(self.rows)
        if self.job.background_s:
            self.top = max(self.top, self.new(op.PIECES) + op.PIECES)
            for k in range(op.PIECES):
                self.me_take(Number(RANK), until_s=Number(FIRST + k))
                self.emit(op.WORK, self.at(Known(self.job.background_s / op.PIECES)))
            self.emit(op.END)
        for row in self.rows:
            if row[0] == op.START:
                row[2] = self.begins[row[2]]
            elif row[0] == op.BESIDE:
                row[1] = beside
        return Program(self.rows, self.places, [*self.constants], self.lists, self.width, self.own_lists, self.draws)

    def one(self, call: Call) -> None:
        """One text from its first row to END."""
        self.is_main = not self.rows
        self.inlined(call)
        self.emit(op.END)

    def inlined(self, call: Call) -> Any:
        """A function's statements; those of a ring allreduce stand behind the op-code that may take their place."""
        row = self.ring(**call.given) if call.function is allreduce else None
        found = super().inlined(call)
        if row is not None:
            self.here(row)
        return found

    def ring(self, me: Any, piece: Any, group: Any) -> int | None:
        """The op-code of a ring; of a group that is not the same at all ranks, or no range upwards, it has no stride."""
        group = plain_or_none(group)
        if isinstance(group, range) and len(group) < 2:
            return None
        alike = isinstance(piece, PieceValue) and isinstance(group, range) and group.step > 0
        if not alike or (piece.vector == "weights" and (self.job.take_up_base_s or self.job.take_up_s)):
            self.emit(op.RING)
            return None
        ends = (self.at(Known(one)) for one in (group.start, group.step, len(group)))
        number = self.groups.setdefault(group, len(self.groups))
        return self.emit(op.RING, 0, self.at(piece.start), self.at(piece.stop), *ends, number)

    # ---- primitives

    def primitive(self, name: str, given: list[Any], named: dict[str, Any]) -> Any:
        """A primitive of `me`, or what takes no time."""
        way = getattr(self, f"me_{name}", None)
        if way is None:
            raise NotLowered(f"me.{name}")
        try:
            return way(*given, **named)
        except TypeError as error:
            if f"me_{name}" not in str(error):
                raise
            raise NotLowered(str(error).replace("Lowering.me_", "me.")) from error

    def steps(self, scope: Scope, node: ast.For) -> None:
        """The rounds."""

        def turn(k: Number) -> None:
            self.emit(op.BEGIN_STEP, k.at, 1)
            self.bind(scope, node.target, k)
            self.body(scope, node.body)
            self.here(*self.loops[-1][1])  # `continue` ends the round
            self.loops[-1][1].clear()
            self.emit(op.END_STEP)

        self.counted(Known(self.job.steps), turn)
        self.forget(scope, node)

    def me_now(self) -> Any:
        return self.put(op.NOW)

    def me_draw(self, n: Any) -> Any:
        below = plain(n) if is_known(n) else None
        if below is None:
            raise NotLowered("me.draw of a number that is not the same at all ranks")
        self.draws[len(self.lists)] = below
        self.lists.append([0.0] * self.job.steps)
        return self.put(op.GET, self.at(Known(len(self.lists) - 1)), self.put(op.STEP).at, 1)

    def me_of(self, vector: PieceValue, first: Any, stop: Any = NOTHING) -> Any:
        stop = self.reckon(op.ADD, first, ONE) if stop == NOTHING else stop
        begin, end = (self.reckon(op.ADD, vector.start, self.looked_up(self.items_to, one)) for one in (first, stop))
        return PieceValue(vector.vector, begin, end)

    def me_vector(self, name: Any, items: Any) -> Any:
        return PieceValue(plain(name), ZERO, items)

    def me_activation(self, layer: Any, micro: Any = ZERO, of: Any = ONE) -> Any:
        each = [one.activation_items for one in self.job.layers]
        items = self.looked_up([float(one or 0) for one in each], layer)
        if None in each:
            self.same_size(self.looked_up([int(one is not None) for one in each], layer), ONE)
        return PieceValue("activation", ZERO, self.reckon(op.MULTIPLY, items, self.samples_of(micro, of)))

    me_slope = me_activation

    def me_share(self, layer: Any, minibatches: Any = ONE, numbered: Any = NO) -> Any:
        job, layers = self.job, range(len(self.job.layers))
        if is_known(minibatches):
            return self.tabled("share", layers, layer, minibatches, numbered)
        most = max(len(self.me.neighbours(rank)) for rank in self.me.workers)  # as many as the workers of a host
        table = [job.share(one, several, plain(numbered)) for several in range(1, most + 1) for one in layers]
        row = self.reckon(op.MULTIPLY, self.reckon(op.SUBTRACT, minibatches, ONE), Known(len(layers)))
        return self.looked_up(table, self.reckon(op.ADD, row, layer))

    def tabled(self, name: str, every: range, one: Any, *given: Any) -> Any:
        """What a method of `me` gives for one of all layers, servers or ranks, which is looked up when ranks run."""
        found = [getattr(self.me, name)(k, *(plain(value) for value in given)) for k in every]
        if isinstance(found[0], range):
            return RangeValue(*(self.looked_up([getattr(k, end) for k in found], one) for end in ("start", "stop")))
        if isinstance(found[0], Piece):
            return PieceValue("rows", ZERO, self.looked_up([piece.items for piece in found], one))
        return self.looked_up(found, one)

    def me_rows(self, layer: Any) -> Any:
        return self.tabled("rows", self.me.layers, layer)

    def me_server_of(self, layer: Any) -> Any:
        return self.tabled("server_of", self.me.layers, layer)

    def me_held_share(self, server: Any, minibatches: Any = ONE, numbered: Any = NO) -> Any:
        return self.tabled("held_share", self.me.servers, server, minibatches, numbered)

    def me_asked(self, server: Any) -> Any:
        return self.tabled("asked", self.me.servers, server)

    def me_neighbours(self, rank: Any) -> Any:
        return self.tabled("neighbours", range(self.me.n), rank)

    def samples_of(self, micro: Any, of: Any) -> Any:
        """The samples of a micro-batch."""
        if is_known(micro) and is_known(of):
            if not 0 <= plain(micro) < plain(of) <= self.job.batch:
                raise NotLowered(
                    f"micro-batch {plain(micro)} of {plain(of)}, of a minibatch of {self.job.batch} samples"
                )
            return Known(len(self.job.micro_batch(plain(micro), plain(of))))
        if is_known(of) and self.job.batch % plain(of) == 0:
            return Known(self.job.batch // plain(of))
        batch, after = Known(self.job.batch), self.reckon(op.ADD, micro, ONE)
        ends = [self.reckon(op.FLOOR_DIVIDE, self.reckon(op.MULTIPLY, batch, one), of) for one in (after, micro)]
        return self.reckon(op.SUBTRACT, *ends)

    def me_held(self, vector: PieceValue, server: Any) -> Any:
        shares = self.job.shares
        if not shares:
            return self.method(vector, "part", [server, Known(len(self.me.servers))])
        to = [float(sum(shares[:k])) for k in range(len(shares) + 1)]
        ends = (self.looked_up(to, one) for one in (server, self.reckon(op.ADD, server, ONE)))
        return PieceValue(vector.vector, *(self.reckon(op.ADD, vector.start, one) for one in ends))

    def passes(self, to_s: list[float], begins: bool, first: Any, stop: Any, micro: Any, of: Any) -> tuple[Any, Any]:
        """Compute a stretch of layers; its samples, and its items.

        Args:
            begins: a gradient begins with the first layer.
        """
        job, stop = self.job, Known(len(self.job.layers)) if stop == NOTHING else stop
        samples = self.samples_of(micro, of)
        share = self.reckon(op.DIVIDE, samples, Known(job.batch))
        opens = self.reckon(op.EQUAL, first, ZERO) if begins else ZERO
        if opens != ZERO and (job.input_s or job.resume_s):
            with self.where(opens):
                self.emit(op.FETCH, self.at(share))
        if stop != first:
            seconds = self.between(to_s, first, stop)
            part = self.reckon(op.ADD, Known(job.fixed), self.reckon(op.MULTIPLY, Known(1 - job.fixed), share))
            part = self.reckon(op.MOST, Known(job.least), part) if job.least else part
            begun = self.reckon(op.EQUAL, micro, ZERO) if begins and (job.loop_s or job.copied_at_once) else ZERO
            loop = self.reckon(op.LEAST, opens, begun) if job.loop_s and begins else ZERO
            loop_s = self.reckon(op.MULTIPLY, Known(job.loop_s), loop)
            if begins and job.to_device_s:
                copied = begun if job.copied_at_once else share
                some = self.reckon(op.MULTIPLY, Known(job.to_device_s), copied)
                self.emit(op.WORK, self.at(self.reckon(op.MULTIPLY, opens, some)))
            self.compute(
                self.reckon(op.ADD, self.reckon(op.MULTIPLY, seconds, part), loop_s),
                self.reckon(op.MULTIPLY, Known(job.cold_s), opens),
                op.PASSES,
            )
        return samples, self.between(self.items_to, first, stop)

    def between(self, to: list[Any], first: Any, stop: Any) -> Any:
        """What a stretch of layers has, of sums up to each layer; of one layer it is looked up once."""
        after = [op.ADD, self.at(stop), self.at(first), self.at(ONE)]
        if isinstance(stop, Number) and after in [row[:4] for row in self.rows[-4:]]:
            return self.looked_up([y - x for x, y in pairwise(to)], first)
        return self.reckon(op.SUBTRACT, self.looked_up(to, stop), self.looked_up(to, first))

    def compute(self, seconds: Any, cold_s: Any, factors: int) -> None:
        """Work of the core whose seconds vary, after which the rank is warm."""
        self.emit(op.COMPUTE, self.at(seconds), self.at(cold_s), factors)
        if self.job.cold_s or self.job.update_cold_s:
            self.emit(op.IS_WARM)

    def me_forward(self, first: Any = ZERO, stop: Any = NOTHING, micro: Any = ZERO, of: Any = ONE) -> Any:
        if self.job.background_s:
            self.emit(op.BESIDE)
        self.passes(self.job.forward_to, True, first, stop, micro, of)
        return NOTHING

    def me_backward(
        self, first: Any = ZERO, stop: Any = NOTHING, micro: Any = ZERO, of: Any = ONE, weight: Any = None
    ) -> Any:
        samples, items = self.passes(self.job.backward_to, False, first, stop, micro, of)
        if stop != ZERO:
            self.emit(op.COMPUTED, self.at(samples), self.at(items))
        elif self.job.pack_s:
            self.emit(op.WORK, self.at(Known(self.job.pack_s)))
        if stop == ZERO and (self.job.cold_s or self.job.update_cold_s):
            self.emit(op.IS_WARM)
        return NOTHING

    def work(self, base_s: float, each_s: float, items: Any) -> None:
        """Work of the core for some items."""
        if base_s or each_s:
            self.emit(
                op.WORK, self.at(self.reckon(op.ADD, Known(base_s), self.reckon(op.MULTIPLY, Known(each_s), items)))
            )

    def sum_s(self, items: Any, share: Any) -> Any:
        """As sim.language.job.Job.sum_s."""
        job, is_rows = self.job, NOTHING
        if (job.rows_s, job.rows_base_s) != (None, None):
            is_rows = self.reckon(op.UNEQUAL, share, ONE)
        each_s, base_s = (
            self.either(is_rows, of_rows, usual)
            for of_rows, usual in ((job.rows_s, job.mix_s), (job.rows_base_s, job.mix_base_s))
        )
        if each_s == ZERO:
            return base_s
        return self.reckon(op.ADD, base_s, self.reckon(op.MULTIPLY, each_s, self.reckon(op.MULTIPLY, items, share)))

    def either(self, test: Any, body: float | None, orelse: float) -> Any:
        """One of two numbers, exactly; the second where the first is None."""
        if body is None or body == orelse:
            return lift(orelse)
        parts = (
            self.reckon(op.MULTIPLY, Known(one), given)
            for one, given in ((body, test), (orelse, self.reckon(op.EQUAL, test, ZERO)))
        )
        return self.reckon(op.ADD, *parts)

    def items(self, piece: Any) -> Any:
        """Items of a piece or a message."""
        if isinstance(piece, MessageValue):
            return Number(piece.at + 2)
        if not isinstance(piece, PieceValue):
            raise NotLowered(f"{described(piece)} is no piece")
        return self.reckon(op.SUBTRACT, piece.stop, piece.start)

    def me_update(self, piece: Any = NOTHING, rate: Any = None, samples: Any = NOTHING, share: Any = ONE) -> Any:
        piece = lift(self.me.weights) if piece == NOTHING else piece
        if piece.vector != "weights":
            raise NotLowered(f"me.update of {piece.vector}: a piece of me.weights")
        items, job = self.items(piece), self.job
        if job.update_base_s or job.update_s or job.update_cold_s or job.cold_s:
            each = self.reckon(op.MULTIPLY, Known(job.update_s), self.reckon(op.MULTIPLY, items, share))
            self.compute(self.reckon(op.ADD, Known(job.update_base_s), each), Known(job.update_cold_s), op.UPDATES)
        self.emit(op.UPDATED, self.at(Known(self.me.samples) if samples == NOTHING else samples), self.at(items))
        return NOTHING

    def me_mix(self, into: Any, what: Any, a: Any = ONE, b: Any = ONE) -> Any:
        items = self.items(into)
        if into != what:
            self.same_size(self.items(what), items)
        share, seconds = Number(what.at + 4) if isinstance(what, MessageValue) else ONE, ZERO
        if isinstance(what, MessageValue) and a == ZERO and b == ONE:
            seconds = self.put_s(into, share)
        elif not (a == ZERO and b == ZERO):  # else the memory is set to zeros
            seconds = self.sum_s(items, share)
        if seconds != ZERO:
            self.emit(op.WORK, self.at(seconds))
        if isinstance(into, PieceValue) and into.vector == "gradient":
            self.changes_gradient(into, what, a, b)
        return NOTHING

    def same_size(self, x: Any, y: Any) -> None:
        if is_known(x) and is_known(y) and plain(x) != plain(y):
            raise NotLowered(f"{plain(x):,} items mixed into {plain(y):,}")
        if not (is_known(x) and is_known(y)):
            self.emit(op.SAME_SIZE, self.at(x), self.at(y))

    def changes_gradient(self, into: PieceValue, what: Any, a: Any, b: Any) -> None:
        """Samples in the gradient, if all of it is mixed into."""
        whole = self.compared(ast.Eq, into, lift(self.me.gradient))
        if isinstance(whole, Known) and not whole.value:
            return
        for given, code, operand in (
            (self.reckon(op.EQUAL, a, ZERO), op.ANEW, ()),
            (
                self.reckon(op.UNEQUAL, b, ZERO) if isinstance(what, MessageValue) else ZERO,
                op.ADDED,
                (getattr(what, "at", 0) + 3,),
            ),
        ):
            tells = whole if isinstance(given, Coefficient) else self.both(given, whole)
            if not isinstance(tells, Known) or tells.value:
                with self.where(tells):
                    self.emit(code, *operand)

    def me_work(self, seconds: Any = ZERO, flops: Any = ZERO, bytes: Any = ZERO) -> Any:
        found: Any = ZERO
        for value, rate in ((seconds, 1.0), (flops, self.job.flops), (bytes, self.job.memory_bandwidth)):
            if value != NOTHING:
                found = self.reckon(op.MOST, found, self.reckon(op.DIVIDE, value, Known(rate)))
        self.emit(op.WORK, self.at(found))
        return NOTHING

    def me_evaluate(self) -> Any:
        if self.job.evaluate_s:
            self.emit(op.EVALUATE, self.at(Known(self.job.evaluate_s)))
        return NOTHING

    def me_sleep(self) -> Any:
        self.emit(op.SLEEP)
        return NOTHING

    def overhead(self, peer: Any) -> Any:
        """Seconds of a core for a message to or from a rank of another host."""
        if not self.job.overhead_s:
            return ZERO
        return self.reckon(op.MULTIPLY, Known(self.job.overhead_s), self.hosts(op.UNEQUAL, peer))

    def hosts(self, compared: int, peer: Any) -> Any:
        """Whether a rank's host is this one, or another."""
        of_ranks = [float(self.job.host(rank)) for rank in range(self.job.ranks)]
        return self.reckon(compared, *(self.looked_up(of_ranks, one) for one in (peer, Number(RANK))))

    def taking(self, sender: Any, items: Any, share: Any) -> Any:
        """Seconds of a core for a message that comes: of its host's, for its bytes, too."""
        job, seconds = self.job, self.overhead(sender)
        if not (job.local_overhead_s or job.local_copy_s):
            return seconds
        whole = self.reckon(op.MULTIPLY, items, Known(job.item_bytes))
        size = self.reckon(op.ADD, Known(job.header_bytes), self.reckon(op.MULTIPLY, whole, share))
        copied = self.reckon(op.MULTIPLY, Known(job.local_copy_s), size)
        near = self.hosts(op.EQUAL, sender)
        local = self.reckon(op.MULTIPLY, self.reckon(op.ADD, Known(job.local_overhead_s), copied), near)
        return self.reckon(op.ADD, seconds, local)

    def me_post(self, piece: Any, to: Any, share: Any = ONE, taken: Any = NO) -> Any:
        seconds, items = self.overhead(to), self.items(piece)
        announced = self.is_announced(items, share)  # then the overhead is behind it
        after = ZERO if announced == ZERO else self.reckon(op.MULTIPLY, seconds, announced)
        self.take_seconds(op.OVERHEAD, self.reckon(op.SUBTRACT, seconds, after))
        if plain(taken) and not self.hands_over:
            raise HandsOver
        gradient = int(piece.vector == "gradient") if isinstance(piece, PieceValue) else 0
        handle = self.put(op.POST, self.at(to), self.at(items), self.at(share), gradient, int(plain(taken)))
        self.take_seconds(op.OVERHEAD, after)
        return handle

    def take_seconds(self, code: int, seconds: Any) -> None:
        """Work of the core, WORK or OVERHEAD."""
        if seconds != ZERO:
            self.emit(code, self.at(seconds))

    def is_announced(self, items: Any, share: Any) -> Any:
        """Whether a message with so many items leaves when it is asked for: 1 or 0."""
        job = self.job
        if job.fair is None or job.fair.eager_bytes == math.inf:
            return ZERO
        size = self.reckon(op.MULTIPLY, self.reckon(op.MULTIPLY, items, Known(job.item_bytes)), share)
        return self.reckon(op.LESS, Known(job.fair.eager_bytes), self.reckon(op.ADD, Known(job.header_bytes), size))

    def me_take(
        self,
        frm: Any,
        into: Any = NOTHING,
        adds: Any = NO,
        weight: Any = ONE,
        newest: Any = NO,
        until_s: Any = NOTHING,
    ) -> Any:
        if not (is_known(adds) and is_known(newest)):
            raise NotLowered("take with `adds` or `newest` that is not the same at all ranks")
        group, sized, until = self.as_range(frm), into != NOTHING, until_s != NOTHING
        lasts = until_s == Known(math.inf)
        if lasts and not self.is_main:
            raise NotLowered("me.take as long as something may come, in a text that is started")
        flags = op.NEWEST * bool(plain(newest)) | op.UNTIL * until | op.SIZED * sized | op.LASTS * lasts
        found = MessageValue(self.message(group, flags, self.at(until_s) if until else 0, into))
        share, items, lands = Number(found.at + 4), Number(found.at + 2), found.at + 5
        whole = into if sized else None
        with self.where(self.reckon(op.UNEQUAL, Number(found.at), Known(op.NONE)) if until else ONE):
            self.accept(Number(found.at), share, items, found.at + 3, lands, whole, bool(plain(adds)), weight)
        return found

    def accept(
        self, sender: Any, share: Any, items: Any, samples: int, lands: int, into: Any, adds: bool, weight: Any
    ) -> None:
        """A message that has come becomes a piece, or part of a sum.

        Args:
            share, items: of the message.
            samples: the register with those of the message.
            lands: and with the message, if it was announced.
        """
        self.take_seconds(op.OVERHEAD, self.taking(sender, items, share))
        if self.job.fair and self.job.fair.eager_bytes < math.inf:
            self.emit(op.LAND, lands)
        if self.hands_over:
            self.emit(op.TOOK)
        seconds: Any = ZERO
        if into is not None and (adds or weight != ONE):
            seconds = self.sum_s(self.items(into), share)
        if into is not None and not adds:
            seconds = self.reckon(op.ADD, seconds, self.put_s(into, share))
        self.take_seconds(op.WORK, seconds)
        if into is not None and adds and into.vector == "gradient":
            self.emit(op.ADDED, samples)

    def put_s(self, into: PieceValue, share: Any) -> Any:
        """Seconds of putting a message in place of a piece."""
        job = self.job
        if into.vector != "weights" or not (job.take_up_base_s or job.take_up_s):
            return ZERO
        items = self.items(into)
        if items == ZERO:
            return ZERO
        each_s = self.reckon(op.MULTIPLY, Known(job.take_up_s), self.reckon(op.MULTIPLY, items, share))
        seconds = self.reckon(op.ADD, Known(job.take_up_base_s), each_s)
        return seconds if is_known(items) else self.reckon(op.MULTIPLY, seconds, self.reckon(op.LESS, ZERO, items))

    def me_follow(self, frm: Any, into: Any, wait: Any = ONE) -> Any:
        if not self.is_main:
            raise NotLowered("me.follow in a text that is started")
        flags = op.NEWEST | op.SIZED | op.LASTS | (0 if plain(wait) else op.AT_ONCE)
        ranks, goes_on = self.elements(self.as_range(frm)), self.new()
        step, ends = self.put(op.STEP).at, []
        for k, rank in enumerate(ranks):
            part = self.method(into, "part", [Known(k), Known(len(ranks))])
            found = self.message(self.as_range(rank), flags, 0, part)
            self.move(goes_on, self.reckon(op.UNEQUAL, Number(found), Known(op.NONE)))
            ends.append(self.emit(op.JUMP_IF_NOT, 0, goes_on))
            with self.where(self.reckon(op.UNEQUAL, Number(found), Known(op.NOT_YET))):
                if k == 0:
                    self.move(step, Number(found + 1))
                self.accept(rank, Number(found + 4), self.items(part), 0, found + 5, part, False, ONE)
        self.emit(op.BEGIN_STEP, step)
        self.here(*ends)
        return Number(goes_on)

    def message(self, group: RangeValue, flags: int, until: int, into: Any) -> int:
        """The registers of a message that is taken."""
        found = self.new(WIDE["message"] + 1)
        ends = self.at(group.start), self.at(group.stop), self.at(Known(group.step))
        self.emit(op.TAKE, found, *ends, flags, until, self.at(self.items(into)) if flags & op.SIZED else 0)
        return found

    # ---- texts

    def me_start(self, text: Any, after: Any = NOTHING) -> Any:
        if not isinstance(text, Call):
            raise NotLowered(f"me.start of {described(text)}: a call of a function")
        kinds: list[tuple] = []
        flat: list[Any] = []
        given: dict[str, Any] = {}
        for name, one in text.given.items():
            numeric = isinstance(one, Number) or (isinstance(one, Known) and type(one.value) in (int, float))
            if numeric or isinstance(one, (PieceValue, RangeValue, MessageValue)):
                kinds.append((name, shape(one)))
                given[name] = shaped(one, FIRST + len(flat))
                flat += numbers(one)
            elif isinstance(one, ListValue):
                kinds.append((name, id(one.contents)))
                given[name] = ListValue(Number(FIRST + len(flat)), one.number, one.contents)
                flat.append(one.which)
            elif isinstance(one, Known):
                kinds.append((name, repr(one.value), id(one.value) if one.value.__repr__ is object.__repr__ else 0))
                given[name] = one
            else:
                raise NotLowered(f"{described(one)} is given to a text")
        key = (text.function, *kinds)
        if key not in self.texts:
            self.texts[key] = len(self.texts)
            self.queue.append((self.texts[key], Call(text.function, given)))
        base = self.together(flat)
        return self.put(op.START, self.texts[key], base, len(flat), self.handles(after))

    def handles(self, after: Any) -> int:
        """Registers with the list of handles to wait for, and from where; NONE without any."""
        if (isinstance(after, Pair) and not after.parts) or isinstance(after, Known):
            return op.NONE
        if isinstance(after, Number):
            after = Pair((after,))
        if isinstance(after, Pair):
            made = self.fresh()
            for one in after.parts:
                self.append(made, one)
            after = made
        part = after if isinstance(after, ListPart) else ListPart(after, ZERO)
        if not isinstance(part.of, ListValue):
            raise NotLowered(f"{described(after)} is no list of handles")
        return self.together([part.of.which, part.first])

    def me_wait(self, handles: Any, count: Any = NOTHING) -> Any:
        if isinstance(handles, Number):
            self.emit(op.WAIT, handles.at)
        elif isinstance(handles, Pair) and count == NOTHING and not self.job.poll_s:  # who polls sees several at once
            for one in handles.parts:
                self.emit(op.WAIT, self.at(one))
        else:
            at = self.handles(handles)
            if at == op.NONE:
                return NOTHING
            counts = count != NOTHING
            self.emit(op.WAIT_ALL, at, at + 1, self.at(count) if counts else 0, int(counts))
        return NOTHING

    def me_stop(self, handle: Any) -> Any:
        self.emit(op.STOP, self.at(handle))
        return NOTHING

    def me_drop(self, piece: Any, but: Any = None) -> Any:
        return NOTHING
