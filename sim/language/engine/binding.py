"""Which statements of a function Python itself can run while the function is lowered, and which names lie in registers."""

from __future__ import annotations

import ast
import builtins
import inspect
from typing import Any

from sim.language.engine.values import RUNNING, bound, changed, has_yield, is_known, plain, tree_of

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
