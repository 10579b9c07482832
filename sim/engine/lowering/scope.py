"""Registers, constants and names of a text that is being lowered, and loops: over a few known items one by one, else by a counter."""

from __future__ import annotations

import ast
import inspect
import math
import os
from functools import partial
from typing import TYPE_CHECKING, NoReturn

from sim.engine.kernel import layout, ops
from sim.engine.lowering.program import Code
from sim.engine.lowering.values import NOTHING, Frame, NotLowered, TooFewRegisters, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sim.engine.tables import Listed
    from sim.job.scenario import Groups, Scenario

MOST = 2**53  # of integers, which registers hold exactly
SHOWN = 90  # characters of what is not in the subset
UNROLLED = 2  # items of a range


class Scope:
    """The programs of a scenario's roles, one after another.

    Args:
        tables: the collectives that they call, which are listed as they are found.
        registers: of a strand.
        inexact: names and lists that do not hold integers alone.
    """

    def __init__(self, scenario: Scenario, tables: Listed, registers: int):
        self.registers, self.inexact = registers, set[object]()
        self._begin(scenario, tables, registers)

    def _begin(self, scenario: Scenario, tables: Listed, registers: int) -> None:
        """No program yet."""
        self.scenario, self.code, self.tables = scenario, Code(scenario.ranks, registers), tables
        self.next = self.most = self.labels = 0
        self.ranks: list[int] = []  # of the role
        self.groups: Groups  # workers that send together
        self.neighbours = self.aggregators = self.senders = NOTHING
        self.book_sets: dict[str, int] = {}  # that verbs keep
        self.breaks: list[str] = []  # where `break` of the loops around leads
        self.continues: list[str] = []
        self.left: set[str] = set()  # labels to which some `break` or `continue` leads
        self.conditions: set[ast.AST] = set()  # expressions that only a condition, or a sum, asks for
        self.runs = False  # whether what is called is used with `yield from`
        self.frame: Frame

    def value(self, node: ast.expr) -> Value:
        """What an expression is."""
        raise NotImplementedError

    def block(self, body: Sequence[ast.stmt]) -> None:
        """Statements, one after another."""
        raise NotImplementedError

    def fail(self, node: ast.AST, why: str = "not in the subset") -> NoReturn:
        """Refuse an expression or a statement."""
        said = ast.unparse(node).splitlines()[0][:SHOWN]
        raise NotLowered(f"{self.place(node)}{why}: {said}")

    def place(self, node: ast.AST) -> str:
        """File and line of a user's own text."""
        frame = self.frame
        while frame.is_ours and frame.called_by is not None:
            frame, node = frame.called_by, frame.called_at or node
        if frame.is_ours or not hasattr(node, "lineno"):
            return ""
        _, first = inspect.getsourcelines(inspect.unwrap(frame.function))
        file = os.path.basename(inspect.getsourcefile(frame.function) or "")
        return f"{file}:{first + node.lineno - 1}: "

    def fresh(self, count: int = 1) -> int:
        """So many new registers; the first of them."""
        self.next += count
        self.most = max(self.most, self.next)
        if self.next > self.code.top:
            raise TooFewRegisters
        return self.next - count

    def tag(self) -> str:
        """A new label."""
        self.labels += 1
        return f"L{self.labels}"

    def scalar(self, value: Value, node: ast.AST) -> int:
        """The register of a number."""
        if value.kind == "reg":
            return value.at
        if value.kind == "const" and isinstance(value.at, int | float):
            if not (self.frame.is_ours or type(value.at) in (int, float, bool)):
                self.fail(node, "a number of Python's own is needed")
            if isinstance(value.at, int) and abs(value.at) >= MOST:
                self.fail(node, "too large an integer")
            return self.code.constant(value.at)
        return self.fail(node, f"a number is needed, not a {value.kind}")

    def integer(self, value: Value, node: ast.AST) -> int:
        """The register of an integer."""
        return self.scalar(value, node) if value.is_whole else self.fail(node, "an integer is needed")

    def needs(self, register: int) -> None:
        """The run ends without an answer where a register is 0: the event world says what is wrong."""
        self.code.emit(ops.NEEDS, register)

    def mistake(self) -> Value:
        """What no world can run: the event world says so, if it comes to that."""
        self.needs(self.code.constant(0))
        return Value("nothing")

    def alu(self, operation: int, left: int, right: int, whole: bool = True) -> Value:
        """The result of an operation on two registers."""
        register = self.fresh()
        self.code.emit(ops.ALU, operation, register, left, right)
        return Value("reg", register, whole)

    def negated(self, register: int) -> Value:
        """1 where a register is 0, else 0."""
        return self.alu(ops.EQUAL, register, self.code.constant(0))

    def book_set(self, name: str) -> Value:
        """A set of ranks that verbs keep."""
        if name not in self.book_sets:
            self.book_sets[name] = self.code.set_of(0, self.scenario.ranks, self.ranks)
        return Value("set", self.book_sets[name])

    def kept(self, value: Value) -> Value:
        """A value that a later assignment does not change."""
        if value.kind == "items":
            return Value("items", [self.kept(one) for one in value.at])
        if value.kind == "letter":
            place = Value("letter", self.fresh(layout.LETTER), sure=value.sure)
            self.code.emit(ops.MOVL, place.at, value.at)
            return place
        if value.kind != "reg":
            return value
        register = self.fresh()
        self.code.emit(ops.MOV, register, value.at)
        return Value("reg", register, value.whole)

    def variable(self, value: Value, node: ast.AST) -> Value:
        """A place of its own for a name that is assigned several times; one that is None first will have a letter."""
        if value.kind == "letter" or (value.kind == "const" and value.at is None):
            place = Value("letter", self.fresh(layout.LETTER))
            self.move_letter(place, value)
            return place
        if value.kind == "reg" or (value.kind == "const" and not isinstance(value.at, range | str)):
            place = Value("reg", self.fresh(), value.is_whole)
            self.code.emit(ops.MOV, place.at, self.scalar(value, node))
            return place
        return value

    def move_letter(self, place: Value, value: Value) -> None:
        """Put a letter, or None, into registers; an absent letter has sender -1."""
        if value.kind == "letter":
            self.code.emit(ops.MOVL, place.at, value.at)
        else:
            self.code.emit(ops.MOV, place.at, self.code.constant(-1))

    def known(self, value: Value) -> bool | None:
        """Whether a value is true, if that is known before the run."""
        if value.kind == "items":
            return len(value.at) > 0
        if value.kind != "const" or (isinstance(value.at, float) and math.isnan(value.at)):
            return None
        return bool(value.at)

    def truth(self, value: Value, node: ast.AST) -> int:
        """A register that is 0 if a value is false."""
        if value.kind == "letter":
            return self.alu(ops.AT_MOST, self.code.constant(0), value.at).at
        if value.kind in ("set", "list"):
            register = self.fresh()
            self.code.emit(ops.SETLEN if value.kind == "set" else ops.ALEN, register, value.at)
            return register
        return self.scalar(value, node)

    def counter(self, first: Value, stop: Callable[[], Value], node: ast.AST) -> tuple[int, str, str]:
        """A register that counts up to what is found each time, and the labels of its loop, which has begun."""
        register, begin, end = self.fresh(), self.tag(), self.tag()
        self.code.emit(ops.MOV, register, self.scalar(first, node))
        self.code.label(begin)
        self.code.emit(ops.BRZ, self.alu(ops.LESS, register, self.scalar(stop(), node)).at, end)
        return register, begin, end

    def count_on(self, register: int) -> None:
        """The next number."""
        self.code.emit(ops.ALU, ops.PLUS, register, register, self.code.constant(1))

    def over(self, many: Value, node: ast.AST, each: Callable[[Value], object]) -> None:
        """Do something for each of several items."""
        known = many.kind == "const" and isinstance(many.at, range | tuple | list)
        if many.kind == "items" or (known and (not isinstance(many.at, range) or len(many.at) <= UNROLLED)):
            self._one_by_one([item if isinstance(item, Value) else Value("const", item) for item in many.at], each)
            return
        register, begin, end = self.counter(*self._bounds(many, node), node)
        self.around(begin, end, lambda: each(self._item(many, register)), lambda: self.count_on(register))

    def _one_by_one(self, items: list[Value], each: Callable[[Value], object]) -> None:
        """Do it for known items, one after another, up to one after which nothing is reached."""
        end = self.tag()
        for item in items:
            again = self.tag()
            self.within(again, end, partial(each, item))
            self.code.label(again)
            if not self.frame.live and again not in self.left:
                break
            self.frame.live = True
        self.code.label(end)
        self.frame.live = self.frame.live or end in self.left

    def within(self, again: str, end: str, body: Callable[[], object]) -> None:
        """The body of a loop, for which `continue` and `break` lead to these labels."""
        self.breaks.append(end)
        self.continues.append(again)
        body()
        self.breaks.pop()
        self.continues.pop()

    def around(self, begin: str, end: str, body: Callable[[], object], after: Callable[[], object]) -> None:
        """A loop: its body, what comes after it each time, and the way back."""
        again = self.tag()
        self.within(again, end, body)
        self.frame.live = True
        self.code.label(again)
        after()
        self.code.emit(ops.JMP, begin)
        self.code.label(end)

    def _bounds(self, many: Value, node: ast.AST) -> tuple[Value, Callable[[], Value]]:
        none = Value("const", 0)
        if many.kind == "span":
            return many.at[0], lambda: many.at[1]
        if many.kind == "const" and isinstance(many.at, range) and many.at.step == 1:
            return Value("const", many.at.start), lambda: Value("const", many.at.stop)
        if many.kind == "const" and isinstance(many.at, range):
            return none, lambda: Value("const", len(many.at))
        if many.kind == "repeated":
            return none, lambda: Value("const", many.at[1])
        if many.kind != "list":
            self.fail(node, "a loop over a range or a list is needed")
        return none, lambda: self.length(many)

    def length(self, many: Value) -> Value:
        """How many items a list has now."""
        found = Value("reg", self.fresh())
        self.code.emit(ops.ALEN, found.at, many.at)
        return found

    def _item(self, many: Value, register: int) -> Value:
        if many.kind == "repeated":
            return many.at[0]
        if many.kind == "const" and many.at.step != 1:
            start, step = self.code.constant(many.at.start), self.code.constant(many.at.step)
            return self.alu(ops.PLUS, start, self.alu(ops.TIMES, step, register).at)
        if many.kind != "list":
            return Value("reg", register)
        item = Value("reg", self.fresh(), many.whole)
        self.code.emit(ops.AGET, item.at, many.at, register)
        return item
