"""Symbols: what is not the same at all ranks and times, and lies in registers when a text runs.

All else is what it is in Python while a text is lowered: numbers, lists, ranges, pieces with known ends. The operators of a symbol make
rows of the code (rows.py). Python can neither ask for its truth nor go through it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from inspect import isgenerator
from itertools import accumulate
from typing import Any

from sim.language.engine import layout as op
from sim.language.pieces import Piece

BEYOND = "a number beyond 2**53, whose last digits the engine does not have"
FIELDS = ("sender", "step", "items", "samples", "share")  # of a message, in its registers


class NotLowered(Exception):
    """The engine does not understand a piece of a text's source; the event world runs it all the same."""


class Placed(NotLowered):
    """One that names file and line."""


class Symbol:
    """What is not known before ranks run."""

    def __hash__(self) -> int:
        raise NotLowered(f"{described(self)} in a set, or as a key")

    def __bool__(self) -> bool:
        raise NotLowered(f"{described(self)} where it has to be known before ranks run")

    __iter__ = __index__ = __bool__


def operators(code: int) -> tuple[Any, Any]:
    """What an op-code makes of a number on the left side, and on the right."""
    return lambda x, y: x.code.reckon(code, x, y), lambda x, y: x.code.reckon(code, y, x)


@dataclass(frozen=True, eq=False)
class Number(Symbol):
    """A number, or a handle, in a register."""

    code: Any = field(repr=False)  # to which its operators add rows (rows.Code)
    at: int  # the register

    __add__, __radd__ = operators(op.ADD)
    __sub__, __rsub__ = operators(op.SUBTRACT)
    __mul__, __rmul__ = operators(op.MULTIPLY)
    __truediv__, __rtruediv__ = operators(op.DIVIDE)
    __floordiv__, __rfloordiv__ = operators(op.FLOOR_DIVIDE)
    __mod__, __rmod__ = operators(op.MODULO)
    __xor__, __rxor__ = operators(op.EXCLUSIVE_OR)
    __lt__, __gt__ = operators(op.LESS)
    __le__, __ge__ = operators(op.LESS_OR_EQUAL)
    __eq__, __ne__ = operators(op.EQUAL)[0], operators(op.UNEQUAL)[0]
    __hash__ = Symbol.__hash__

    def __neg__(self) -> Any:
        return 0 - self

    def __pow__(self, power: Any) -> Any:
        raise NotLowered("Pow of numbers that are not known before ranks run")

    __rpow__ = __pow__


class Coefficient(Number):
    """What a function gives that the engine does not know: it changes no time, and may only weigh."""

    def __getitem__(self, k: Any) -> Coefficient:
        return self


class Part(Piece):
    """A piece whose ends may be numbers in registers."""

    def __getitem__(self, cut: slice) -> Any:
        code = code_of(self.start, self.stop, cut.start, cut.stop)
        if code is None:
            return super().__getitem__(cut)
        ends = 0 if cut.start is None else cut.start, self.items if cut.stop is None else cut.stop
        return shaped(self, code.put(op.SLICE, self.start, self.stop, *ends, wide=2))

    def part(self, k: int, n: int) -> Any:
        code = code_of(self.start, self.stop, k, n)
        if code is None:
            return super().part(k, n)
        return shaped(self, code.put(op.PART, self.start, self.stop, k, n, wide=2))


