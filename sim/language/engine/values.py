"""What a name or an expression of a text is while its source is lowered: known now, or in registers when it runs.

Which statements of a function Python itself can run while the function is lowered, and which names lie in registers.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import os
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import accumulate
from typing import Any

from sim.language.pieces import Piece

RUNNING = ("rank", "step", "round", "now", "draw")  # of me: what is not the same at all ranks and times

PYTHON = (
    ast.Assign,
    ast.AugAssign,
    ast.For,
    ast.While,
    ast.If,
    ast.Expr,
    ast.Assert,
    ast.Raise,
    ast.Import,
    ast.ImportFrom,
)


class NotLowered(Exception):
    """The engine does not understand a piece of a text's source; the event world runs it all the same."""


class Varies(Exception):
    """Something that is not the same at all ranks was asked for while a text is lowered."""


@dataclass(frozen=True)
class Known:
    """The same at all ranks, and known now."""

    value: Any


@dataclass(frozen=True)
class Number:
    """A number or a handle in a register."""

    at: int


@dataclass(frozen=True)
class PieceValue:
    """A piece whose ends are Known or Number."""

    vector: str
    start: Any
    stop: Any


@dataclass(frozen=True)
class MessageValue:
    """A message: its sender, step, items, samples and share in registers; the sender is -1 if it is None."""

    at: int


@dataclass(frozen=True)
class RangeValue:
    """A range whose ends are Known or Number, and whose stride is Known."""

    start: Any
    stop: Any
    step: int = 1


@dataclass(frozen=True)
class Pair:
    """A tuple, or a list that is not changed."""

    parts: tuple
    is_list: bool = False


@dataclass
class Contents:
    """What is in a list, of which several texts of a rank may know.

    Args:
        kind: number, message or piece: of the first that is appended.
        rows: of the code, that ask for its length.
    """

    kind: str = ""
    rows: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class ListValue:
    """A list that a text appends to.

    Args:
        which: its number, in a register.
        number: among the lists of the text.
    """

    which: Number
    number: int
    contents: Contents = field(default_factory=Contents)

    @property
    def kind(self) -> str:
        """Of what it holds."""
        return self.contents.kind


@dataclass(frozen=True)
class ListPart:
    """list[first:]."""

    of: ListValue
    first: Any


@dataclass(frozen=True)
class Lazy:
    """A comprehension: each element is worked out where it is asked for."""

    length: Any
    get: Callable[[Any], Any]


@dataclass(frozen=True)
class Call:
    """A generator that has not begun: a text."""

    function: Any
    given: dict


@dataclass(frozen=True)
class Coefficient:
    """A number that changes no time: it may only weigh."""


NOTHING, ZERO, ONE, NO = Known(None), Known(0), Known(1), Known(False)
WIDE = {"number": 1, "piece": 2, "message": 5}
FIELDS = ("sender", "step", "items", "samples", "share")


class SameAtAllRanks:
    """`me` while a text is lowered."""

    def __init__(self, me):
        self._me = me

    def __getattr__(self, name: str):
        if name in RUNNING:
            raise Varies(name)
        return getattr(self._me, name)


def lift(value) -> Any:
    """What Python has worked out, as a value."""
    if isinstance(value, Piece):
        return PieceValue(value.vector, Known(value.start), Known(value.stop))
    return Known(value)


def plain(value) -> Any:
    """What a value is for Python.

    Raises:
        Varies: it is not known now.
    """
    if isinstance(value, Known):
        return value.value
    if isinstance(value, PieceValue):
        return Piece(value.vector, plain(value.start), plain(value.stop))
    if isinstance(value, Pair):
        return tuple(plain(one) for one in value.parts)
    raise Varies(type(value).__name__)


def is_known(value) -> bool:
    """Whether all of a value is known now."""
    try:
        plain(value)
    except Varies:
        return False
    return True


def numbers(value) -> list[Any]:
    """All numbers of a value."""
    if isinstance(value, Pair):
        return [number for one in value.parts for number in numbers(one)]
    if isinstance(value, (PieceValue, RangeValue)):
        return [value.start, value.stop]
    if isinstance(value, MessageValue):
        return [Number(value.at + k) for k in range(WIDE["message"])]
    return [value]


def shape(value) -> Any:
    """What has to be alike so that numbers of one value may stand in place of those of another."""
    if isinstance(value, Pair):
        return tuple(shape(one) for one in value.parts)
    kind = Number if isinstance(value, (Known, Coefficient)) else type(value)
    return kind, getattr(value, "vector", ""), 0 if kind is Number else getattr(value, "step", 0)


def shaped(value, first: int) -> Any:
    """A value of the same kind whose numbers are in registers, the first of them in this one."""
    if isinstance(value, Pair):
        firsts = accumulate((len(numbers(one)) for one in value.parts), initial=first)
        return Pair(tuple(shaped(one, at) for one, at in zip(value.parts, firsts, strict=False)))
    if isinstance(value, (PieceValue, RangeValue)):
        return replace(value, start=Number(first), stop=Number(first + 1))
    return MessageValue(first) if isinstance(value, MessageValue) else Number(first)


def is_list(value) -> bool:
    """Whether a value is a new list."""
    return (isinstance(value, Pair) and value.is_list) or (isinstance(value, Known) and isinstance(value.value, list))


