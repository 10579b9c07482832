"""What an expression of a text is before the run, and the function that it is in."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from typing import Any

from sim.base.home import installed


class TooFewRegisters(Exception):
    """A text needs more of them."""


class NotLowered(Exception):
    """A text that does not fit the subset: where, and what it says there."""


class Again(Exception):
    """Something was taken to hold integers alone, and does not: the texts are lowered anew."""


class Value:
    """What an expression is before the run.

    Args:
        kind: const, reg, letter, set, list, items, repeated, span, ready, me, book, verb, method, partition, note or nothing.
        at: by kind an object, a register, the number of a set or a list, or parts.
        whole: of a register or a list, that it holds integers alone.
        changes: its registers are the place of a name that is assigned several times.
        sure: of a letter, that there is one.
    """

    __slots__ = ("at", "changes", "kind", "sure", "whole")

    def __init__(self, kind: str, at: Any = None, whole: bool = True, *, changes: bool = False, sure: bool = False):
        self.kind, self.at, self.whole, self.changes, self.sure = kind, at, whole, changes, sure

    @property
    def is_whole(self) -> bool:
        """Whether it is an integer, of the run or known before."""
        return self.whole if self.kind == "reg" else self.kind == "const" and isinstance(self.at, int)

    @property
    def is_none(self) -> bool:
        """Whether it is None, whatever the run."""
        return self.kind == "const" and self.at is None


ME, BOOK, NOTHING = Value("me"), Value("book"), Value("const", None)


class Frame:
    """The names of one function that is inlined.

    Args:
        function: whose source it is.
        names: what each name stands for.
        several: names that are assigned more than once.
    """

    def __init__(self, function: Callable, names: dict[str, Value], several: set[str]):
        self.function, self.names, self.several = function, names, several
        self.is_ours = function.__module__.startswith(installed("sim."))
        self.end, self.live = "", True
        self.result: Value | None = None
        self.nones: list[int] = []  # instructions by which it returns nothing
        self.places: dict[str, Value] = {}  # of names that are assigned several times
        self.assigned: set[str] = set()  # names that surely are, where the text has come to
        self.local: set[str] = set()
        self.called_by: Frame | None = None
        self.called_at: ast.AST | None = None


@cache
def tree_of(function: Callable) -> tuple[ast.FunctionDef, set[str]]:
    """The syntax of a function, and the names that it assigns more than once."""
    found = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    assert isinstance(found, ast.FunctionDef)
    times: dict[str, int] = {}
    for node in ast.walk(found):
        for name in assigned(node):
            times[name] = times.get(name, 0) + 1 + isinstance(node, ast.AugAssign)
    for one in found.args.args:  # a parameter has been assigned once before
        times[one.arg] = times.get(one.arg, 0) + 1
    return found, {name for name, count in times.items() if count > 1}


def assigned(node: ast.AST) -> list[str]:
    """Names that a node assigns, but those of loops."""
    if isinstance(node, ast.For | ast.comprehension):
        return []
    targets = getattr(node, "targets", [getattr(node, "target", None)])
    found = [name for target in targets if target is not None for name in ast.walk(target)]
    return [name.id for name in found if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)]


def loaded(target: ast.expr) -> ast.expr:
    """An assigned expression as one that is read."""
    found = deepcopy(target)
    for node in ast.walk(found):
        if hasattr(node, "ctx"):
            node.ctx = ast.Load()
    return found