@dataclass(frozen=True, eq=False)
class Range(Symbol):
    """A range upwards; its stride is known."""

    start: Any
    stop: Any
    step: int = 1

    def __post_init__(self) -> None:
        if symbolic(self.step) or self.step < 1:
            raise NotLowered("a group or range whose stride is not known, or downwards")

    @property
    def length(self) -> Any:
        """How many numbers it has."""
        far = self.stop - self.start
        return folded(max, far if self.step == 1 else (far + (self.step - 1)) // self.step, 0)

    def __getitem__(self, k: Any) -> Any:
        if not isinstance(k, slice):
            return self.start + (self.length + k if not symbolic(k) and k < 0 else k) * self.step
        step, n = 1 if k.step is None else k.step, self.length
        first, stop = (self.start + end * self.step for end in (end_of(k.start, n, 0), end_of(k.stop, n, n)))
        return Range(first, stop if self.step == 1 else folded(min, stop, self.stop), self.step * step)

    def index(self, x: Any) -> Any:
        """Where a number is in it."""
        return (x - self.start) if self.step == 1 else (x - self.start) // self.step

    def has(self, x: Any) -> Any:
        """Whether it has a number, 1 or 0."""
        inside = both(self.start <= x, x < self.stop)
        return inside if self.step == 1 else both(inside, (x - self.start) % self.step == 0)


class Message(Symbol):
    """A message, whose fields are in registers from `at` on; its sender is NONE if nothing has come."""

    def __init__(self, code: Any, at: int):
        self.at = at
        self.sender, self.step, self.items, self.samples, self.share = (
            Number(code, at + k) for k in range(len(FIELDS))
        )

    @property
    def is_there(self) -> Any:
        """Whether one has come, 1 or 0."""
        return self.sender != op.NONE


@dataclass
class Contents:
    """What is in a list, of which several texts of a rank may know."""

    like: Any = None  # the first that is appended; all others are of its shape
    asking: list[list[int]] = field(default_factory=list)  # rows that ask for the list's length


@dataclass(frozen=True, eq=False)
class List(Symbol):
    """A list that a text changes, or list[first:]."""

    which: Number  # its number, in a register
    number: int  # among the lists of the text
    contents: Contents = field(default_factory=Contents)
    first: Any = 0

    @property
    def wide(self) -> int:
        """Numbers of an element."""
        return 1 if self.contents.like is None else len(numbers(self.contents.like))

    @property
    def length(self) -> Any:
        """How many elements it has now."""
        found: Any = self.which.code.put(op.LENGTH, self.which, Plain(self.wide))
        self.contents.asking.append(self.which.code.rows[-1])
        return found - self.first

    def append(self, value: Any) -> None:
        """Add an element, of the shape that all have."""
        code, of = self.which.code, self.contents
        if of.like is None:
            of.like = value
            for row in of.asking:
                row[3] = self.wide
        if shape(value) is None or shape(value) != shape(of.like):
            raise NotLowered(f"{described(value)} in a list of others")
        what = numbers(value)[0] if self.wide == 1 else Plain(code.together(numbers(value)))
        code.emit(op.APPEND, self.which, what, Plain(self.wide))

    def pop(self, k: Any = -1) -> Number:
        """Take an element out of a list of numbers."""
        self._expect_numbers()
        self._check_numbers()
        return self.which.code.put(op.REMOVE, self.which, k)

    def _expect_numbers(self) -> None:
        """Where nothing was appended before, another text, or a later line, appends."""
        self.contents.like = 0 if self.contents.like is None else self.contents.like

    def _check_numbers(self) -> None:
        if self.wide != 1:
            raise NotLowered("an element is set, or taken out, of a list of others than numbers")

    def __getitem__(self, k: Any) -> Any:
        if isinstance(k, slice):
            if k.stop is not None or k.step is not None:
                raise NotLowered("a slice of a list that ends before it")
            return replace(self, first=self.first + end_of(k.start, self.length, 0))
        self._expect_numbers()
        found = self.which.code.put(op.GET, self.which, self.first + k, Plain(self.wide), wide=self.wide)
        return shaped(self.contents.like, found)

    def __setitem__(self, k: Any, value: Any) -> None:
        self._check_numbers()
        self.which.code.emit(op.SET, value, self.which, k)


@dataclass(frozen=True, eq=False)
class Lazy(Symbol):
    """A sequence whose elements are worked out where they are asked for."""

    length: Any
    get: Callable[[Any], Any]

    def __getitem__(self, k: Any) -> Any:
        return self.get(k)


class Plain(int):
    """An operand that the kernel reads as it is, and no number's."""


def folded(python: Callable, x: Any, y: Any) -> Any:
    """The least (min) or the most (max) of two numbers."""
    code = code_of(x, y)
    return python(x, y) if code is None else code.reckon(op.LEAST if python is min else op.MOST, x, y)


def end_of(k: Any, n: Any, default: Any) -> Any:
    """An end of a slice of n elements: from the last one if below 0, and never outside."""
    return default if k is None else folded(max, folded(min, k + (k < 0) * n, n), 0)


def both(x: Any, y: Any) -> Any:
    """Whether two truths hold, without an op-code where one is known."""
    known, other = (y, x) if symbolic(x) else (x, y)
    if symbolic(known):
        return folded(min, x, y)
    return other if known else False


def negated(x: Any) -> Any:
    """Whether a truth does not hold."""
    return x == 0 if symbolic(x) else not x


def truth(value: Any) -> Any:
    """What is 0, or False, where a value is false."""
    if isinstance(value, Number):
        return value
    if isinstance(value, Message):
        return value.is_there
    return value.length if isinstance(value, Symbol) else bool(value)  # type: ignore[attr-defined]


def code_of(*values: Any) -> Any:
    """Where operators of the first symbol add rows; None if there is no symbol."""
    return next((one.code for one in values if isinstance(one, Number)), None)


def symbolic(value: Any) -> bool:
    """Whether some of a value is not known."""
    if isinstance(value, (tuple, list)):
        return any(map(symbolic, value))
    if isinstance(value, (Part, slice)):
        return symbolic(value.start) or symbolic(value.stop)
    return isinstance(value, Symbol)


def numbers(value: Any) -> list[Any]:
    """All numbers of a value."""
    if isinstance(value, tuple):
        return [number for one in value for number in numbers(one)]
    if isinstance(value, (Part, Range, range)):
        return [value.start, value.stop]
    if isinstance(value, Message):
        return [getattr(value, name) for name in FIELDS]
    return [value.which if isinstance(value, List) else value]


def shape(value: Any) -> Any:
    """What has to be alike so that numbers of one value may stand in place of those of another; None if registers cannot hold it."""
    if isinstance(value, tuple):
        return None if None in map(shape, value) else tuple(map(shape, value))
    if isinstance(value, Part):
        return value.vector
    if isinstance(value, (Range, range)):
        return value.step
    if isinstance(value, Message):
        return Message
    if isinstance(value, List):
        return None if symbolic(value.first) or value.first else id(value.contents)
    return Number if isinstance(value, (Number, int, float)) else None


def shaped(like: Any, first: Any) -> Any:
    """A value of the same shape whose numbers are in registers, of which this is the first."""
    code, at = first.code, first.at
    last: Any = Number(code, at + 1)
    if isinstance(like, tuple):
        firsts = accumulate((len(numbers(one)) for one in like), initial=at)
        return tuple(shaped(one, Number(code, k)) for one, k in zip(like, firsts, strict=False))
    if isinstance(like, Part):
        return Part(like.vector, first, last)
    if isinstance(like, (Range, range)):
        return Range(first, last, like.step)
    if isinstance(like, List):
        return List(first, like.number, like.contents)
    return Message(code, at) if isinstance(like, Message) else first


def same(x: Any, y: Any) -> bool:
    """Whether two values are the same at all times."""
    if x is y or shape(x) is None or shape(x) != shape(y):
        return x is y
    ours, theirs = ([(one.at,) if symbolic(one) else one for one in numbers(value)] for value in (x, y))
    return ours == theirs


def described(value: Any) -> str:
    """What a value is, in words."""
    if isgenerator(value):
        return "a text"
    if not symbolic(value):
        return f"{value!r}"[:60]
    said = {Coefficient: "what a function gives that the engine does not know", Lazy: "a sequence"}
    return said.get(type(value), f"a {'piece' if isinstance(value, Part) else type(value).__name__.lower()}")