def in_registers(value) -> bool:
    """Whether a value is one that registers can hold."""
    if isinstance(value, Pair):
        return all(in_registers(one) for one in value.parts)
    if isinstance(value, Known):
        return isinstance(value.value, (int, float, list))
    return isinstance(value, (Number, ListValue, MessageValue, PieceValue, RangeValue))


@cache
def tree_of(function) -> ast.FunctionDef:
    """The source of a function.

    Raises:
        NotLowered: it has none.
    """
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError) as error:
        raise NotLowered(f"{getattr(function, '__qualname__', function)} has no source") from error
    found = tree.body[0]
    if not isinstance(found, ast.FunctionDef):
        raise NotLowered(f"{getattr(function, '__qualname__', function)} is no function with a name")
    ast.increment_lineno(found, function.__code__.co_firstlineno - 1)
    return found


def place(function, node: ast.AST) -> str:
    """file:line of a node."""
    return f"{os.path.basename(function.__code__.co_filename)}:{getattr(node, 'lineno', 0)}"


def has_yield(*nodes: ast.AST) -> bool:
    """Whether a text waits, or may wait, in one of the nodes."""
    return any(isinstance(one, (ast.YieldFrom, ast.Yield)) for node in nodes for one in ast.walk(node))


def bound(*nodes: ast.AST, targets: bool = True) -> list[str]:
    """Names that nodes bind, one for each time; without the targets of loops if asked."""
    loops = [one.target for node in nodes for one in ast.walk(node) if isinstance(one, (ast.For, ast.comprehension))]
    left_out = set() if targets else {id(name) for target in loops for name in ast.walk(target)}
    return [
        one.id
        for node in nodes
        for one in ast.walk(node)
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store) and id(one) not in left_out
    ]


def changed(*nodes: ast.AST) -> set[str]:
    """Lists that nodes change, and names that they add to."""
    found = set()
    for node in nodes:
        for one in ast.walk(node):
            if isinstance(one, ast.AugAssign) and isinstance(one.target, ast.Name):
                found.add(one.target.id)
            if isinstance(one, ast.Attribute) and one.attr in ("append", "pop") and isinstance(one.value, ast.Name):
                found.add(one.value.id)
            if isinstance(one, ast.Subscript) and isinstance(one.ctx, ast.Store) and isinstance(one.value, ast.Name):
                found.add(one.value.id)
    return found


class Scope:
    """The names of one call of a function.

    A statement that needs no time, and only names that are the same at all ranks, is Python's. Names that other statements bind more
    than once, or change, are stored: they lie in registers.

    Args:
        names: the arguments' values.
    """

    def __init__(self, function, names: dict[str, Any]):
        self.function, self.names = function, names
        self.locals = {*names, *bound(tree_of(function))}
        self.globals = {**function.__globals__, **free_names(function)}
        self.returns: list[int] = []  # rows that jump to the end
        self.result: Any = None
        body = tree_of(function).body
        self.pythons: set[ast.stmt] = set()
        while True:  # until no statement is in the way of another
            rest = [one for one in body if one not in self.pythons]
            late = changed(*(one for one in rest if has_yield(one)))
            self.pythons, known = set(), {name for name, value in names.items() if is_known(value)}
            for one in body:
                if isinstance(one, PYTHON) and self.is_known(one, known) and not set(bound(one)) & late:
                    self.pythons.add(one)
                    known |= set(bound(one))
                else:
                    known -= set(bound(one))
            if [one for one in body if one not in self.pythons] == rest:
                break
        times = bound(*rest, targets=False)
        self.stored = {name for name in times if times.count(name) > 1} | changed(*rest)
        self.stored |= set(times) & ({name for one in self.pythons for name in bound(one)} | set(names))

    def is_known(self, node: ast.AST, known: set[str]) -> bool:
        """Whether a node needs nothing but names that are the same at all ranks."""
        own = set(bound(node))
        for one in ast.walk(node):
            if isinstance(one, (ast.Yield, ast.YieldFrom, ast.Return, ast.Break, ast.Continue, ast.Lambda)):
                return False
            if (
                isinstance(one, ast.Attribute)
                and isinstance(one.value, ast.Name)
                and one.value.id == "me"
                and one.attr in RUNNING
            ):
                return False
            if (
                isinstance(one, ast.Name)
                and isinstance(one.ctx, ast.Load)
                and one.id not in known
                and one.id not in own
            ):
                if one.id in self.locals or not (one.id in self.globals or hasattr(builtins, one.id)):
                    return False
                if inspect.isgeneratorfunction(self.globals.get(one.id)):
                    return False
        return True

    def known(self) -> dict[str, Any]:
        """The names that are known now, for Python."""
        return {name: plain(value) for name, value in self.names.items() if is_known(value)}


def free_names(function) -> dict[str, Any]:
    """What a function has from the functions around it."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return {name: cell.cell_contents for name, cell in cells}


def arguments(function, given: list, named: dict[str, Any], lift) -> dict[str, Any]:
    """The values of a function's parameters, defaults included.

    Raises:
        TypeError: one is missing, or too many are given.
    """
    found = inspect.signature(function).bind(*given, **named)
    parameters = inspect.signature(function).parameters
    values = dict(found.arguments)
    for name, one in parameters.items():
        if name not in values and one.default is not inspect.Parameter.empty:
            values[name] = lift(one.default)
    return values
