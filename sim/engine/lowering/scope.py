"""Registers, constants and names of a text that is being lowered."""

from __future__ import annotations

import ast
import inspect
import math
import os
from typing import TYPE_CHECKING, NoReturn

from sim.engine.kernel import layout, ops
from sim.engine.lowering.program import Code
from sim.engine.lowering.values import NOTHING, Frame, NotLowered, TooFewRegisters, Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sim.engine.tables import Listed
    from sim.job.scenario import Groups, Scenario

MOST = 2**53  # of integers, which registers hold exactly
SHOWN = 90  # characters of what is not in the subset


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
