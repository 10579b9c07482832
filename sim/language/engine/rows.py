"""The rows of a program while they are made: op-codes, registers, constants and lists."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from numbers import Real
from typing import Any

from sim.language.engine import layout as op
from sim.language.engine.values import Coefficient, List, NotLowered, Number, Plain, described, numbers, shaped

RANK, AFTER, FIRST = 0, 1, op.FIRST  # registers of each text: its rank, the list that it waits for, its first argument
ERRORS = (NotLowered, ArithmeticError, AttributeError, LookupError, NameError, SyntaxError, TypeError, ValueError)
NEUTRAL = {op.ADD: 0, op.SUBTRACT: 0, op.MULTIPLY: 1, op.DIVIDE: 1}  # numbers that change nothing on the right side


class Code:
    """The rows of the code, registers and lists while they are made."""

    def __init__(self) -> None:
        self.rows: list[list[int]] = []
        self.places: list[str] = []  # file:line of each row
        self.constants: dict[float, int] = {}
        self.lists: list[list[float]] = []
        self.kept: dict[str, int] = {}
        self.cells: frozenset[int] = frozenset()  # registers that names of loops and branches lie in
        self.loops: tuple[dict[type, list[int]], ...] = ()  # of each, rows that break, and that continue
        self.depth = 0  # loops and branches of a function that are lowered now
        self.place, self.top, self.width, self.own_lists, self.lists_of_text = "", FIRST, FIRST, 1, 1

    def emit(self, code: int, *operands: Any) -> int:
        """Add a row; its number."""
        self.rows.append([code, *map(self.at, operands), *(0 for _ in range(op.OPERANDS - 1 - len(operands)))])
        self.places.append(self.place)
        return len(self.rows) - 1

    def new(self, count: int = 1) -> int:
        """The first of some registers."""
        self.top += count
        self.width = max(self.width, self.top)
        return self.top - count

    def at(self, value: Any) -> int:
        """The operand of a number."""
        if isinstance(value, Plain):
            return value
        if isinstance(value, Number) and value.at != op.NONE:
            return value.at
        if value is None or isinstance(value, Real):
            return -1 - self.constants.setdefault(op.NONE if value is None else float(value), len(self.constants))
        raise NotLowered(f"{described(value)} is no number here")

    def put(self, code: int, *operands: Any, wide: int = 1) -> Number:
        """A row whose result is in new registers; the first."""
        register = self.new(wide)
        self.emit(code, Plain(register), *operands)
        return Number(self, register)

    def move(self, register: int, value: Any) -> None:
        """Copy a number into a register."""
        self.emit(op.MOVE, Plain(register), value, 0)

    def reckon(self, code: int, x: Any, y: Any) -> Any:
        """A number of two others, one of which is a symbol at least."""
        known = [one for one in (x, y) if not isinstance(one, Number)]
        if code == op.MULTIPLY and 0 in known:
            return 0.0
        if code in NEUTRAL and NEUTRAL[code] in known and (isinstance(x, Number) or code in (op.ADD, op.MULTIPLY)):
            return x if isinstance(x, Number) else y
        if Coefficient in (type(x), type(y)):
            return Coefficient(self, op.NONE)
        return self.put(code, x, y)

    def looked_up(self, values: Sequence[float], k: Any) -> Any:
        """values[k]."""
        if not isinstance(k, Number):
            return values[k]
        if not all(isinstance(one, (int, float)) for one in values):
            raise NotLowered(f"an element of {described(values)} that depends on the rank or the time")
        if len(values) > 1 and all(one == values[0] for one in values):
            return values[0]
        number = self.kept.setdefault(repr(values), len(self.lists))
        if number == len(self.lists):
            self.lists.append([float(one) for one in values])
        return self.put(op.GET, number, k, Plain(1))

    def fresh(self, values: Sequence[Any] = ()) -> List:
        """A list of this text, of some elements."""
        found = List(Number(self, self.new()), self.lists_of_text)
        self.lists_of_text += 1
        self.own_lists = max(self.own_lists, self.lists_of_text)
        return self.filled(found, values)

    def filled(self, held: List, values: Sequence[Any]) -> List:
        """A list of this text, which begins anew with some elements."""
        self.emit(op.NEW_LIST, Plain(held.which.at), Plain(held.number))
        for one in values:
            held.append(one)
        return held

    def here(self, *jumps: int) -> None:
        """Jumps lead to the next row."""
        for row in jumps:
            self.rows[row][1] = len(self.rows)

    def jump(self, unless: Any = None) -> int:
        """A jump to where it is not yet said, unless a test holds; its row."""
        return self.emit(op.JUMP, Plain(0)) if unless is None else self.emit(op.JUMP_IF_NOT, Plain(0), unless)

    @contextmanager
    def where(self, test: Any) -> Iterator[None]:
        """Rows that are obeyed where a test holds, if that is not known."""
        over = [self.jump(unless=test)] if isinstance(test, Number) else []
        yield
        self.here(*over)

    @contextmanager
    def loop(self, *closing: tuple) -> Iterator[dict[type, list[int]]]:
        """Rows of a loop, and those that close it, of which the last leads back to the first."""
        begin = len(self.rows)
        jumps: dict[type, list[int]] = {ast.Break: [], ast.Continue: []}
        self.loops, self.depth = (*self.loops, jumps), self.depth + 1
        yield jumps
        self.loops, self.depth = self.loops[:-1], self.depth - 1
        self.here(*jumps[ast.Continue])
        for code, *operands in closing:
            self.emit(code, Plain(begin), *operands)
        self.here(*jumps[ast.Break])

    def together(self, values: Sequence[Any]) -> int:
        """Numbers copied to registers side by side; the first."""
        register = self.new(len(values))
        for k, one in enumerate(values):
            self.move(register + k, one)
        return register

    def in_registers(self, value: Any) -> Any:
        """A value copied to registers of its own."""
        return shaped(value, Number(self, self.together(numbers(value))))

    def cell(self, value: Any) -> Any:
        """A value in registers of its own, which change."""
        found = self.in_registers(value)
        self.cells |= {one.at for one in numbers(found)}
        return found

    def is_cell(self, value: Any) -> bool:
        """Whether a value lies in registers that change."""
        return any(isinstance(one, Number) and one.at in self.cells for one in numbers(value))

    def copied(self, value: Any) -> Any:
        """A value that does not change when that of a name does."""
        return self.in_registers(value) if self.is_cell(value) else value

    def tried(self, call: Callable[[], Any]) -> tuple:
        """What a call gives, alone in a tuple; nothing, and none of its rows, where that is not understood."""
        rows, kept = len(self.rows), dict(vars(self))
        try:
            return (call(),)
        except ERRORS:
            del self.rows[rows:], self.places[rows:]
            vars(self).update(kept)
            return ()
