"""The names of a user's function: which are its own, and which are assigned at several places."""

from __future__ import annotations

import ast
import inspect
import linecache
import symtable
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from types import CodeType
from typing import NamedTuple

from sim.engine.lowering.values import NotLowered, assigned, tree_of


class Names(NamedTuple):
    """What is known of names before a function is lowered.

    Args:
        local: its own, as Python says.
        several: those that are assigned at several places, so that each needs registers of its own.
    """

    local: set[str]
    several: set[str]


@cache
def names_of(function: Callable) -> Names:
    """The names of a user's function.

    Raises:
        NotLowered: its file is another one than was imported.
    """
    tree, _ = tree_of(function)
    table = next(one for one in symtable.symtable(ast.unparse(tree), "text", "exec").get_children())
    assert isinstance(table, symtable.Function)
    if not _is_source(function):
        raise NotLowered(f"{function.__qualname__}: its file has changed since it was imported")
    return Names(set(table.get_locals()), _several(tree))


def _several(tree: ast.FunctionDef) -> set[str]:
    """Names with more than one assignment, and those of loops that are assigned besides, or by a loop within."""
    parameters = tree.args.posonlyargs + tree.args.args + tree.args.kwonlyargs
    plain = Counter(one.arg for one in parameters)
    for node in ast.walk(tree):
        plain.update(assigned(node) * (1 + isinstance(node, ast.AugAssign)))
    loops = {name for node in ast.walk(tree) if isinstance(node, ast.For) for name in _targets(node)}
    again = {name for name, count in plain.items() if count > 1 or name in loops}
    return again | set(_nested(tree, ()))


def _nested(node: ast.AST, around: tuple[str, ...]) -> Iterable[str]:
    """Names of loops within loops over the same name."""
    if isinstance(node, ast.For):
        own = _targets(node)
        yield from set(own) & set(around)
        around = (*around, *own)
    for inner in ast.iter_child_nodes(node):
        yield from _nested(inner, around)


def _targets(node: ast.For) -> list[str]:
    return [one.id for one in ast.walk(node.target) if isinstance(one, ast.Name)]


def _is_source(function: Callable) -> bool:
    """Whether the file of a function has what was imported."""
    code: CodeType = function.__code__
    lines = linecache.getlines(inspect.getsourcefile(function) or "")
    places = (code.co_firstlineno, code.co_name)
    found = [one for one in _codes(_compiled("".join(lines))) if (one.co_firstlineno, one.co_name) == places]
    return any(_said(one) == _said(code) for one in found)


@lru_cache(maxsize=8)
def _compiled(source: str) -> CodeType:
    return compile(source, "text", "exec", dont_inherit=True)


def _codes(code: CodeType) -> Iterable[CodeType]:
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield one
            yield from _codes(one)


def _said(code: CodeType) -> tuple:
    """What code does, whatever its lines."""
    constants = [_said(one) if isinstance(one, CodeType) else (type(one), one) for one in code.co_consts]
    return code.co_code, code.co_names, code.co_varnames, constants
