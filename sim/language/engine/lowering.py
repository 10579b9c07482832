"""Statements of a text, and its functions, as op-codes: one code for all ranks.

Functions that a text calls are inlined; a text that is started is lowered once for each shape of its arguments. Statements that need no
time, and names that are known alone, are run by Python. Names that a loop or a branch binds, and that are bound before it, lie in
registers from then on (cells). Expressions are in expressions.py, primitives of `me` in primitives.py.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from types import CodeType
from typing import Any

from sim.language.engine import layout as op
from sim.language.engine.expressions import READING, Expressions, Scope, bound, tree_of, walked
from sim.language.engine.rows import ERRORS
from sim.language.engine.values import NotLowered, Number, Placed, Plain, Symbol, same, shape, symbolic
from sim.language.rank import Rank

LANGUAGE = str(Path(__file__).parents[1])
QUIET = (ast.For, ast.While, ast.If, ast.Assert, ast.Import, ast.ImportFrom, ast.Pass)  # statements that Python may run
LOUD = (ast.Yield, ast.YieldFrom, ast.Return, ast.Raise)  # nodes that wait, or may end the function
MOST_UNROLLED = 512


class Statements(Expressions):
    """Statements of a text, and functions."""

    def inlined(self, code: CodeType, names: dict[str, Any], around: dict[str, Any]) -> Any:
        """A function's statements; what it returns."""
        tree = tree_of(code)
        given = {name: self.copied(value) if name in bound(tree) else value for name, value in names.items()}
        scope, before = Scope(code, given, around), (self.place, self.loops, self.depth, self.cells)
        self.loops, self.depth = (), 0
        try:
            self.body(scope, tree.body)
        except ERRORS as error:
            if isinstance(error, Placed):
                raise
            source = ast.unparse(scope.node).splitlines()[0][:80]
            raise Placed(f"{scope.file}:{scope.node.lineno}: `{source}`: {error}") from error
        finally:
            self.place, self.loops, self.depth, self.cells = before
        self.here(*scope.returns)
        return scope.result

    def body(self, scope: Scope, nodes: list[ast.stmt]) -> bool:
        """Some statements; whether the function, or a turn of a loop, always ends with them."""
        for node in nodes:
            scope.node = node
            if not self.place or not scope.code.co_filename.startswith(LANGUAGE):
                self.place = f"{scope.file}:{node.lineno}"
            if isinstance(node, QUIET) and self.by_python(scope, node):
                continue
            self.make_lists(scope, node)
            way = getattr(self, f"do_{type(node).__name__}", None)
            if way is None or (isinstance(node, (ast.For, ast.While)) and node.orelse):
                raise NotLowered(f"{type(node).__name__} is not understood")
            if way(scope, node):
                return True
        return False

    def by_python(self, scope: Scope, node: ast.stmt) -> bool:
        """Have Python run a statement; whether it can."""
        loaded = {one.id for one in walked(node) if isinstance(one, ast.Name)} & scope.locals
        unknown = loaded - scope.names.keys() - bound(node)
        loud = any(isinstance(one, LOUD) for one in walked(node))
        if loud or unknown or symbolic([scope.names.get(name) for name in loaded]):
            return False
        names = (
            scope.around | scope.names | {name: [*one] for name, one in scope.names.items() if isinstance(one, list)}
        )
        if not self.tried(lambda: exec(compile(ast.Module([node], []), "text", "exec"), names)):
            return False
        for name in bound(node) | changed(node):
            if name in names:
                self.name(scope, name, names[name])
        return True

    def make_lists(self, scope: Scope, node: ast.stmt) -> None:
        """Lists that a statement changes, and empty ones that functions in it get, are the text's own from here on."""
        for name in sorted(changed(node) | given_away(node)):
            value = scope.names.get(name)
            if isinstance(value, list) and (not value or name in changed(node)):
                scope.names[name] = self.fresh(value)

    def make_cells(self, scope: Scope, *nodes: ast.AST) -> None:
        """Names that a loop or a branch binds lie in registers before it; what cannot is not known within it."""
        for name in sorted(bound(*nodes) & scope.names.keys()):
            value = scope.names[name]
            if isinstance(value, list):
                scope.names[name] = self.fresh(value)
            elif shape(value) is None:
                del scope.names[name]
            elif not self.is_cell(value):
                scope.names[name] = self.cell(value)

    def do_Expr(self, scope: Scope, node: ast.Expr) -> None:
        top = self.top
        self.value(scope, node.value)
        self.top = top

    def do_Assign(self, scope: Scope, node: ast.Assign | ast.AnnAssign | ast.AugAssign) -> None:
        if node.value:
            value = self.value(scope, node if isinstance(node, ast.AugAssign) else node.value)
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                self.bind(scope, target, value)

    do_AnnAssign = do_AugAssign = do_Assign

    def do_Return(self, scope: Scope, node: ast.Return) -> bool:
        value = self.value(scope, node.value) if node.value else None
        if not self.depth and not scope.returns:
            scope.result = value
            return True
        if scope.result is not None:
            self.assign("what it returns", scope.result, value)
        elif value is not None:
            scope.result = self.cell(value)
        scope.returns.append(self.jump())
        return True

    def do_If(self, scope: Scope, node: ast.If) -> bool:
        test = self.tested(scope, node.test)
        if not symbolic(test):
            return self.body(scope, node.body if test else node.orelse)
        self.make_cells(scope, *node.body, *node.orelse)
        self.depth += 1
        before, anew = dict(scope.names), bound(*node.body) & bound(*node.orelse) - scope.names.keys()
        jump = self.jump(unless=test)
        ended = self.body(scope, node.body)
        after = scope.names
        for name in sorted(anew & after.keys()):
            if shape(after[name]) is not None:
                before[name] = after[name] = self.cell(after[name])
        over = [self.jump()] if node.orelse else []
        self.here(jump)
        scope.names = before
        ended_else = self.body(scope, node.orelse)
        self.here(*over)
        self.depth -= 1
        one, other = {} if ended else after, {} if ended_else else scope.names
        both = {**one, **other}.items()
        scope.names = {name: value for name, value in both if same(one.get(name, value), other.get(name, value))}
        return ended and ended_else

    def do_While(self, scope: Scope, node: ast.While) -> bool:
        self.make_cells(scope, node)
        with self.loop((op.JUMP,)) as jumps:
            test = self.tested(scope, node.test)
            if symbolic(test) or not test:
                jumps[ast.Break].append(self.jump(unless=test))
            self.body(scope, node.body)
        return not jumps[ast.Break]

    def do_Break(self, scope: Scope, node: ast.Break | ast.Continue) -> bool:
        self.loops[-1][type(node)].append(self.jump())
        return True

    do_Continue = do_Break

    def do_For(self, scope: Scope, node: ast.For) -> bool:
        self.make_cells(scope, node)
        source, ended = self.value(scope, node.iter), False
        if inspect.isgenerator(source) and source.gi_code is Rank.steps.__code__:
            self.counted(
                self.job.steps, lambda k: self.turn(scope, node, k, (op.BEGIN_STEP, k, Plain(1))), (op.END_STEP,)
            )
        else:
            ended = self.gone_through(scope, node, source if isinstance(source, (Symbol, range)) else [*source])
        for name in bound(node.target) & scope.names.keys():
            if not self.is_cell(scope.names[name]):
                del scope.names[name]
        return ended

    def gone_through(self, scope: Scope, node: ast.For, source: Any) -> bool:
        """A loop over a sequence, as a loop, or where that is not understood as one turn behind the other."""
        n, before = self.length(source), dict(vars(scope), names=dict(scope.names), returns=[*scope.returns])
        loop = partial(self.counted, n, lambda k: self.turn(scope, node, self.element(source, k)))
        breaks = any(isinstance(one, (ast.Break, ast.Continue)) for one in walked(node))
        if symbolic(n) or n > MOST_UNROLLED or breaks:
            loop()
        elif n < 2 or not self.tried(loop):
            vars(scope).update(before)
            return any(self.turn(scope, node, one) for one in self.elements(source))
        return False

    def counted(self, n: Any, turn: Callable[[Number], object], *closing: tuple) -> None:
        """turn(k) for k from 0 to n - 1, each ended by some rows."""
        if symbolic(n) or n > 0:
            k = self.put(op.MOVE, 0, 0)
            with self.where(k < n if symbolic(n) else True), self.loop(*closing, (op.REPEAT, Plain(k.at), n)):
                turn(k)

    def turn(self, scope: Scope, node: ast.For, element: Any, *opening: tuple) -> bool:
        """One turn of a loop, which begins with some rows."""
        for row in opening:
            self.emit(*row)
        self.bind(scope, node.target, element)
        return self.body(scope, node.body)


@cache
def changed(node: ast.AST) -> frozenset[str]:
    """Lists that a statement changes."""
    called = [one.value for one in walked(node) if isinstance(one, ast.Attribute) and one.attr not in READING]
    stored = [one.value for one in walked(node) if isinstance(one, ast.Subscript) and isinstance(one.ctx, ast.Store)]
    return frozenset(one.id for one in called + stored if isinstance(one, ast.Name))


@cache
def given_away(node: ast.AST) -> frozenset[str]:
    """Names that functions get as they are."""
    calls = (one for one in walked(node) if isinstance(one, ast.Call | ast.keyword))
    given = (one for call in calls for one in ast.iter_child_nodes(call))
    return frozenset(one.id for one in given if isinstance(one, ast.Name))
