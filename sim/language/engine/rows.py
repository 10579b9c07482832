"""The rows of a program while they are made: op-codes, registers, constants and lists."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sim.language.engine import layout as op
from sim.language.engine.values import (
    WIDE,
    ZERO,
    Call,
    Coefficient,
    Known,
    Lazy,
    ListValue,
    MessageValue,
    NotLowered,
    Number,
    Pair,
    PieceValue,
    is_known,
    lift,
    numbers,
    plain,
)

# Each op-code of two numbers: what it is in Python, and the signs that mean it.
OPERATIONS: tuple[tuple, ...] = (
    (op.ADD, operator.add, ast.Add),
    (op.SUBTRACT, operator.sub, ast.Sub),
    (op.MULTIPLY, operator.mul, ast.Mult),
    (op.DIVIDE, operator.truediv, ast.Div),
    (op.FLOOR_DIVIDE, operator.floordiv, ast.FloorDiv),
    (op.MODULO, operator.mod, ast.Mod),
    (op.EXCLUSIVE_OR, operator.xor, ast.BitXor),
    (op.LESS, operator.lt, ast.Lt),
    (op.LESS_OR_EQUAL, operator.le, ast.LtE),
    (op.EQUAL, operator.eq, ast.Eq, ast.Is),
    (op.UNEQUAL, operator.ne, ast.NotEq, ast.IsNot),
    (op.LEAST, min),
    (op.MOST, max),
)
PYTHONS: dict[int, Callable] = {code: python for code, python, *_ in OPERATIONS}
SIGNS: dict[type, int] = {sign: code for code, _, *signs in OPERATIONS for sign in signs}
RANK, AFTER, FIRST = 0, 1, op.FIRST  # registers of each text: its rank, the list that it waits for, its first argument


class Code:
    """The rows of the code, registers and lists while they are made."""

    def __init__(self) -> None:
        self.rows: list[list[int]] = []
        self.places: list[str] = []  # file:line of each row
        self.constants: dict[float, int] = {}
        self.lists: list[list[float]] = []
        self.kept: dict[str, int] = {}
        self.place, self.top, self.width, self.own_lists, self.lists_of_text = "", FIRST, FIRST, 1, 1

    def emit(self, code: int, *operands: int) -> int:
        """Add a row; its number."""
        self.rows.append([code, *operands, *(0 for _ in range(op.OPERANDS - 1 - len(operands)))])
        self.places.append(self.place)
        return len(self.rows) - 1

    def new(self, count: int = 1) -> int:
        """The first of some registers."""
        self.top += count
        self.width = max(self.width, self.top)
        return self.top - count

    def at(self, value: Any) -> int:
        """The operand of a number.

        Raises:
            NotLowered: it is none.
        """
        if isinstance(value, Number):
            return value.at
        if isinstance(value, ListValue):
            return value.which.at
        if isinstance(value, Known) and (value.value is None or isinstance(value.value, (int, float))):
            return -1 - self.constants.setdefault(
                -1.0 if value.value is None else float(value.value), len(self.constants)
            )
        raise NotLowered(f"{described(value)} is no number here")

    def put(self, code: int, *operands: int, wide: int = 1) -> Number:
        """A row whose result is in new registers."""
        register = self.new(wide)
        self.emit(code, register, *operands)
        return Number(register)

    def move(self, register: int, value: Any) -> None:
        """Copy a number into a register."""
        self.emit(op.MOVE, register, self.at(value), self.at(ZERO))

    def reckon(self, code: int, x: Any, y: Any) -> Any:
        """A number of two others."""
        if is_known(x) and is_known(y):
            return lift(PYTHONS[code](plain(x), plain(y)))
        zero, one = (isinstance(y, Known) and y.value == k for k in (0, 1))
        if (zero and code in (op.ADD, op.SUBTRACT)) or (one and code in (op.MULTIPLY, op.DIVIDE)):
            return x
        if isinstance(x, Known) and ((x.value == 0 and code == op.ADD) or (x.value == 1 and code == op.MULTIPLY)):
            return y
        if Coefficient in (type(x), type(y)):
            return Coefficient()
        return self.put(code, self.at(x), self.at(y))

    def fixed(self, values: Sequence[float]) -> Known:
        """The number of a list that is known now."""
        key = repr(values)
        if key not in self.kept:
            self.kept[key] = len(self.lists)
            self.lists.append([float(one) for one in values])
        return Known(self.kept[key])

    def looked_up(self, values: Sequence[float], k: Any) -> Any:
        """values[k]."""
        if isinstance(k, Known):
            return Known(values[k.value])
        if len(set(values)) == 1 and len(values) > 1:
            return Known(values[0])
        return self.put(op.GET, self.at(self.fixed(values)), self.at(k), 1)

    def fresh(self) -> ListValue:
        """An empty list of this text."""
        found = ListValue(Number(self.new()), self.lists_of_text)
        self.lists_of_text += 1
        self.own_lists = max(self.own_lists, self.lists_of_text)
        self.emit(op.NEW_LIST, found.which.at, found.number)
        return found

    def here(self, *jumps: int) -> None:
        """Jumps lead to the next row."""
        for row in jumps:
            self.rows[row][1] = len(self.rows)

    @contextmanager
    def where(self, test: Any) -> Iterator[None]:
        """Rows that are obeyed where a test in a register holds, or that is known to hold."""
        over = [] if is_known(test) else [self.emit(op.JUMP_IF_NOT, 0, self.at(test))]
        yield
        self.here(*over)

    def together(self, values: list[Any]) -> int:
        """Numbers copied to registers side by side; the first."""
        register = self.new(len(values))
        for k, one in enumerate(values):
            self.move(register + k, one)
        return register

    def append(self, to: ListValue, value: Any) -> None:
        """Add to a list.

        Raises:
            NotLowered: things of another kind are in it.
        """
        kind = "piece" if isinstance(value, PieceValue) else "message" if isinstance(value, MessageValue) else "number"
        if to.kind not in ("", kind):
            raise NotLowered(f"a list of {to.kind}s and {kind}s")
        to.contents.kind = kind
        for row in to.contents.rows:
            self.rows[row][3] = WIDE[kind]
        what = self.at(value) if kind == "number" else self.together(numbers(value))
        self.emit(op.APPEND, to.which.at, what, WIDE[kind])


def described(value: Any) -> str:
    """What a value is, in words."""
    if isinstance(value, Known):
        return f"{value.value!r}"[:60]
    names = {
        Pair: "a tuple",
        Lazy: "a comprehension",
        Call: "a text",
        Coefficient: "what a function gives that the engine does not know",
    }
    return names.get(type(value), f"a {type(value).__name__.removesuffix('Value').lower()}")


def plain_or_none(value: Any) -> Any:
    """What a value is for Python; None if that is not known now."""
    return plain(value) if is_known(value) else None
