"""Mistakes in the source of a user's text that would otherwise be a wrong number without a word."""

from __future__ import annotations

import ast
import dis
import inspect
import os
import textwrap
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

from sim.base.errors import WrongText
from sim.base.home import installed
from sim.language.rank import Rank
from sim.language.text import Text

PRIMITIVES = {name for name, one in vars(Rank).items() if inspect.isgeneratorfunction(one) and name != "steps"}
OURS = (installed("sim.language"), installed("sim.texts"))
# Modules whose functions no two ranks share.
VARYING = ("random", "time", "secrets", "uuid", "datetime", "numpy.random")
SHARED = "ranks are processes that share nothing; keep it within the text"
CHANGING = {
    "append",
    "extend",
    "insert",
    "add",
    "update",
    "pop",
    "popleft",
    "appendleft",
    "remove",
    "clear",
    "setdefault",
}


def check(text: Text) -> None:
    """Refuse a text that makes a mistake, by its source and that of its own functions.

    Raises:
        WrongText: naming file and line.
    """
    main = inspect.unwrap(type(text).__call__)
    if main is Text.__call__:
        raise WrongText(f"{text.name} has no text: write `def __call__(self, me):`")
    if not inspect.isgeneratorfunction(main):
        raise WrongText(f"{text.name}: it is no generator: primitives need `yield from`")
    for function in functions(text):
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
        except (OSError, TypeError, SyntaxError):  # as in an interactive session: it is run as it is
            continue
        for node, said in found(function, tree):
            line = function.__code__.co_firstlineno + getattr(node, "lineno", 1) - 1
            where = f"{os.path.basename(function.__code__.co_filename)}:{line}"
            raise WrongText(f"{text.name}, {where}: {said}", where)


def functions(text: Text) -> list[FunctionType]:
    """The text, and all functions and methods of the user's own that it names."""
    own, todo = list[FunctionType](), [inspect.unwrap(type(text).__call__)]
    while todo:
        function = todo.pop()
        if isinstance(function, FunctionType) and function not in own and not function.__module__.startswith(OURS):
            own.append(function)
            known = {**function.__globals__, **inspect.getclosurevars(function).nonlocals}
            for one in dis.get_instructions(function):
                if one.opname in ("LOAD_GLOBAL", "LOAD_DEREF"):
                    todo += _function(known.get(one.argval))
                elif one.opname in ("LOAD_ATTR", "LOAD_METHOD"):
                    todo += _function(inspect.getattr_static(type(text), one.argval, None))
    return own


def _function(meant: Any) -> list[FunctionType]:
    """The function that a name means, or none."""
    meant = getattr(meant, "__func__", meant)
    return [inspect.unwrap(meant)] if isinstance(meant, FunctionType) else []


def found(function: FunctionType, tree: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """The mistakes of one function."""
    code = function.__code__
    inside = {one.arg for one in ast.walk(tree) if isinstance(one, ast.arg)}
    inside |= {one.id for one in ast.walk(tree) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    inside |= set(code.co_freevars)
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (verb := _verb(function, node)):
            parent = parents[node]
            if isinstance(parent, ast.Expr) or (
                verb.startswith("me.") and isinstance(parent, (ast.Assign, ast.NamedExpr))
            ):
                yield node, f"{verb}(...) does nothing without `yield from`"
        if isinstance(node, ast.Global):
            yield node, f"{node.names[0]} is of the module: {SHARED}"
        if isinstance(node, ast.Yield):
            yield node, "a text yields from primitives of me alone: `yield from me.NAME(...)`"
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "me":
            yield node, f"{ast.unparse(node)} is not a text's to set"
        if name := _shared(node, inside):
            yield node, f"{name} is changed, and belongs to all ranks: {SHARED}"
        if isinstance(node, (ast.Name, ast.Attribute)) and _varies(function, node, inside):
            yield node, f"{ast.unparse(node)} differs from world to world: a text has me.draw(n) and me.now()"


def _verb(function: FunctionType, call: ast.Call) -> str:
    """The primitive or verb that is called; nothing if it is none."""
    what = call.func
    if isinstance(what, ast.Attribute) and isinstance(what.value, ast.Name) and what.value.id == "me":
        return f"me.{what.attr}" if what.attr in PRIMITIVES else ""
    meant = function.__globals__.get(what.id) if isinstance(what, ast.Name) else None
    return what.id if isinstance(what, ast.Name) and inspect.isgeneratorfunction(meant) else ""


def _shared(node: ast.AST, inside: set[str]) -> str:
    """What a node changes that is not the text's own: of its module, or of `self`, which all ranks have."""
    target: ast.AST | None = None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGING:
        target = node.func.value
    elif (isinstance(node, ast.Subscript) and isinstance(node.ctx, (ast.Store, ast.Del))) or (
        isinstance(node, ast.Attribute) and isinstance(node.ctx, (ast.Store, ast.Del))
    ):
        target = node.value
    root = target
    while isinstance(root, (ast.Attribute, ast.Subscript)):
        root = root.value
    if target is None or not isinstance(root, ast.Name) or root.id == "me":
        return ""
    return ast.unparse(target) if root.id == "self" or root.id not in inside else ""


def _varies(function: FunctionType, node: ast.Name | ast.Attribute, inside: set[str]) -> bool:
    """Whether a name is of a module of random numbers or of clocks."""
    if isinstance(node, ast.Name):
        meant = None if node.id in inside else function.__globals__.get(node.id)
        if isinstance(meant, ModuleType):
            return False  # said of what is taken out of it
        module = getattr(meant, "__module__", None) or type(getattr(meant, "__self__", None)).__module__
        return callable(meant) and not inspect.isclass(meant) and module in VARYING
    root: ast.expr = node
    while isinstance(root, ast.Attribute):
        root = root.value
    if not isinstance(root, ast.Name) or root.id in inside:
        return False
    names = ast.unparse(node).split(".")
    meant = function.__globals__.get(names[0])
    for name in names[1:-1]:
        meant = getattr(meant, name, None)
    module = meant.__name__ if isinstance(meant, ModuleType) else getattr(meant, "__module__", "")
    return module in VARYING
