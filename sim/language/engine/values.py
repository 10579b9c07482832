"""What a name or an expression of a text is while its source is lowered: known now, or in registers when it runs."""

from __future__ import annotations

import ast
import inspect
import os
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from sim.language.pieces import Piece

RUNNING = ("rank", "step", "round", "now", "draw")  # of me: what is not the same at all ranks and times


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
class Choice:
    """One of two things that are no numbers, as a number in a register says when ranks run."""

    test: Number
    body: Any
    orelse: Any


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
